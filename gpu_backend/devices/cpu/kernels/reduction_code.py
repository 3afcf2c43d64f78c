"""The C++ text of a reduction kernel.

As on the GPU, ``lanes`` partial results take the mapped elements in turn and are then joined pairwise as a tree, so
that rounding errors stay small and results are those of CuPy's own kernel. Outputs are worked on in tiles so that the
inner loop runs over what lies side by side in memory: the outputs of a tile or, for a tile of one, its lanes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpu_backend.devices.cpu.kernels.loops import Step
from gpu_backend.devices.cpu.kernels.parameters import DType, ParameterInfo, typedefs
from gpu_backend.devices.cpu.kernels.typenames import type_name


class ReductionBody(NamedTuple):
    """What the user wrote."""

    map_expr: str
    reduce_expr: str
    post_map_expr: str
    identity: str
    reduce_type: str
    preamble: str

    def mentions(self, pattern: str) -> bool:
        """Tell whether any part of it contains ``pattern`` as a word."""
        return any(re.search(rf"\b(?:{pattern})\b", part) for part in self)


class ReductionOperand(NamedTuple):
    """One argument as the code sees it: a walked array (``steps``), an indexed one (``ndim``), or else a scalar.

    ``steps`` tells how it moves along the innermost reduced and the innermost kept axis.
    """

    param: ParameterInfo
    dtype: DType
    steps: tuple[Step, Step] | None = None
    ndim: int | None = None
    contiguous: bool = False

    @property
    def ctype(self) -> str:
        """Its C++ type."""
        return self.param.ctype if self.param.dtype is None and self.param.ctype else type_name(self.dtype)


class ReductionSpec(NamedTuple):
    """All that the text depends on."""

    body: ReductionBody
    placeholders: tuple[tuple[str, DType], ...]
    inputs: tuple[ReductionOperand, ...]
    outputs: tuple[ReductionOperand, ...]
    reduced: int  #: loops over the reduced axes
    kept: int  #: loops over the kept axes, for the inputs
    out_loops: int  #: loops over the outputs
    in_ndim: int  #: axes that ``_in_ind`` tells of
    out_ndim: int  #: axes that ``_out_ind`` tells of
    single: bool  #: whether a tile has one output
    wide: bool  #: whether ``IndexT`` has 64 bits


def reduction_code(spec: ReductionSpec) -> str:
    """Return the text of the kernel ``_gpu_kernel(values, layout)``.

    ``layout`` holds: number of outputs, elements reduced into each, lanes, outputs of a tile; the shapes of ``_in_ind``
    and ``_out_ind``; the nest of reduced axes, that of kept axes, that of the outputs; shape and strides of each raw
    array.
    """
    body = spec.body
    return (
        f"{typedefs(spec.placeholders)}typedef {'long long' if spec.wide else 'int'} IndexT;\n{body.preamble}\n"
        f"#define REDUCE(a, b) ({body.reduce_expr})\n#define POST_MAP(a) ({body.post_map_expr})\n"
        f"typedef {body.reduce_type} _type_reduce;\n"
        'extern "C" __global__ void _gpu_kernel(void *const *_gpu_values, const ptrdiff_t *_gpu_layout) {\n'
        "  const ptrdiff_t _gpu_outs = _gpu_layout[0], _gpu_length = _gpu_layout[1], _gpu_lanes = _gpu_layout[2],\n"
        "                  _gpu_tile = _gpu_layout[3];\n"
        f"  CIndexer<{spec.in_ndim}> _in_ind(_gpu_layout + 4);\n"
        f"  CIndexer<{spec.out_ndim}> _out_ind(_gpu_layout + {4 + spec.in_ndim});\n"
        f"{_nests(spec)}{_declarations(spec)}"
        "  _type_reduce *const _gpu_partial =\n"
        "      static_cast<_type_reduce *>(malloc(_gpu_lanes * _gpu_tile * sizeof(_type_reduce)));\n"
        f"{_tiles(spec)}"
        "  free(_gpu_partial);\n}\n"
    )


def _walked(operands: tuple[ReductionOperand, ...]) -> list[tuple[int, ReductionOperand]]:
    return [(n, operand) for n, operand in enumerate(operands) if operand.steps is not None]


def _nests(spec: ReductionSpec) -> str:
    """Declare where each nest's numbers begin, and a walk for each."""
    ins, outs = len(_walked(spec.inputs)), len(_walked(spec.outputs))
    reduced = 4 + spec.in_ndim + spec.out_ndim
    kept = reduced + spec.reduced * (1 + ins)
    out = kept + spec.kept * (1 + ins)
    return (
        f"  const ptrdiff_t *const _gpu_reduced = _gpu_layout + {reduced};\n"
        f"  const ptrdiff_t *const _gpu_kept = _gpu_layout + {kept};\n"
        f"  [[maybe_unused]] const ptrdiff_t *const _gpu_out = _gpu_layout + {out};\n"
        f"  _gpu_layout += {out + spec.out_loops * (1 + outs)};\n"
        f"  gpu::Walk<{spec.kept}, {ins}> _gpu_at_kept(_gpu_kept, _gpu_kept + {spec.kept}, {spec.kept});\n"
        f"  gpu::Walk<{spec.out_loops}, {outs}> _gpu_at_out(_gpu_out, _gpu_out + {spec.out_loops}, {spec.out_loops});\n"
    )


