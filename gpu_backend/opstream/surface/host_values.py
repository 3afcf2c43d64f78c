"""Where CuPy takes no value of the host, and what it says then: facts that no signature tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec


class Extents(Protocol):
    """What an array's refusal goes by."""

    @property
    def size(self) -> int:
        """How many elements it has."""

    @property
    def ndim(self) -> int:
        """How many axes it has."""


class HostRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """What CuPy raises of a NumPy array of ``least`` elements and ``axes`` axes or more.

    ``varies`` if it goes by dtypes and shapes; ``alone`` if it is said where no other argument is given; ``filled`` if
    it is said where no array that is given is empty. ``message`` may name the array's ``{shape}``.
    """

    error: str
    message: str
    varies: bool = False
    least: int = 0
    axes: int = 0
    alone: bool = False
    filled: bool = False

    def is_of(self, array: Extents, given: Iterable[Extents]) -> bool:
        """Tell whether it is raised of ``array`` (or of what has the extents of one), among all arrays ``given``."""
        is_large = array.size >= self.least and array.ndim >= self.axes
        return is_large and not (self.filled and any(not one.size for one in given))

    def said_of(self, shape: tuple[int, ...]) -> str:
        """Return what is said of an array of ``shape``."""
        return self.message.replace("{shape}", str(shape))


class HostFacts(msgspec.Struct, frozen=True):
    """What is known of one function, by parameter; those of a generalised ufunc are numbers.

    Attributes
    ----------
    refusals
        Of arrays of NumPy.
    alone
        Of arrays of NumPy that are the only argument, where that is another refusal.
    lacking
        The attribute that CuPy asks of a list or tuple, which has none of that name.
    """

    refusals: dict[str, HostRefusal]
    alone: dict[str, HostRefusal]
    lacking: dict[str, str]

    def refusal(self, parameter: str, arguments: int) -> HostRefusal | None:
        """Return what is raised of ``parameter`` in a call of so many ``arguments``."""
        alone = self.alone.get(parameter) if arguments == 1 else None
        return alone or self.refusals.get(parameter)


#: By module: "function:parameter", separated by blanks.
_Arguments = dict[str, str]


class _Refusal(HostRefusal, frozen=True, kw_only=True):
    arguments: _Arguments


class _Lacking(msgspec.Struct, frozen=True):
    attribute: str
    arguments: _Arguments


class _File(msgspec.Struct, frozen=True):
    refusal: tuple[_Refusal, ...]
    lacking: tuple[_Lacking, ...]


@cache
def host_facts() -> Mapping[str, HostFacts]:
    """Return what is known, by qualified name."""
    read = msgspec.toml.decode(Path(__file__).with_name("host_values.toml").read_bytes(), type=_File)
    found: defaultdict[str, HostFacts] = defaultdict(lambda: HostFacts({}, {}, {}))
    for refusal in read.refusal:
        for function, parameter in _named(refusal.arguments):
            facts = found[function]
            (facts.alone if refusal.alone else facts.refusals)[parameter] = refusal
    for lacking in read.lacking:
        for function, parameter in _named(lacking.arguments):
            found[function].lacking[parameter] = lacking.attribute
    return dict(found)


def _named(arguments: _Arguments) -> Iterator[tuple[str, str]]:
    """Yield the function and the parameter that each is."""
    for module, names in arguments.items():
        for one in names.split():
            function, _, parameter = one.partition(":")
            yield f"{module}.{function}", parameter
