"""The C++ text of an elementwise kernel.

One call visits all elements in a nest of loops whose innermost the compiler can vectorise. A kernel that speaks of
threads (``threadIdx``, ``__syncthreads``, ...) is run as CuPy would, by a grid of threads; so is one that asks an array
which the loop goes over for its shape, by the name that CuPy's own text gives it (``_raw_y`` for ``y``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpu_backend.devices.cpu.kernels.loops import Step
from gpu_backend.devices.cpu.kernels.parameters import DType, ParameterInfo, typedefs
from gpu_backend.devices.cpu.kernels.typenames import type_name

_THREADS = re.compile(
    r"\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize|CUPY_FOR|cooperative_groups|__shared__|__activemask"
    r"|__sync\w+|__shfl\w*|__\w+_sync|_raw_\w+)\b"
)
_LEAVES = re.compile(r"\b(?:return|break)\b")


class Body(NamedTuple):
    """What the user wrote."""

    operation: str
    preamble: str
    loop_prep: str
    after_loop: str

    def mentions(self, pattern: str) -> bool:
        """Tell whether any part of it contains ``pattern`` as a word."""
        return any(re.search(rf"\b(?:{pattern})\b", part) for part in self)

    @property
    def needs_threads(self) -> bool:
        """Whether it can tell a thread from a loop."""
        return any(_THREADS.search(part) for part in self)


class Operand(NamedTuple):
    """One argument as the code sees it.

    ``step`` is set for an array that the loop goes over; ``ndim`` and ``contiguous`` for one that the code indexes.
    A scalar has neither.
    """

    param: ParameterInfo
    dtype: DType
    step: Step | None = None
    ndim: int | None = None
    contiguous: bool = False

    @property
    def ctype(self) -> str:
        """Its C++ type."""
        return self.param.ctype if self.param.dtype is None and self.param.ctype else type_name(self.dtype)


class Spec(NamedTuple):
    """All that the text depends on."""

    body: Body
    placeholders: tuple[tuple[str, DType], ...]
    operands: tuple[Operand, ...]
    loops: int  #: loops of the nest
    ndim: int  #: axes of the shape that ``_ind`` tells of
    threads: bool  #: whether a grid of threads runs it


def elementwise_code(spec: Spec) -> str:
    """Return the text of the kernel ``_gpu_kernel(values, layout)``.

    ``values`` holds the address of each operand's first element; ``layout`` the number of elements, the shape of
    ``_ind``, the numbers of the loop nest (of each array, for threads), then shape and strides of each raw array.
    """
    declared = _operand_declarations(spec)
    loop = _thread_loop(spec) if spec.threads else _nested_loop(spec)
    return (
        f"{typedefs(spec.placeholders)}{spec.body.preamble}\n"
        'extern "C" __global__ void _gpu_kernel(void *const *_gpu_values, const ptrdiff_t *_gpu_layout) {\n'
        "  [[maybe_unused]] const ptrdiff_t _gpu_count = *_gpu_layout++;\n"
        f"  CIndexer<{spec.ndim}> _ind(_gpu_layout);\n  _gpu_layout += {spec.ndim};\n"
        f"{declared}\n{spec.body.loop_prep};\n{loop}\n{spec.body.after_loop};\n}}\n"
    )


def _const(param: ParameterInfo) -> str:
    return "const " if param.is_const else ""


def _operand_declarations(spec: Spec) -> str:
    """Return the nest's own numbers, then a declaration for every scalar and every array that the code indexes."""
    walked = sum(operand.step is not None for operand in spec.operands)
    lines = []
    position = 0
    if not spec.threads:
        lines.append("  const ptrdiff_t *const _gpu_nest = _gpu_layout;")
        position = spec.loops * (1 + walked)
    for number, operand in enumerate(spec.operands):
        name, ctype = operand.param.name, operand.ctype
        pointer = f"static_cast<{ctype} *>(_gpu_values[{number}])"
        if operand.step is None and operand.ndim is None:
            lines.append(f"  [[maybe_unused]] {_const(operand.param)}{ctype} {name} = *{pointer};")
        elif operand.step is None or spec.threads:
            ndim = operand.ndim if operand.ndim is not None else spec.ndim
            kind = f"CArray<{ctype}, {ndim}, {int(operand.contiguous)}, 1>"
            shown = name if operand.step is None else f"_raw_{name}"
            where = f"_gpu_layout + {position}, _gpu_layout + {position + ndim}"
            lines.append(f"  [[maybe_unused]] {_const(operand.param)}{kind} {shown}({pointer}, {where});")
            position += 2 * ndim
    return "\n".join(lines)


def _operation(body: Body, *, leaves: bool) -> str:
    # On the GPU one thread has one element, so `return` and `break` end the work on that element.
    if leaves and (_LEAVES.search(body.operation) or _LEAVES.search(body.preamble)):
        return f"[&]() __attribute__((always_inline)) {{ do {{\n{body.operation};\n}} while (0); }}();"
    return f"{{\n{body.operation};\n}}"


def _nested_loop(spec: Spec) -> str:
    walked = [(n, operand) for n, operand in enumerate(spec.operands) if operand.step is not None]
    bases, elements = [], []
    for position, (number, operand) in enumerate(walked):
        const, ctype = _const(operand.param), operand.ctype
        bases.append(
            f"    char *const _gpu_base{number} = static_cast<char *>(_gpu_values[{number}])"
            f" + _gpu_walk.offset[{position}];"
        )
        stride = f"_gpu_nest[{spec.loops * (position + 2) - 1}]"
        at = {
            "unit": f"reinterpret_cast<{ctype} *>(_gpu_base{number})[_gpu_j]",
            "none": f"*reinterpret_cast<{ctype} *>(_gpu_base{number})",
            "any": f"*reinterpret_cast<{ctype} *>(_gpu_base{number} + _gpu_j * {stride})",
        }[operand.step or "any"]
        elements.append(f"      [[maybe_unused]] {const}{ctype} &{operand.param.name} = {at};")
    index = "      _ind.set(i);\n" if spec.body.mentions(r"_ind\s*\.\s*get") else ""
    return (
        f"  const ptrdiff_t _gpu_inner = _gpu_nest[{spec.loops - 1}];\n"
        f"  gpu::Walk<{spec.loops - 1}, {len(walked)}> _gpu_walk(_gpu_nest, _gpu_nest + {spec.loops}, {spec.loops});\n"
        "  for (ptrdiff_t _gpu_first = 0; _gpu_first < _gpu_count; _gpu_first += _gpu_inner, _gpu_walk.next()) {\n"
        + "".join(base + "\n" for base in bases)
        + "    for (ptrdiff_t _gpu_j = 0; _gpu_j < _gpu_inner; ++_gpu_j) {\n"
        + "      [[maybe_unused]] ptrdiff_t i = _gpu_first + _gpu_j;\n"
        + index
        + "".join(element + "\n" for element in elements)
        + _operation(spec.body, leaves=True)
        + "\n    }\n  }"
    )


def _thread_loop(spec: Spec) -> str:
    walked: Sequence[Operand] = [operand for operand in spec.operands if operand.step is not None]
    elements = "".join(
        f"    [[maybe_unused]] {_const(o.param)}{o.ctype} &{o.param.name} = _raw_{o.param.name}[i];\n" for o in walked
    )
    return f"  CUPY_FOR(i, _gpu_count) {{\n    _ind.set(i);\n{elements}{_operation(spec.body, leaves=False)}\n  }}"