def _declarations(spec: ReductionSpec) -> str:
    lines, position = [], 0
    for number, operand in enumerate((*spec.inputs, *spec.outputs)):
        const, name, ctype = "const " if operand.param.is_const else "", operand.param.name, operand.ctype
        pointer = f"static_cast<{ctype} *>(_gpu_values[{number}])"
        if operand.ndim is not None:
            kind = f"CArray<{ctype}, {operand.ndim}, {int(operand.contiguous)}, 1>"
            where = f"_gpu_layout + {position}, _gpu_layout + {position + operand.ndim}"
            lines.append(f"  [[maybe_unused]] {const}{kind} {name}({pointer}, {where});\n")
            position += 2 * operand.ndim
        elif operand.steps is None:
            lines.append(f"  [[maybe_unused]] {const}{ctype} {name} = *{pointer};\n")
    return "".join(lines)


def _tiles(spec: ReductionSpec) -> str:
    ins = len(_walked(spec.inputs))
    # The offsets of a tile's outputs: by a stride, or from a table where the kept axes are not one.
    table = "" if spec.kept == 1 or not ins else f"    ptrdiff_t _gpu_offsets[{ins}][_gpu_width];\n"
    fill = "".join(f" _gpu_offsets[{a}][_gpu_s] = _gpu_at_kept.offset[{a}];" for a in range(ins)) if table else ""
    start = "".join(f"    const ptrdiff_t _gpu_start{a} = _gpu_at_kept.offset[{a}];\n" for a in range(ins))
    step = (
        f"    for (ptrdiff_t _gpu_s = 0; _gpu_s < _gpu_width; ++_gpu_s) {{{fill} _gpu_at_kept.next(); }}\n"
        if ins
        else ""
    )
    return (
        "  for (ptrdiff_t _gpu_base = 0; _gpu_base < _gpu_outs; _gpu_base += _gpu_tile) {\n"
        "    const ptrdiff_t _gpu_width = min(_gpu_tile, _gpu_outs - _gpu_base);\n"
        "    for (ptrdiff_t _gpu_k = 0; _gpu_k < _gpu_lanes * _gpu_width; ++_gpu_k)\n"
        f"      _gpu_partial[_gpu_k] = _type_reduce({spec.body.identity});\n"
        f"{table}{start}{step}{_accumulate(spec)}{_join()}{_finish(spec)}  }}\n"
    )


def _element(spec: ReductionSpec, lane: str) -> str:
    """Return the statements that take element ``_J`` of output ``_i`` into the partial result ``lane``."""
    lines = []
    for position, (number, operand) in enumerate(_walked(spec.inputs)):
        inner, outer = operand.steps or ("any", "any")
        kept = {
            "unit": f"_gpu_s * static_cast<ptrdiff_t>(sizeof({operand.ctype}))",
            "none": "0",
            "any": f"_gpu_s * _gpu_kept[{1 + position}]",
        }[outer]
        if spec.single:
            along = {
                "unit": f"_gpu_t * static_cast<ptrdiff_t>(sizeof({operand.ctype}))",
                "none": "0",
                "any": f"_gpu_t * _gpu_reduced[{spec.reduced * (position + 2) - 1}]",
            }[inner]
            where = f"_gpu_start{position} + _gpu_at.offset[{position}] + {along}"
        elif spec.kept == 1:
            where = f"_gpu_start{position} + _gpu_at.offset[{position}] + {kept}"
        else:
            where = f"_gpu_offsets[{position}][_gpu_s] + _gpu_at.offset[{position}]"
        const = "const " if operand.param.is_const else ""
        reference = "" if operand.param.is_const else "&"
        lines.append(
            f"        [[maybe_unused]] {const}{operand.ctype} {reference}{operand.param.name} = "
            f"*reinterpret_cast<{operand.ctype} *>(static_cast<char *>(_gpu_values[{number}]) + {where});\n"
        )
    index = "        _in_ind.set(_j);\n" if spec.body.mentions(r"_in_ind\s*\.\s*get") else ""
    return (
        "        [[maybe_unused]] const ptrdiff_t _j = _i + static_cast<ptrdiff_t>(_J) * _gpu_outs;\n"
        f"{index}{''.join(lines)}"
        f"        _type_reduce _s = {lane}, _a = static_cast<_type_reduce>({spec.body.map_expr});\n"
        f"        {lane} = REDUCE(_s, _a);\n"
    )


