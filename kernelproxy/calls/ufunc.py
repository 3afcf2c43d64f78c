"""``cupy.ufunc`` in the notebook. The path of ``x + y`` is short on purpose: it is what loops are made of."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof.outcome import Later
from gpu_backend.opstream.proof.scalars import is_within
from gpu_backend.opstream.proof.ufuncs import rule_for
from gpu_backend.opstream.surface import Ufunc as Description
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import array_core, dispatch, overrides, selections
from kernelproxy.calls.argument_types import ArrayLike, AxisLike, DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.common_client import common
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.documentation import Documented
from kernelproxy.calls.elsewhere import reaches_over
from kernelproxy.calls.later_layout import LaterLayout, known_layout
from kernelproxy.calls.scalars import NUMBERS, SCALARS, sent_number
from kernelproxy.calls.unknown_rows import form_for_later, made_again
from kernelproxy.client import Client
from kernelproxy.public_names import maker
from kernelproxy.stream.forms import Form, OpKind

#: How many frames of ours there are at least between the pipeline and who called a ufunc.
_DEPTH = 4
_Key = tuple[Any, ...]
_Limits = tuple[float, float] | None


def _is_operand(value: Any) -> bool:
    return isinstance(value, ArrayCore) or type(value) in NUMBERS


class ufunc(Documented):  # noqa: N801 (CuPy's name)
    """A universal function. Its results are proved by the rule of its name, which remembers what it has proved."""

    __slots__ = ("_qualname", "_rule", "_verb", "description")
    __module__ = "cupy._core._kernel"

    def __init__(self, qualname: str, description: Description, operator: str = "") -> None:
        self._qualname = qualname
        #: What carries it out: itself, unless CuPy's ``operator`` gives its results in a way of its own.
        self._verb = operator or qualname
        self.description = description
        self._rule = rule_for(qualname)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Apply the function. Arguments and keywords are those of CuPy's ufuncs."""
        if not kwargs and len(args) == self.description.nin and self.description.nout == 1:
            if len(args) == 2:
                return self.binary(args[0], args[1])
            if len(args) == 1:
                return self.unary(args[0])
        own = overrides.elementwise(self, args)
        if own is not None:
            return own(*args, **kwargs)
        result = dispatch.call(self._qualname, args, kwargs)
        return self._in_class(args, kwargs.get("out"), result) if array_core.is_subclassed else result

    __call__ = compiled.quick("ufunc", __call__)

    def _in_class(self, args: tuple[object, ...], out: Any, result: Any) -> Any:
        """Return the results in the class that CuPy gives them; those that were given are what they are."""
        operands, given = args[: self.nin], args[self.nin :] or (out if isinstance(out, tuple) else (out,))
        if not isinstance(result, tuple):
            return array_core.in_class_of(result, operands) if given[0] is None else result
        pairs = zip(result, (*given, *[None] * self.nout), strict=False)
        return tuple(array_core.in_class_of(one, operands) if of is None else of for one, of in pairs)

    def unary(self, operand: Any) -> Any:
        """Apply the function to one operand; raises what CuPy raises for it."""
        is_array = isinstance(operand, ArrayCore)
        if (array_core.is_subclassed or not is_array) and (own := overrides.elementwise(self, (operand,))) is not None:
            return own(operand)
        if not is_array:
            return dispatch.call(self._qualname, (stands_for(operand),), {})
        client, layout = operand._client, operand._layout
        pipeline = client.pipeline
        form = pipeline.forms.get((self._verb, layout))
        if form is None or not pipeline.memory.is_sure(form.size) or client.streams.is_used:
            made = self._anew(client, (self._verb, layout), (operand,))
        else:
            made = array_core.fresh(client, form.made, pipeline.note(form, (operand._ref,), _DEPTH))
        return array_core.in_class_of(made, (operand,)) if array_core.is_subclassed else made

    def binary(self, left: Any, right: Any) -> Any:
        """Apply the function to two operands; raises what CuPy raises for them."""
        if isinstance(left, ArrayCore):
            if isinstance(right, ArrayCore):
                return self._of_arrays(left, right)
            if type(right) in NUMBERS:
                return self._of_number(left, right, left, right, (self._verb, left._layout, type(right)))
        elif isinstance(right, ArrayCore) and type(left) in NUMBERS:
            return self._of_number(left, right, right, left, (self._verb, type(left), right._layout))
        return self._binary_of_others(left, right)

    def _of_arrays(self, left: ArrayCore, right: ArrayCore) -> Any:
        """Apply the function to two arrays; raises what CuPy raises for them. The path of ``x + y``."""
        if array_core.is_subclassed and (own := overrides.elementwise(self, (left, right))) is not None:
            return own(left, right)
        client = left._client
        if client is not right._client:
            common(client, right._client)
        pipeline, key = client.pipeline, (self._verb, left._layout, right._layout)
        form = pipeline.forms.get(key)
        if form is None or not pipeline.memory.is_sure(form.size) or client.streams.is_used:
            made = self._anew(client, key, (left, right))
        else:
            made = array_core.fresh(client, form.made, pipeline.note(form, (left._ref, right._ref), _DEPTH))  # type: ignore[arg-type]
        return array_core.in_class_of(made, (left, right)) if array_core.is_subclassed else made

    def _of_number(self, left: Any, right: Any, array: ArrayCore, number: float, key: _Key) -> Any:
        """Apply the function to ``left`` and ``right``, which are an ``array`` and a ``number`` in some order."""
        if array_core.is_subclassed and (own := overrides.elementwise(self, (array,))) is not None:
            return own(left, right)
        client, has_type = array._client, type(number) in SCALARS
        pipeline = client.pipeline
        form = pipeline.forms.get(key)
        if (
            form is None or not (has_type or is_within(number, form.low, form.high))
            or not pipeline.memory.is_sure(form.size) or client.streams.is_used
        ):  # fmt: skip
            made = self._anew(client, key, (left, right), None if has_type else number)
        else:
            sent = sent_number(number)
            args = (array._ref, sent) if array is left else (sent, array._ref)
            made = array_core.fresh(client, form.made, pipeline.note(form, args, _DEPTH))  # type: ignore[arg-type]
        return array_core.in_class_of(made, (array,)) if array_core.is_subclassed else made

    def _anew(self, client: Client, key: _Key, operands: tuple[Any, ...], number: float | None = None) -> Any:
        """Apply the function to operands that no form is found for by ``key``, as it stands.

        Only numbers like ``number``, one of Python's, are of the same form, if it is given.
        """
        if LaterLayout in map(type, key):
            made = self._of_unknown(client, key, operands, number)
            if made is not None:
                return made
            parts = zip(key[1:], operands, strict=True)
            key = (self._verb, *[known_layout(one) if isinstance(one, ArrayCore) else part for part, one in parts])
        given = tuple([dispatch.layouts(one) for one in operands])
        proof = self._rule.result(*given) if len(given) == 2 else self._rule.results(*given)
        limits = (0, 0) if number is None else self._rule.limits(*given)
        self._remember(client, key, proof, limits)
        return dispatch.run_proved(self._verb, operands, {}, proof)

    def _remember(self, client: Client, key: _Key, proof: object, limits: _Limits) -> None:
        """Have the op that is proved for ``key`` found at once from now on, for numbers within ``limits``."""
        forms, takes_out = client.pipeline.forms, self._verb is self._qualname
        if type(proof) is Layout and limits is not None and key not in forms:
            forms.keep(key, forms.of(OpKind(self._verb, 1, None, proof.nbytes, None, proof, takes_out), *limits))

    def _of_unknown(self, client: Client, key: _Key, operands: tuple[Any, ...], number: float | None) -> Any:
        """Apply the function where the length of an operand is not known; None if it must be known."""
        known_as = selections.known_as(key)
        if known_as is None:
            return None
        forms = client.pipeline.forms
        form = forms.get(known_as)
        if (
            form is not None and (number is None or is_within(number, form.low, form.high))
            and client.pipeline.memory.is_sure(form.size) and not client.streams.is_used
        ):  # fmt: skip
            args = tuple([one._ref if isinstance(one, ArrayCore) else sent_number(one) for one in operands])
            return made_again(client, form, operands, args, _DEPTH)
        proof = selections.prove(self._qualname, operands)
        if not proof:
            return None
        limits: _Limits = (0, 0)
        if number is not None:
            samples = selections.sample(operands[0]), selections.sample(operands[1])
            self._rule.result(*samples)  # what the proof rests on, the rule may have forgotten since
            limits = self._rule.limits(*samples)
        if isinstance(proof, Later) and limits is not None:
            forms.keep(known_as, form_for_later(forms, self._verb, proof, dispatch.largest(operands, proof), *limits))
        return dispatch.run_proved(self._verb, operands, {}, proof)

    def _binary_of_others(self, left: Any, right: Any) -> Any:
        """Apply the function to two operands that are not arrays, or an array and a number."""
        own = overrides.elementwise(self, (left, right))
        if own is not None:
            return own(left, right)
        operands = [one if _is_operand(one) else stands_for(one) for one in (left, right)]
        if all(map(_is_operand, operands)) and any(isinstance(one, ArrayCore) for one in operands):
            return self.binary(*operands)
        proof = selections.prove(self._qualname, tuple(operands)) or self._rule.result(*map(dispatch.layouts, operands))
        made = dispatch.run_proved(self._verb, tuple(operands), {}, proof)
        return array_core.in_class_of(made, tuple(operands)) if array_core.is_subclassed else made

    def inplace(self, target: ArrayCore, operand: Any) -> Any:
        """Apply the function to ``target`` and ``operand``, put the result into ``target``, and return that."""
        if array_core.is_subclassed and (own := overrides.elementwise(self, (target, operand))) is not None:
            return own(target, operand, target)
        client, layout = target._client, target._layout
        of: object = type(operand)
        is_array = isinstance(operand, ArrayCore)
        if is_array:
            of = operand._layout
            if operand._client is not client:
                common(client, operand._client)
        pipeline = client.pipeline
        key: _Key = (layout, self._qualname, of)
        form = pipeline.forms.get(key)
        has_type = is_array or of in SCALARS
        if form is None and LaterLayout in map(type, key):
            key = selections.known_as(key) or key
            form = pipeline.forms.get(key)
        if form is None or not (has_type or is_within(operand, form.low, form.high)):
            form = self._form_inplace(client, key, target, operand)
        args = (target._ref, operand._ref if is_array else sent_number(operand), target._ref)
        if form is not None and not reaches_over(client, args):
            pipeline.note(form, args, _DEPTH, None, client.streams.current_handle())
        else:
            dispatch.call(self._qualname, (target, operand, target), {})
        return target

    def _form_inplace(self, client: Client, key: _Key, array: ArrayCore, operand: Any) -> Form | None:
        """Return the form of ``array op= operand``; None if it is not proved.

        It is found at once from now on by ``key``; by the lengths themselves, if they had to be asked for.
        """
        target, given = array._layout, dispatch.layouts(operand)
        is_array = isinstance(operand, ArrayCore)
        if selections.is_inplace_proved(self._qualname, target, given):
            target, given = selections.sample(array), selections.sample(operand)
        else:
            target, given = known_layout(array), known_layout(operand) if is_array else given
            key = (target, self._qualname, given if is_array else type(operand))
        proof = self._rule.inplace(target, given)  # also where that is known: the rule may have forgotten since
        if proof is not None or not (is_array or type(operand) in NUMBERS):
            return None
        size = dispatch.largest((array,), None)
        limits = (0, 0) if is_array or type(operand) in SCALARS else self._rule.limits_inplace(target, operand)
        form = client.pipeline.forms.of(OpKind(self._qualname, 0, None, size), *limits or (0, 0))
        if limits is not None and LaterLayout not in map(type, key):
            client.pipeline.forms.keep(key, form)
        return form

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


compiled.learn(Ufunc=ufunc)
