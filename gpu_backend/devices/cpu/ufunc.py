"""The class of CuPy's ufuncs on the CPU: CuPy's choice of loop and memory order, NumPy's loops where they agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, Casting, DType
from gpu_backend.devices.cpu.call import _silenced, settle, silence
from gpu_backend.devices.cpu.dtypes import cast_into, require_64_bits, require_castable
from gpu_backend.devices.cpu.memory import LEDGER, as_out_of_memory
from gpu_backend.devices.cpu.promotion import COMPARISONS, STRONG_INTS, select_loop, select_loop_by_dtype
from gpu_backend.devices.cpu.ufunc_types import DTYPE_TYPES, REFUSED, UFUNC_TYPES

ndarray = np.ndarray

#: Up to this many elements a result is made first and booked afterwards.
_SMALL_SIZE = 1 << 13
#: The same where nobody set a limit, and only the machine's own memory could be too little.
_SMALL_FOR_MACHINE = 1 << 22


class Loop:
    """One type signature of a ufunc, ready to run.

    Attributes
    ----------
    ins, outs
        Its dtypes.
    run
        Computes new arrays (in C order) from arguments of any dtype that can be cast to ``ins``.
    numpy_ufunc
        NumPy's ufunc that has this loop, or None. It can write into ``out`` and obey ``where``.
    """

    __slots__ = ("ins", "numpy_ufunc", "outs", "run", "signature")

    def __init__(self, signature: str, compute: Any) -> None:
        ins, outs = signature.split("->")
        self.signature = signature
        self.ins = tuple(np.dtype(char) for char in ins)
        self.outs = tuple(np.dtype(char) for char in outs)
        self.numpy_ufunc: Any | None = compute if isinstance(compute, np.ufunc) else None
        self.run: Callable[..., Any]
        if "V" in ins:
            self.run = partial(compute, order="C")
        elif isinstance(compute, np.ufunc):
            self.run = partial(compute, order="C", signature=(*self.ins, *self.outs), casting="unsafe")
        else:
            self.run = partial(self._cast_and_compute, compute)

    def _cast_and_compute(self, compute: Callable[..., Any], *args: object) -> Any:
        cast = [
            np.asarray(arg, dtype) if type(arg) is ndarray else dtype.type(arg)
            for arg, dtype in zip(args, self.ins, strict=True)
        ]
        results = compute(*(np.asarray(arg) for arg in cast))
        if len(self.outs) == 1:
            return np.asarray(results, self.outs[0], order="C")
        return tuple(np.asarray(r, dtype, order="C") for r, dtype in zip(results, self.outs, strict=True))


def _packed(args: tuple[Any, ...], dtypes: tuple[DType, ...]) -> tuple[Any, ...]:
    """Return ``args`` with the numbers among them put into arrays of ``dtypes``, as CuPy does when it launches.

    That is an assignment and no cast: NaN is refused for an integer, where a cast would make some number of it.
    """
    is_launched = all(arg.size for arg in args if type(arg) is ndarray)
    return tuple(
        [arg if type(arg) is ndarray else _put(arg, to, is_launched) for arg, to in zip(args, dtypes, strict=True)]
    )


def _put(number: Any, dtype: DType, is_looked_at: bool) -> Array:
    packed = np.zeros((), dtype)
    if is_looked_at:
        with np.errstate(invalid="warn", over="warn"):
            packed[()] = number
    return packed


def _without_values(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ``args`` with 0 for ints if an array has no element: CuPy asks whether they fit when it launches only.

    The loop has been chosen by then, by the ints as they are.
    """
    if all(arg.size for arg in args if type(arg) is ndarray):
        return args
    return tuple([0 if type(arg) is int else arg for arg in args])


