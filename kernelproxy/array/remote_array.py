"""``cupy.ndarray`` in the notebook: metadata and a handle. Its elements live in the executor."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from kernelproxy.array.conversions import Conversions
from kernelproxy.array.indexing import Indexing
from kernelproxy.array.methods import Methods
from kernelproxy.array.operators import Operators
from kernelproxy.array.views import Views
from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.argument_types import DTypeLike, ShapeLike
from kernelproxy.calls.stand_ins import StandIn

__all__ = ["ndarray"]


@array_core.for_new_arrays
class ndarray(Operators, Indexing, Views, Conversions, Methods):  # noqa: N801 (CuPy's name)
    """A remote array. Shape, dtype and views are known here; values cost a round trip."""

    __slots__ = ()
    __module__ = "cupy"
    __array_priority__ = 100

    def __new__(
        cls, shape: ShapeLike, dtype: DTypeLike = float, memptr: StandIn | None = None,
        strides: Sequence[int] | None = None, order: str = "C", *, _obj: object = None, _no_init: bool = False,
    ) -> Any:  # fmt: skip
        """Make an uninitialised array, as CuPy does; over ``memptr`` if one is given.

        ``_obj`` is what a subclass's ``__array_finalize__`` gets; with ``_no_init`` it is not called.
        """
        if memptr is None and strides is None:
            made = dispatch.call("cupy.empty", (shape, dtype, order or "C"), {})
        else:
            made = dispatch.ask_object("cupy.ndarray", shape, dtype, memptr, strides, order)
        if cls is ndarray:
            return made
        made = array_core.as_subclass(made, cls)
        if not _no_init:
            made.__array_finalize__(_obj)
        return made

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Do nothing, as in CuPy, whatever a subclass hands over: `__new__` has made the array."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Let ufuncs know that there are subclasses."""
        super().__init_subclass__(**kwargs)
        array_core.note_subclass()

    def __class_getitem__(cls, item: object) -> Any:
        """Allow ``ndarray[...]`` in annotations."""
        return types.GenericAlias(cls, item)

    def __array_finalize__(self, obj: object) -> None:
        """Do nothing; subclasses may."""
