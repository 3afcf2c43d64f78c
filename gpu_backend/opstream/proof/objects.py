"""Rules of constructors whose objects stay remote: kernels, random states, generators of random bits."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpu_backend.opstream.proof.arguments import as_bool, as_text
from gpu_backend.opstream.proof.kernels import parameters_of
from gpu_backend.opstream.proof.outcome import CannotProve, Made
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.values import is_tuple

_KERNEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*")
_BITS = tuple(f"cupy.random.{name}" for name in ("XORWOW", "MRG32k3a", "Philox4x3210"))
#: What the states of one generator need at most, in bytes: 256,000 of the largest.
_STATE_BYTES = 256_000 * 80


def _require_texts(*texts: object) -> None:
    for text in texts:
        as_text(text)


def _require_parameters(in_params: object, out_params: object, name: object) -> int:
    """End unless the parameter lists are well-formed; return how many outputs there are."""
    if not _KERNEL_NAME.fullmatch(as_text(name)):
        raise CannotProve("a name that no kernel can have")
    inputs, outputs = parameters_of(as_text(in_params)), parameters_of(as_text(out_params))
    if any(parameter.name == "i" for parameter in inputs + outputs):
        raise CannotProve("a parameter called 'i'")
    return len(outputs)


@rule("cupy.ElementwiseKernel")
def elementwise_kernel(
    in_params: object, out_params: object, operation: object, name: object = "kernel", reduce_dims: object = True,
    preamble: object = "", no_return: object = False, return_tuple: object = False, **options: object,
) -> Made:  # fmt: skip
    """As CuPy, which compiles at the first launch."""
    _require_parameters(in_params, out_params, name)
    _require_texts(operation, preamble, *[one for one in options.values() if not isinstance(one, tuple)])
    as_bool(reduce_dims), as_bool(no_return), as_bool(return_tuple)
    return Made("cupy.ElementwiseKernel")


@rule("cupy.ReductionKernel")
def reduction_kernel(
    in_params: object, out_params: object, map_expr: object, reduce_expr: object, post_map_expr: object,
    identity: object, name: object = "reduce_kernel", reduce_type: object = None, reduce_dims: object = True,
    preamble: object = "", options: object = (),
) -> Made:  # fmt: skip
    """As CuPy, which compiles at the first launch."""
    if not _require_parameters(in_params, out_params, name):
        raise CannotProve("a reduction to nothing")
    _require_texts(map_expr, reduce_expr, post_map_expr, preamble, "" if reduce_type is None else reduce_type)
    if not (identity is None or isinstance(identity, (str, int, float))) or not is_tuple(options):
        raise CannotProve("an identity of another kind, or options in other than a tuple")
    as_bool(reduce_dims)
    return Made("cupy.ReductionKernel")


def _require_nvrtc(options: object, backend: object, jitify: object) -> None:
    if not is_tuple(options) or backend != "nvrtc" or jitify is not None:
        raise CannotProve("another compiler, or options in other than a tuple")
    _require_texts(*options)


@rule("cupy.RawKernel")
def raw_kernel(
    code: object, name: object, options: object = (), backend: object = "nvrtc", *, translate_cucomplex: object = False,
    enable_cooperative_groups: object = False, jitify: object = None,
) -> Made:  # fmt: skip
    """As CuPy, which compiles at the first launch."""
    _require_texts(code, name)
    _require_nvrtc(options, backend, jitify)
    as_bool(translate_cucomplex), as_bool(enable_cooperative_groups)
    return Made("cupy.RawKernel")


@rule("cupy.RawModule")
def raw_module(
    *, code: object = None, path: object = None, options: object = (), backend: object = "nvrtc",
    translate_cucomplex: object = False, enable_cooperative_groups: object = False, name_expressions: object = None,
    jitify: object = None,
) -> Made:  # fmt: skip
    """As CuPy, which compiles when a function is asked for."""
    if path is not None or not isinstance(name_expressions, (tuple, list, type(None))):
        raise CannotProve("a compiled file, or names in another container")
    _require_texts(code, *(name_expressions or ()))
    _require_nvrtc(options, backend, jitify)
    as_bool(translate_cucomplex), as_bool(enable_cooperative_groups)
    return Made("cupy.RawModule")


@rule("cupy.cuda.MemoryPool")
def memory_pool() -> Made:
    """As CuPy, of its usual memory."""
    return Made("cupy.cuda.MemoryPool")


@rule("cupy.random.RandomState")
def random_state(seed: object = None, method: object = None) -> Made:
    """As CuPy, with its usual method."""
    if method is not None or not (seed is None or (type(seed) is int and 0 <= seed < 1 << 64)):
        raise CannotProve("another method, or a seed of another kind")
    return Made("cupy.random.RandomState")


def _bits(qualname: str) -> Callable[..., Made]:
    def made(seed: object = None, *, size: object = -1) -> Made:
        if size != -1 or not (seed is None or (type(seed) is int and seed >= 0)):
            raise CannotProve("another number of states, or a seed of another kind")
        return Made(qualname, _STATE_BYTES)

    return made


for _qualname in _BITS:
    rule(_qualname)(_bits(_qualname))


@rule("cupy.random.Generator")
def generator(bit_generator: object) -> Made:
    """As CuPy, of one of its own generators of random bits."""
    if getattr(type(bit_generator), "_qualname", "") not in _BITS:
        raise CannotProve("bits of another source")
    return Made("cupy.random.Generator")


@rule("cupy.random.default_rng")
def default_rng(seed: object = None) -> Made:
    """As CuPy."""
    if getattr(type(seed), "_qualname", "") in _BITS:
        return generator(seed)
    return Made("cupy.random.Generator", _bits(_BITS[0])(seed).nbytes)