class Ufunc:
    """A universal function as CuPy's.

    Parameters
    ----------
    name
        CuPy's name of it, without prefix ("add").
    compute
        NumPy's ufunc, or a function of arrays of one loop's dtypes.
    special
        Signatures that another function computes.
    types
        All signatures; those of `UFUNC_TYPES` by default.
    """

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        special: dict[str, Callable[..., Any]] | None = None,
        types: tuple[str, ...] | None = None,
    ) -> None:
        self.name = self.__name__ = name
        self.types = UFUNC_TYPES[name] if types is None else types
        self._compute = compute
        self._special = special or {}
        ins, outs = self.types[0].split("->")
        self.nin, self.nout = len(ins), len(outs)
        self.nargs = self.nin + self.nout
        self._loops: dict[str, Loop] = {}
        self._plans: dict[tuple[Any, ...], Loop] = {}
        self._runs: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._in_place: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.name}'>"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Apply the ufunc; arguments as for CuPy's (``out``, ``dtype``, ``casting``, ``_where``)."""
        has_int = False
        for arg in args:
            if type(arg) is int:
                require_64_bits(arg)
                has_int = True
        if kwargs or len(args) != self.nin:
            return self._call_with_options(args, kwargs)
        run = self._runs.get(tuple([a.dtype if type(a) is ndarray else type(a) for a in args]))
        if run is None:
            run = self._prepare(args)
        if not _silenced.get():
            silence()
        self._require_memory(args)
        try:
            result = run(*_without_values(args)) if has_int else run(*args)
            if type(result) is ndarray:
                LEDGER.hold(result)
                return result
            return settle(result)
        except MemoryError as error:
            raise as_out_of_memory(error) from None

    def _loop(self, args: tuple[object, ...]) -> Loop:
        key = tuple(a.dtype if isinstance(a, ndarray) else type(a) for a in args)
        loop = self._plans.get(key)
        if loop is None:
            for arg in args:
                require_operand(arg)
            loop = self._checked(select_loop(self.name, self.types, args), key)
            if not self._depends_on_values(key):
                self._plans[key] = loop
        return loop

    def _checked(self, signature: str | None, wanted: object) -> Loop:
        if signature is None:
            raise TypeError(f"Wrong type ({wanted}) of arguments for cupy_{self.name}")
        reason = REFUSED.get((self.name, signature))
        if reason is not None:
            raise TypeError(reason)
        loop = self._loops.get(signature)
        if loop is None:
            loop = self._loops[signature] = Loop(signature, self._special.get(signature, self._compute))
        return loop

    def _prepare(self, args: tuple[object, ...]) -> Callable[..., Any]:
        """Return what computes on arguments of these types, and keep it for the next call."""
        key = tuple(a.dtype if type(a) is ndarray else type(a) for a in args)
        if self.name in COMPARISONS and _is_strong(key):  # NumPy compares integers of any size, but not with bools
            args = tuple(np.asarray(arg, np.int64) if _is_boolean(arg) else arg for arg in args)
            return lambda *_: self._compute(*args)
        loop = self._loop(args)
        if self.name not in COMPARISONS and self._depends_on_values(key):
            return loop.run
        run = loop.run
        plain = loop.numpy_ufunc
        if plain is not None and (self.name in COMPARISONS or _numpy_chooses(plain, args, loop)):
            run = partial(plain, order="C")  # spares NumPy the reading of a signature
        self._runs[key] = run
        return run

    def _require_memory(self, args: tuple[object, ...]) -> None:
        """Refuse a large result before it is made."""
        most = 1
        for arg in args:
            if type(arg) is ndarray:
                most *= arg.size
        if most <= (_SMALL_SIZE if LEDGER.limit_bytes else _SMALL_FOR_MACHINE):
            return
        arrays = [a for a in args if type(a) is ndarray]
        if not arrays:
            return
        shape = arrays[0].shape
        size = arrays[0].size
        if len(arrays) > 1 and any(a.shape != shape for a in arrays):
            size = np.broadcast(*arrays).size
        if size > _SMALL_SIZE:
            LEDGER.require(size * sum(dtype.itemsize for dtype in self._loop(args).outs))

    def _call_with_options(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        if not kwargs and type(out) is ndarray and len(args) == self.nin:
            run = self._in_place.get(tuple([a.dtype if type(a) is ndarray else type(a) for a in (*args, out)]))
            if run is not None:
                silence()
                return run(*_without_values(args), out=out)
        where = kwargs.pop("_where", None)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", "same_kind")
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        ins, outs = self._split_outs(args, out)
        if dtype is None:
            loop = self._loop(ins)
        else:
            for arg in ins:
                require_operand(arg)
            types = DTYPE_TYPES.get(self.name, self.types)
            loop = self._checked(select_loop_by_dtype(types, np.dtype(dtype)), dtype)
            ins = _packed(ins, loop.ins)
        silence()
        ins = _without_values(ins)
        try:
            if where is None and all(o is None for o in outs):
                return settle(loop.run(*ins))
            return self._write(loop, ins, outs, where, casting)
        except MemoryError as error:
            raise as_out_of_memory(error) from None

    def _split_outs(self, args: tuple[object, ...], out: object) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for 'cupy_{self.name}'. It must be either {self.nin} or {self.nargs} "
                f"(with outputs), but given {len(args)}."
            )
        ins, outs = args[: self.nin], args[self.nin :]
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            if isinstance(out, tuple):
                if len(out) != self.nout:
                    raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
                outs = out
            elif self.nout != 1:
                raise ValueError("'out' must be a tuple of arrays")
            else:
                outs = (out,)
        return ins, outs + (None,) * (self.nout - len(outs))

    def _write(self, loop: Loop, ins: tuple[Any, ...], outs: tuple[Any, ...], where: object, casting: Casting) -> Any:
        """Compute into the arrays of ``outs``; None among them stands for a new array."""
        condition = None if where is None else _condition(where)
        given = [o for o in outs if o is not None]
        for o in given:
            if not isinstance(o, ndarray):
                raise TypeError("Output arguments type must be cupy.ndarray")
        masked = () if condition is None else np.shape(condition)
        shape = np.broadcast_shapes(*(np.shape(a) for a in (*ins, *given)), masked)
        targets = []
        for o, dtype in zip(outs, loop.outs, strict=True):
            if o is None:
                o = np.empty(shape, dtype)
            elif o.shape != shape:
                raise ValueError("Out shape is mismatched")
            else:
                require_castable(dtype, o.dtype, casting, "output operand")
            targets.append(o)
        if loop.numpy_ufunc is not None and all(t.dtype == d for t, d in zip(targets, loop.outs, strict=True)):
            if self.nout == 1 and type(outs[0]) is ndarray and self._may_be_left_to_numpy(loop, ins):
                key = tuple(a.dtype if type(a) is ndarray else type(a) for a in ins)
                self._in_place[(*key, outs[0].dtype)] = loop.numpy_ufunc
            where_option = {} if condition is None else {"where": condition}
            loop.numpy_ufunc(
                *ins, out=tuple(targets), signature=(*loop.ins, *loop.outs), casting="unsafe", **where_option
            )
        else:
            results = loop.run(*ins)
            for target, result in zip(targets, results if self.nout > 1 else (results,), strict=True):
                if condition is None:
                    cast_into(target, np.asarray(result))
                else:
                    chosen = np.where(condition, np.asarray(result).astype(target.dtype), target)
                    cast_into(target, chosen)
        return settle(targets[0] if self.nout == 1 else tuple(targets))

    def _may_be_left_to_numpy(self, loop: Loop, args: tuple[object, ...]) -> bool:
        """Tell whether NumPy's ufunc, left alone, does what ``loop`` does for all arguments of these types."""
        kinds = tuple(a.dtype if type(a) is ndarray else type(a) for a in args)
        if self.name in COMPARISONS:
            return not _is_strong(kinds)
        return not self._depends_on_values(kinds) and _numpy_chooses(loop.numpy_ufunc, args, loop)

    def _depends_on_values(self, kinds: tuple[object, ...]) -> bool:
        """Tell whether a loop is chosen by more than the types: where ints are strong, large ones are unsigned."""
        return int in kinds and (self.name in STRONG_INTS or _is_strong(kinds))

    # The methods CuPy's ufuncs have. Which of them work depends on the ufunc, as in CuPy.

    def outer(self, a: object, b: object, **kwargs: object) -> Any:
        """Apply the ufunc to all pairs of elements of ``a`` and ``b``."""
        a, b = np.asarray(a), np.asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def _is_boolean(arg: object) -> bool:
    return isinstance(arg, (bool, np.bool_)) or (isinstance(arg, ndarray) and arg.dtype.kind == "b")