def _accumulate(spec: ReductionSpec) -> str:
    ins = len(_walked(spec.inputs))
    if spec.single:
        # Along the innermost reduced axis in runs of at most one element for each lane.
        return (
            f"    gpu::Walk<{spec.reduced - 1}, {ins}> _gpu_at(_gpu_reduced, _gpu_reduced + {spec.reduced}, "
            f"{spec.reduced});\n"
            f"    const ptrdiff_t _gpu_run = _gpu_reduced[{spec.reduced - 1}];\n"
            "    [[maybe_unused]] const ptrdiff_t _i = _gpu_base;\n"
            "    ptrdiff_t _gpu_lane = 0;\n"
            "    for (ptrdiff_t _gpu_row = 0; _gpu_row < _gpu_length; _gpu_row += _gpu_run, _gpu_at.next())\n"
            "    for (ptrdiff_t _gpu_from = 0, _gpu_to; _gpu_from < _gpu_run; _gpu_from = _gpu_to) {\n"
            "      _gpu_to = min(_gpu_run, _gpu_from + _gpu_lanes - _gpu_lane);\n"
            "      _type_reduce *const _gpu_lane_of = _gpu_partial + _gpu_lane - _gpu_from;\n"
            "      for (ptrdiff_t _gpu_t = _gpu_from; _gpu_t < _gpu_to; ++_gpu_t) {\n"
            "        [[maybe_unused]] const IndexT _J = static_cast<IndexT>(_gpu_row + _gpu_t);\n"
            f"{_element(spec, '_gpu_lane_of[_gpu_t]')}"
            "      }\n"
            "      _gpu_lane = (_gpu_lane + _gpu_to - _gpu_from) & (_gpu_lanes - 1);\n"
            "    }\n"
        )
    return (
        f"    gpu::Walk<{spec.reduced}, {ins}> _gpu_at(_gpu_reduced, _gpu_reduced + {spec.reduced}, {spec.reduced});\n"
        "    for (ptrdiff_t _gpu_J = 0; _gpu_J < _gpu_length; ++_gpu_J, _gpu_at.next()) {\n"
        "      [[maybe_unused]] const IndexT _J = static_cast<IndexT>(_gpu_J);\n"
        "      _type_reduce *const _gpu_row = _gpu_partial + (_gpu_J & (_gpu_lanes - 1)) * _gpu_width;\n"
        "      for (ptrdiff_t _gpu_s = 0; _gpu_s < _gpu_width; ++_gpu_s) {\n"
        "        [[maybe_unused]] const ptrdiff_t _i = _gpu_base + _gpu_s;\n"
        f"{_element(spec, '_gpu_row[_gpu_s]')}"
        "      }\n    }\n"
    )


def _join() -> str:
    return (
        "    for (ptrdiff_t _gpu_half = _gpu_lanes / 2; _gpu_half >= 1; _gpu_half /= 2)\n"
        "      for (ptrdiff_t _gpu_k = 0; _gpu_k < _gpu_half * _gpu_width; ++_gpu_k) {\n"
        "        _type_reduce _a = _gpu_partial[_gpu_k], _b = _gpu_partial[_gpu_k + _gpu_half * _gpu_width];\n"
        "        _gpu_partial[_gpu_k] = REDUCE(_a, _b);\n"
        "      }\n"
    )


def _finish(spec: ReductionSpec) -> str:
    lines = []
    for position, (number, operand) in enumerate(_walked(spec.outputs)):
        where = f"static_cast<char *>(_gpu_values[{number + len(spec.inputs)}]) + _gpu_at_out.offset[{position}]"
        lines.append(
            f"      [[maybe_unused]] {operand.ctype} &{operand.param.name} = "
            f"*reinterpret_cast<{operand.ctype} *>({where});\n"
        )
    index = "      _out_ind.set(_i);\n" if spec.body.mentions(r"_out_ind\s*\.\s*get") else ""
    return (
        "    for (ptrdiff_t _gpu_s = 0; _gpu_s < _gpu_width; ++_gpu_s, _gpu_at_out.next()) {\n"
        "      [[maybe_unused]] const ptrdiff_t _i = _gpu_base + _gpu_s;\n"
        f"{index}{''.join(lines)}"
        "      [[maybe_unused]] _type_reduce _s = _gpu_partial[_gpu_s];\n"
        "      POST_MAP(_s);\n    }\n"
    )
