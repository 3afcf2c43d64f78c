"""``cupy.ufunc`` in the notebook. The path of ``x + y`` is short on purpose: it is what loops are made of."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof.ufuncs import rule_for
from gpu_backend.opstream.surface import Ufunc as Description
from gpu_backend.wire import values as wire
from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.argument_types import ArrayLike, AxisLike, DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.common_client import common
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.documentation import Documented
from kernelproxy.client import Client
from kernelproxy.public_names import maker

#: Proofs kept per ufunc: a loop over ever new shapes must not grow without end.
_MOST_PROOFS = 4_096
#: Operands that travel as they are.
_PLAIN = (int, float, bool)


def _is_operand(value: Any) -> bool:
    return isinstance(value, ArrayCore) or type(value) in _PLAIN


class ufunc(Documented):  # noqa: N801 (CuPy's name)
    """A universal function. Its results are proved by the rule of its name, which remembers what it has proved."""

    __slots__ = ("_alone", "_qualname", "_rule", "description")
    __module__ = "cupy._core._kernel"

    def __init__(self, qualname: str, description: Description) -> None:
        self._qualname = qualname
        self.description = description
        self._rule = rule_for(qualname)
        #: Results for one array operand, by its layout.
        self._alone: dict[Layout, Layout] = {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Apply the function. Arguments and keywords are those of CuPy's ufuncs."""
        if not kwargs and len(args) == self.description.nin and self.description.nout == 1:
            if len(args) == 2:
                return self.binary(args[0], args[1])
            if len(args) == 1:
                return self.unary(args[0])
        result = dispatch.call(self._qualname, args, kwargs)
        return self._in_class(args, kwargs.get("out"), result) if array_core.is_subclassed else result

    def _in_class(self, args: tuple[object, ...], out: Any, result: Any) -> Any:
        """Return the results in the class that CuPy gives them; those that were given are what they are."""
        operands, given = args[: self.nin], args[self.nin :] or (out if isinstance(out, tuple) else (out,))
        if not isinstance(result, tuple):
            return array_core.in_class_of(result, operands) if given[0] is None else result
        pairs = zip(result, (*given, *[None] * self.nout), strict=False)
        return tuple(array_core.in_class_of(one, operands) if of is None else of for one, of in pairs)

    def unary(self, operand: Any) -> Any:
        """Apply the function to one operand; raises what CuPy raises for it."""
        if not isinstance(operand, ArrayCore):
            return dispatch.call(self._qualname, (stands_for(operand),), {})
        proof = self._alone.get(operand._layout)
        client = operand._client
        pipeline = client.pipeline
        if proof is None or proof.nbytes > pipeline.memory.small_bytes:
            found = self._rule.results(operand._layout)
            if isinstance(found, Layout):
                if len(self._alone) >= _MOST_PROOFS:
                    self._alone.clear()
                self._alone[operand._layout] = found
            made = dispatch.run_proved(self._qualname, (operand,), {}, found)
        else:
            in_order = None if client.streams.is_used else proof  # as in `binary`
            args = (operand._ref,)
            stream = client.streams.current_handle()
            handle = pipeline.record(self._qualname, args, 1, None, stream, in_order, None, proof.nbytes, None, proof)
            made = array_core.fresh(client, proof, handle)
        return array_core.in_class_of(made, (operand,)) if array_core.is_subclassed else made

    def binary(self, left: Any, right: Any) -> Any:
        """Apply the function to two operands; raises what CuPy raises for them."""
        left_value = right_value = None
        client: Client | None = None
        if isinstance(left, ArrayCore):
            left_operand, left_value, client = left._layout, left._ref, left._client
        elif type(left) in _PLAIN:
            left_operand = left_value = left
        else:
            return self._binary_of_others(left, right)
        if isinstance(right, ArrayCore):
            right_operand, right_value = right._layout, right._ref
            if client is not right._client:
                client = common(client, right._client)
        elif type(right) in _PLAIN:
            right_operand = right_value = right
        else:
            return self._binary_of_others(left, right)
        proof = self._rule.result(left_operand, right_operand)
        if client is not None and type(proof) is Layout and proof.nbytes <= client.pipeline.memory.small_bytes:
            args, size = (left_value, right_value), proof.nbytes
            if client.streams.is_used:  # memory may be reused only in the order in which all work runs
                stream = client.streams.current_handle()
                handle = client.pipeline.record(self._qualname, args, 1, None, stream, None, None, size, None, proof)
            else:
                handle = client.pipeline.record(self._qualname, args, 1, None, 0, proof, None, size, None, proof)
            made = array_core.fresh(client, proof, handle)
        else:
            made = dispatch.run_proved(self._qualname, (left, right), {}, proof)
        return array_core.in_class_of(made, (left, right)) if array_core.is_subclassed else made

    def _binary_of_others(self, left: Any, right: Any) -> Any:
        """Apply the function to two operands of which one is neither an array nor a number of Python's."""
        operands = [one if _is_operand(one) else stands_for(one) for one in (left, right)]
        if all(map(_is_operand, operands)):
            return self.binary(*operands)
        proof = self._rule.result(*[one._layout if isinstance(one, ArrayCore) else one for one in operands])
        made = dispatch.run_proved(self._qualname, tuple(operands), {}, proof)
        return array_core.in_class_of(made, tuple(operands)) if array_core.is_subclassed else made

    def inplace(self, target: ArrayCore, operand: Any) -> Any:
        """Apply the function to ``target`` and ``operand``, put the result into ``target``, and return that."""
        is_array, client = isinstance(operand, ArrayCore), target._client
        if is_array and operand._client is not client:
            common(client, operand._client)
        proof = self._rule.inplace(target._layout, operand._layout if is_array else operand)
        if proof is None and (is_array or type(operand) in _PLAIN):
            value = operand._ref if is_array else operand
            args = (target._ref, value, target._ref)
            layout = target._layout
            size = layout.nbytes if type(layout) is Layout else 0  # of others it may have to be asked for
            client.pipeline.record(self._qualname, args, 0, None, client.streams.current_handle(), None, None, size)
        else:
            dispatch.call(self._qualname, (target, operand, target), {})
        return target

    # --- what a ufunc is asked ----------------------------------------------------------------------------------------

    @property
    def __name__(self) -> str:
        return self.description.name

    @property
    def name(self) -> str:
        """The name in CuPy's own error messages, such as "cupy_add"."""
        return self.description.name

    @property
    def nin(self) -> int:
        """Number of operands."""
        return self.description.nin

    @property
    def nout(self) -> int:
        """Number of results."""
        return self.description.nout

    @property
    def nargs(self) -> int:
        """Number of operands and results."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The loops, such as "dd->d", in the order in which they are tried."""
        return list(self.description.types)

    @property
    def ntypes(self) -> int:
        """Number of loops."""
        return len(self.description.types)

    def outer(self, left: Any, right: Any, **kwargs: object) -> Any:
        """Apply the function to all pairs of elements."""
        result = dispatch.call(f"{self._qualname}.outer", (left, right), kwargs)
        return array_core.in_class_of(result, (left, right)) if array_core.is_subclassed and not kwargs else result

    def at(self, array: ArrayCore, indices: Any, operand: ArrayLike | None = None) -> None:
        """Apply the function in place, unbuffered, at ``indices``."""
        operands = () if operand is None else (operand,)
        dispatch.call(f"{self._qualname}.at", (array, indices, *operands), {})

    def reduce(
        self, array: ArrayLike, axis: AxisLike = 0, dtype: DTypeLike = None, out: ArrayCore | None = None,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        """Reduce along ``axis``."""
        given: dict[str, object] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        return dispatch.call(f"{self._qualname}.reduce", (array,), given)

    def accumulate(
        self, array: ArrayLike, axis: AxisLike = 0, dtype: DTypeLike = None, out: ArrayCore | None = None
    ) -> Any:
        """Accumulate along ``axis``."""
        return dispatch.call(f"{self._qualname}.accumulate", (array,), {"axis": axis, "dtype": dtype, "out": out})

    def reduceat(
        self, array: ArrayLike, indices: ArrayLike, axis: AxisLike = 0, dtype: DTypeLike = None,
        out: ArrayCore | None = None,
    ) -> Any:  # fmt: skip
        """Reduce the slices that begin at ``indices``."""
        given: dict[str, object] = {"axis": axis, "dtype": dtype, "out": out}
        return dispatch.call(f"{self._qualname}.reduceat", (array, indices), given)

    def __repr__(self) -> str:
        return f"<ufunc '{self.description.name}'>"

    def __reduce__(self) -> Any:
        return maker(), (self._qualname,)

    def _wire_value(self) -> wire.Name:
        return wire.Name(self._qualname)