def _is_strong(kinds: tuple[object, ...]) -> bool:
    """Tell whether there is a Python int that follows nothing, as beside bools."""
    return int in kinds and not any(isinstance(kind, np.dtype) and kind.kind != "b" for kind in kinds)


def require_operand(arg: object) -> None:
    """Raise CuPy's ``TypeError`` unless ``arg`` is an array or a scalar."""
    if not isinstance(arg, (ndarray, bool, int, float, complex, np.number, np.bool_, np.void)):
        raise TypeError(f"Unsupported type {type(arg)}")


def _condition(where: object) -> Any:
    if isinstance(where, ndarray):
        if where.dtype != np.bool_:
            raise TypeError(
                f"Cannot cast array data from {where.dtype!r} to {np.dtype(bool)!r} according to the rule 'safe'"
            )
        return where
    require_operand(where)
    return bool(where)


def _numpy_chooses(plain: Any, args: tuple[object, ...], loop: Loop) -> bool:
    """Tell whether NumPy, left alone, takes the same loop."""
    kinds = tuple(
        a.dtype if isinstance(a, (ndarray, np.generic)) else np.dtype(bool) if type(a) is bool else type(a)
        for a in args
    )
    try:
        chosen = plain.resolve_dtypes(kinds + (None,) * len(loop.outs))
    except TypeError:
        return False
    return bool(chosen == loop.ins + loop.outs)
