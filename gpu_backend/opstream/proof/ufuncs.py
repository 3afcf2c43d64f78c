"""Results of ufuncs: dtypes from the surface's type tables, shapes by broadcasting, memory order always "C"."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import DType, Layout, Shape, contiguous
from gpu_backend.opstream.proof.arguments import as_dtype, broadcast
from gpu_backend.opstream.proof.outcome import ArrayProof, CannotProve, Place, Returned, Unproved, WillRaise, refusal
from gpu_backend.opstream.proof.promotion import (
    Loop,
    Weak,
    check_cast,
    find_loop,
    find_loop_for,
    loops,
    operand_kind,
    wrong_type,
)
from gpu_backend.opstream.proof.scalars import bounds, check_operand, int_bounds, is_within
from gpu_backend.opstream.proof.values import is_tuple

UfuncResult = Layout | tuple[Layout, ...]

#: Ufuncs whose table has complex loops that CUDA cannot compile: what comes of them is the executor's to say.
_REAL_ONLY = frozenset({"cupy_rsqrt", "cupy_arctan2", "cupy_copysign", "cupy_hypot", "cupy_i0", "cupy_nextafter"})
#: Types of Python's numbers of which what is proved of one holds of others, within bounds.
_PYTHONS = frozenset({bool, int, float, complex})
#: Bounds a ufunc's memory of what it has proved.
_MOST_PROOFS = 8_192


class _Bounded(NamedTuple):
    """A result that holds for scalars from ``low`` to ``high``."""

    result: UfuncResult
    low: float
    high: float


class UfuncRule:
    """Proves the results of one ufunc. A proof is found again by one look-up, under the identities of its layouts.

    Parameters
    ----------
    entry
        The ufunc's description on the surface.
    """

    def __init__(self, entry: surface.Ufunc) -> None:
        self.name = entry.name
        self.nin = entry.nin
        self.nout = entry.nout
        self._table = loops(entry.types, entry.refused)
        self._by_output = loops(entry.out_types) if entry.out_types else self._table
        self._casting = entry.casting
        self._promotion = entry.promotion
        self._loops: dict[tuple[object, ...], Loop | None] = {}
        self._proved: dict[tuple[object, ...], UfuncResult] = {}
        self._bounded: dict[tuple[object, ...], _Bounded] = {}
        self._into: dict[tuple[object, ...], tuple[float, float]] = {}

    def result(self, first: object, second: object) -> UfuncResult | Unproved:
        """Return the result for two operands: layouts or host scalars. The path of ``x + y``.

        Raises
        ------
        Exception
            What CuPy raises for these operands.
        """
        try:
            found = self._proved.get((first, second))
            if found is not None:
                return found
        except TypeError:  # an operand that cannot be hashed cannot be computed with either
            return self.results(first, second)
        if type(second) is float or type(second) is int:
            bounded = self._bounded.get((first, type(second)))
            if bounded is not None and bounded.low <= second <= bounded.high:
                return bounded.result
        elif type(first) is float or type(first) is int:
            bounded = self._bounded.get((type(first), second))
            if bounded is not None and bounded.low <= first <= bounded.high:
                return bounded.result
        return self.results(first, second)

    def results(self, *operands: object) -> UfuncResult | Unproved:
        """Return the result for any number of operands, and remember it."""
        try:
            return self._prove(operands)
        except CannotProve as unknown:
            return Unproved(str(unknown))
        except WillRaise as known:
            raise known.release() from None

    def inplace(self, target: Layout, operand: object) -> Unproved | None:
        """Prove that ``target op= operand`` succeeds: None if it does.

        Raises
        ------
        Exception
            What CuPy raises for these operands.
        """
        kind = type(operand)
        if kind is Layout:
            if (target, operand) in self._into:
                return None
        elif type(operand) is float or type(operand) is int:
            allowed = self._into.get((target, kind))
            if allowed is not None and allowed[0] <= operand <= allowed[1]:
                return None
        try:
            self._prove_inplace(target, operand)
        except CannotProve as unknown:
            return Unproved(str(unknown))
        except WillRaise as known:
            raise known.release() from None
        return None

    def limits(self, first: object, second: object) -> tuple[float, float] | None:
        """Return between which numbers, in the place of the one given, what `result` says of it holds.

        One of the operands is a layout. None if it is not known, or of no other number.
        """
        if isinstance(first, Layout):
            bounded, number = self._bounded.get((first, type(second))), second
        else:
            bounded, number = self._bounded.get((type(first), second)), first
        return bounded[1:] if bounded is not None and _is_of(number, bounded[1:]) else None

    def limits_inplace(self, target: Layout, operand: object) -> tuple[float, float] | None:
        """Return between which numbers, in the place of ``operand``, what `inplace` says of it holds, as `limits`."""
        limits = self._into.get((target, type(operand)))
        return limits if limits is not None and _is_of(operand, limits) else None

    def loop(self, kinds: tuple[tuple[DType, Weak], ...]) -> Loop | None:
        """Return the loop that CuPy runs for operands of these kinds, as `operand_kind` tells them; None if none."""
        try:
            return self._loop(kinds)
        except (CannotProve, WillRaise):
            return None

    def apply(self, *operands: object, dtype: object = None) -> UfuncResult:
        """Return the result for the use of other rules.

        Raises
        ------
        CannotProve, WillRaise
            As every rule.
        """
        loop, shape = self._loop_and_shape(operands, dtype)
        return self._layouts(loop, shape)

    def call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> ArrayProof | tuple[ArrayProof, ...]:
        """Return the proof of a call with outputs and keywords, as a rule."""
        known = {"out", "dtype", "casting"}
        if not known.issuperset(kwargs):
            raise CannotProve(f"the keywords {sorted(kwargs.keys() - known)}")
        if not self.nin <= len(args) <= self.nin + self.nout:
            raise refusal(
                TypeError,
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nin + self.nout} (with outputs), but given {len(args)}.",
            )
        if len(args) == self.nin and kwargs.get("out") is None and kwargs.get("dtype") is None:
            return self._prove(args)
        outputs, names = self._outputs(args, kwargs.get("out"))
        given = [out for out in outputs if out is not None]
        loop, shape = self._loop_and_shape(args[: self.nin], kwargs.get("dtype"), given)
        made = self._layouts(loop, shape)
        results: list[ArrayProof] = list(made) if isinstance(made, tuple) else [made]
        for place, out in enumerate(outputs):
            if out is not None:
                self._check_output(out, shape, loop.outputs[place], kwargs.get("casting", self._casting))
                results[place] = Returned(names[place])
        return results[0] if self.nout == 1 else tuple(results)

    def _prove(self, operands: tuple[object, ...]) -> UfuncResult:
        loop, shape = self._loop_and_shape(operands, None)
        result = self._layouts(loop, shape)
        self._remember(operands, loop, shape, result)
        return result

    def _prove_inplace(self, target: Layout, operand: object) -> None:
        if self.nin != 2 or self.nout != 1:
            raise CannotProve("no operator")
        loop, shape = self._loop_and_shape((target, operand), None, [target])
        self._check_output(target, shape, loop.outputs[0], self._casting)
        if not _are_found_again((target, operand)):
            return
        if len(self._into) >= _MOST_PROOFS:
            self._into.clear()
        if isinstance(operand, Layout):
            self._into[target, operand] = (0, 0)
        elif 0 not in shape and (limits := _limits(operand, loop.inputs[1])) is not None:
            self._into[target, type(operand)] = limits

    def _loop_and_shape(
        self, operands: tuple[object, ...], dtype: object, outputs: list[Layout] | None = None
    ) -> tuple[Loop, Shape]:
        kinds = tuple([operand_kind(operand) for operand in operands])
        arrays = [operand.shape for operand in operands if isinstance(operand, Layout)]
        arrays += [out.shape for out in outputs or ()]
        shown = [operand.shape if isinstance(operand, Layout) else () for operand in operands]
        shape = broadcast(arrays, shown + [out.shape for out in outputs or ()])
        loop = self._loop(kinds) if dtype is None else self._loop_of(as_dtype(dtype))
        if 0 not in shape:
            for operand, wanted in zip(operands, loop.inputs, strict=True):
                if not isinstance(operand, Layout):
                    check_operand(operand, wanted)
        return loop, shape

    def _loop(self, kinds: tuple[tuple[DType, Weak], ...]) -> Loop:
        try:
            loop = self._loops[kinds]
        except KeyError:
            loop = self._loops[kinds] = find_loop(self._table, kinds, self._promotion)
        if loop is None:
            raise wrong_type(tuple([dtype for dtype, _ in kinds]), self.name)
        return self._checked(loop)

    def _loop_of(self, wanted: DType) -> Loop:
        loop = find_loop_for(self._by_output, wanted)
        if loop is None:
            raise wrong_type(wanted, self.name)
        return self._checked(loop)

    def _checked(self, loop: Loop) -> Loop:
        if loop.refusal:
            raise refusal(TypeError, loop.refusal)
        if self.name in _REAL_ONLY and loop.outputs[0].kind == "c":
            raise CannotProve(f"whether {self.name} compiles for complex numbers")
        return loop

    def _layouts(self, loop: Loop, shape: Shape) -> UfuncResult:
        if self.nout == 1:
            return contiguous(shape, loop.outputs[0])
        return tuple([contiguous(shape, dtype) for dtype in loop.outputs])

    def _outputs(self, args: tuple[object, ...], out: object) -> tuple[list[Layout | None], list[Place]]:
        """Return the outputs that the caller gave, None for those to be made, and how each was given."""
        given = args[self.nin :]
        names: list[Place] = list(range(self.nin, self.nin + self.nout))
        if out is not None:
            if given:
                raise refusal(ValueError, "Cannot specify 'out' as both a positional and keyword argument")
            if is_tuple(out) and len(out) != self.nout:
                raise refusal(ValueError, "The 'out' tuple must have exactly one entry per ufunc output")
            if not is_tuple(out) and self.nout != 1:
                raise refusal(ValueError, "'out' must be a tuple of arrays")
            if self.nout != 1:
                raise CannotProve("several outputs in a tuple")
            given = out if is_tuple(out) else (out,)
            names = ["out"]
        outputs = [one for one in given if one is None or isinstance(one, Layout)]
        if len(outputs) < len(given):
            raise CannotProve("an output that is no array")
        return [*outputs, *[None] * (self.nout - len(given))], names

    def _check_output(self, out: Layout, shape: Shape, made: DType, casting: object) -> None:
        if out.shape != shape:
            raise refusal(ValueError, "Out shape is mismatched")
        check_cast(made, out.dtype, casting, "output operand")

    def _remember(self, operands: tuple[object, ...], loop: Loop, shape: Shape, result: UfuncResult) -> None:
        if not _are_found_again(operands):
            return
        if len(self._proved) + len(self._bounded) >= _MOST_PROOFS:
            self._proved.clear()
            self._bounded.clear()
        scalars = [place for place, operand in enumerate(operands) if not isinstance(operand, Layout)]
        if not scalars:
            self._proved[operands] = result
        elif len(scalars) == 1 and 0 not in shape:
            place = scalars[0]
            key = (*operands[:place], type(operands[place]), *operands[place + 1 :])
            if (limits := _limits(operands[place], loop.inputs[place])) is not None:
                self._bounded[key] = _Bounded(result, *limits)


def _are_found_again(operands: tuple[object, ...]) -> bool:
    """Tell whether all layouts are interned: that of an array that is known later is an object of its own."""
    return all(type(one) is Layout or not isinstance(one, Layout) for one in operands)


def _limits(operand: object, dtype: DType) -> tuple[float, float] | None:
    """Return between which scalars what is proved of ``operand`` holds of all of its type; None if it stands alone.

    An int beyond int64 enters promotion as another dtype: what is true of it says nothing of smaller ones. What is true
    of a bool is of both.
    """
    if type(operand) is bool:
        return False, True
    limits = int_bounds(dtype) if type(operand) is int else bounds(dtype)
    return limits if _is_of(operand, limits) else None


def _is_of(number: object, limits: tuple[float, float]) -> bool:
    """Tell whether it is a number of Python's itself that is within ``limits`` with both its parts."""
    return type(number) in _PYTHONS and is_within(number, *limits)  # type: ignore[arg-type]


@cache
def rule_for(qualname: str) -> UfuncRule:
    """Return the rule of a ufunc, by any of its public names.

    Raises
    ------
    KeyError
        If the surface has no ufunc of that name.
    """
    described = surface.load()
    canonical = described.canonical(qualname)
    if canonical != qualname:
        return rule_for(canonical)
    entry = described[qualname]
    if not isinstance(entry, surface.Ufunc):
        raise KeyError(qualname)
    return UfuncRule(entry)


def unlisted(name: str, *types: str) -> UfuncRule:
    """Return the rule of a ufunc that CuPy uses inside and that has no public name."""
    nin, nout = (len(part) for part in types[0].split("->"))
    return UfuncRule(surface.Ufunc(name=name, nin=nin, nout=nout, types=types))
