"""The handles of CUDA that a session was given as numbers: what takes one takes these, and no other number.

CUDA's driver reads where a handle points. A number that was made up, or whose stream, event or graph is gone, would end
the process, or lead the driver through memory that the notebook chose. See docs/adr/0027-handles-of-the-session.md.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from gpu_backend.opstream.surface.handles import Parameters, handle_table, parameters_of

_TABLE = handle_table()
_READ = {name: kind for kind, told in _TABLE.kinds.items() for name in told.attributes}

#: Tells the name that the surface has for the class of an object; None if it has none.
NameOfClass = Callable[[object], str | None]


class Handles:
    """The register of one session's handles. A handle is there from when the notebook is told it until it is gone."""

    def __init__(self, name_of_class: NameOfClass) -> None:
        self._name_of_class = name_of_class
        #: What functions returned, and the notebook has to destroy.
        self._own: set[tuple[str, int]] = set()
        #: Objects that said theirs: they destroy it when they go, and with that it is out of here.
        self._of_objects: WeakValueDictionary[tuple[str, int], object] = WeakValueDictionary()
        #: Those that cannot be watched (compiled classes: functions of kernels, graphs) stay, so that theirs lasts.
        self._kept: dict[tuple[str, int], object] = {}

    def clear(self) -> None:
        """Forget all."""
        self._own.clear()
        self._of_objects.clear()
        self._kept.clear()

    def told(self, attribute: str, owner: object, value: Any) -> Any:
        """Return ``value``, which ``owner`` has as ``attribute`` ("cupy.cuda.Event.ptr"); note it if it is a handle."""
        if (kind := _READ.get(attribute)) is not None:
            try:
                self._of_objects[kind, value] = owner
            except TypeError:
                self._kept[kind, value] = owner
        return value

    def require(self, kind: str, number: Any) -> int:
        """Return ``number`` as an integer if it is a handle of that kind that the session was given, and lives.

        Raises
        ------
        TypeError
            If it is no integer.
        ValueError
            If it is not.
        """
        handle = operator.index(number)
        key, told = (kind, handle), _TABLE.kinds[kind]
        if handle in told.always or key in self._own or key in self._of_objects or key in self._kept:
            return handle
        raise ValueError(f"{handle:#x} is no {told.what} of this session: give {told.instead}.")

    def held(self, qualname: str, function: Callable[..., Any], bound: bool = True) -> Callable[..., Any]:
        """Return ``function``, held to this register if it takes or gives handles, or objects that have one.

        Parameters
        ----------
        bound
            Whether a method has its object already; if not, that is its first argument.
        """
        asked = parameters_of(qualname)
        if asked is None:
            return function
        first = int(asked.is_of_object and not bound)
        within = asked.first_place + first  # so many arguments say nothing: kernels are launched often

        def checked(*args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) > within:
                args, kwargs = self._arguments(asked, args, kwargs, first)
            if asked.ends:
                self._end(asked.ends, next(iter((*args, *kwargs.values()))))
            result = function(*args, **kwargs)
            if asked.gives:
                self._own.add((asked.gives, result))
            return result

        return checked

    def _arguments(
        self, asked: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any], first: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with each handle as the integer that was looked up: nothing else is passed on."""
        given: dict[Any, Any] = {**dict(enumerate(args, -first)), **kwargs}
        for key, kind in asked.handles.items():
            if key in given:
                given[key] = self.require(kind, given[key])
        for key, classes in asked.objects.items():
            self._require_object(key, given.get(key), classes)
        return tuple(given[place - first] for place in range(len(args))), {key: given[key] for key in kwargs}

    def _require_object(self, parameter: int | str, value: Any, classes: tuple[str, ...]) -> None:
        """Let pass an object of the classes that CuPy means, or None: of any other it would pass on the ``ptr``."""
        if value is not None and self._name_of_class(value) not in classes:
            where = parameter if isinstance(parameter, str) else f"argument {parameter}"
            raise TypeError(f"{where} takes a {' or '.join(classes)}, and no {type(value).__name__}.")

    def _end(self, kind: str, handle: int) -> None:
        key = (kind, handle)
        if key not in self._own:
            raise ValueError(
                f"{handle:#x} belongs to an object of this session, which destroys its {_TABLE.kinds[kind].what} "
                "itself: let go of the object."
            )
        self._own.discard(key)
