"""Of which class a new array is where a program has made classes below ``cupy.ndarray``, as CuPy has it.

CuPy's ufuncs give what they make the class of their first operand that is of such a class; all else that it computes is
a plain ``ndarray``. So a function keeps the class if a ufunc is the last thing that it does. The table says of which
functions that is so, and which parameters are the operands; `tests/cupy_oracle` holds it against native CuPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from gpu_backend.opstream import surface
from gpu_backend.opstream.proof import views
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore

#: By module, "function:operands", with ";" between the results of functions that have several, and "-" for one that is
#: plain. Behind an operand's dot stands what CuPy makes of it first, behind a slash what must not be given, and behind
#: the function's question mark what must be so.
_OPERANDS = {
    "cupy": """\
angle:z around:a clip:a,a_min,a_max diff:a/prepend,append dot?number:a,b ediff1d:arr.flat/to_end,to_begin
inner?number:a,b isclose:a,b,rtol,atol iscomplex:x.imag isneginf:x isposinf:x isreal:x.imag kron:a,b linspace:start,stop
logspace:start,stop outer:a.flat,b.flat round_:a tril:m triu:m where:condition.bool,x,y""",
    "cupy.fft": "fftfreq:n,d rfftfreq:n,d",
    "cupy.ndarray": "clip:self,min,max conj:self conjugate:self dot?number:self,b round:self",
    "cupy.polynomial.polynomial": "polyval:x,c polyvander:x",
    "cupyx.scipy.linalg": "fiedler:a.several khatri_rao:a,b",
    "cupyx.scipy.signal": """\
convolve?number:in1,in2 correlate?number:in1,in2 deconvolve:-;signal,divisor fftconvolve?broadcast:in1,in2
kaiser_atten:numtaps,width kaiser_beta:a lp2bp_zpk:-;-;k lp2bs_zpk:-;-;k lp2hp_zpk:-;p;k lp2lp_zpk:z;p;k
oaconvolve?broadcast:in1,in2 wiener:im.inexact,noise""",
    "cupyx.scipy.special": """\
btdtr:a,b,x btdtri:a,b,p lambertw:z,k,tol log_softmax:x.inexact multigammaln:a.inexact polygamma:n,x softmax:x
spherical_yn:n,z""",
    "cupyx.scipy.stats": "zmap:scores zscore:a",
    "cupyx.signal": "cfar_alpha:pfa,N",
}
#: Views that CuPy makes as new arrays over the same memory: they are plain.
_PLAIN = frozenset(f"cupy.lib.stride_tricks.{name}" for name in ("as_strided", "sliding_window_view"))


def _flat(array: ArrayCore) -> Any:
    return array.ravel() if isinstance(views.ravel(array._layout, "C"), tuple) else None


#: What a ufunc gets for an argument; None if that is a copy, which is plain.
_MADE: dict[str, Callable[[Any], Any]] = {
    "": lambda array: array,
    "bool": lambda array: array if array.dtype.kind == "b" else None,
    "flat": _flat,
    "imag": lambda array: array.imag if array.dtype.kind == "c" else None,
    "inexact": lambda array: array if array.dtype.kind in "fc" else None,
    "several": lambda array: array if array.size > 1 else None,
}
#: When there is a ufunc at the end at all, by the shapes of the operands.
_IF: dict[str, Callable[..., bool]] = {
    "": lambda *shapes: True,
    "number": lambda *shapes: not all(shapes),
    "broadcast": lambda one, other: all(1 in pair for pair in zip(one, other, strict=False)),
}


class _Operand(NamedTuple):
    name: str
    made: str


class _Rule(NamedTuple):
    """Of each result the operands that it is made of; what must be so, and what must not be given."""

    results: tuple[tuple[_Operand, ...], ...]
    condition: str
    unless: tuple[str, ...]


def in_class(qualname: str, args: tuple[object, ...], kwargs: Mapping[str, object], result: Any) -> Any:
    """Return the ``result`` of a call of ``qualname`` in the class that CuPy gives it. To be asked if there are any."""
    if qualname in _PLAIN:
        return array_core.view_of(result, 0, result._layout, array_core.array_class)
    rule = _rules().get(qualname)
    if rule is None:
        return result
    given = _given(qualname, args, kwargs)
    if any(given.get(name) is not None for name in ("out", *rule.unless)):
        return result
    if len(rule.results) == 1:
        return _classed(result, rule.results[0], rule, given)
    return type(result)(_classed(one, of, rule, given) for one, of in zip(result, rule.results, strict=True))


def _classed(result: Any, operands: tuple[_Operand, ...], rule: _Rule, given: Mapping[str, object]) -> Any:
    arrays = [array for one in operands if isinstance(array := given.get(one.name), ArrayCore)]
    plain = array_core.array_class
    is_plain = type(result) is plain and any(type(array) is not plain for array in arrays)
    if not is_plain or not _IF[rule.condition](*(array.shape for array in arrays)):
        return result
    return array_core.in_class_of(result, tuple(_made(operands, given)))


def _made(operands: tuple[_Operand, ...], given: Mapping[str, object]) -> Iterator[Any]:
    for name, made in operands:
        value = given.get(name)
        if isinstance(value, ArrayCore) and (operand := _MADE[made](value)) is not None:
            yield operand


def _given(qualname: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments by their parameters' names."""
    entry = surface.load()[qualname]
    signature_of: Any = surface.signature_with_self if isinstance(entry, surface.Method) else surface.signature_of
    signature = signature_of(entry)
    return {} if signature is None else dict(signature.bind_partial(*args, **kwargs).arguments)


@cache
def _rules() -> dict[str, _Rule]:
    found = {}
    for module, text in _OPERANDS.items():
        for one in text.split():
            head, _, rest = one.partition(":")
            function, _, condition = head.partition("?")
            results, _, unless = rest.partition("/")
            found[f"{module}.{function}"] = _Rule(
                tuple(_operands(of) for of in results.split(";")), condition, tuple(filter(None, unless.split(",")))
            )
    return found


def _operands(text: str) -> tuple[_Operand, ...]:
    split = (one.partition(".") for one in text.split(",") if one != "-")
    return tuple(_Operand(name, made) for name, _, made in split)


def told_of() -> frozenset[str]:
    """Return the functions and methods that the table tells of."""
    return _PLAIN.union(_rules())
