"""The kernels that carry out segments, as CUDA C++: pure text.

Each routine is a function of its own that the compiler may not inline, with an op's body between the same declarations
as in CuPy's kernel for it (``_get_ufunc_kernel`` in ``cupy/_core/_kernel.pyx`` of CuPy 14.2). So arithmetic of two ops
is never contracted, and each op's own is contracted as CuPy's is. One kernel goes through a table of instructions: with
one block, whose threads wait for each other between two ops, or with several, all of which run at once, that wait for
each other at a counter; not where an instruction is marked to go on, since element ``i`` of each is the same thread's.
The table is the kernel's parameter, so it needs no memory; each block copies it to where its threads read it at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from gpu_backend.devices.segments import AXES, INSTRUCTION_BYTES, OPERANDS, VALUE_BYTES, VALUES

__all__ = ["KERNELS", "MOST_OPS", "THREADS", "Body", "can_stand", "program"]

#: The kernels, and how many instructions their parameter has room for: the driver copies all of it. A kernel may have
#: 32,764 bytes of parameters.
KERNELS = {"run_few": 4, "run_short": 24, "run_long": 200}
MOST_OPS = max(KERNELS.values())
THREADS = 512

#: A name that is defined unless it is already: all bodies of CuPy's define the same by it.
_GUARDED = re.compile(r"#ifndef (\w+)\n#define \1 [^\n\\]*\n#endif\n")
_HEADERS = """#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/float16.cuh>
#include <cupy/math_constants.h>
"""

_INSTRUCTION = f"""
struct alignas(16) Instruction {{
  unsigned code, elements;
  unsigned short axes, goes_on;
  unsigned char widths[{OPERANDS}];
  int extents[{AXES}];
  unsigned long long places[{OPERANDS}];
  int strides[{OPERANDS}][{AXES}];
  char values[{VALUES}][{VALUE_BYTES}];
}};
static_assert(sizeof(Instruction) == {INSTRUCTION_BYTES}, "as the executor writes it");

template <int N> struct Table {{
  unsigned ops, arrived, unused[2];
  Instruction code[N];
}};

__device__ __forceinline__ char* place_of(const Instruction* op, int operand) {{
  const unsigned long long place = op->places[operand];
  return place < {VALUES} ? const_cast<char*>(op->values[place]) : reinterpret_cast<char*>(place);
}}
"""

_LOOP = """
__device__ unsigned arrived_;

// Until all blocks have come, so that what any thread wrote is seen by all.
__device__ __forceinline__ void wait_for_blocks(unsigned goal) {
  if (threadIdx.x == 0) {
    unsigned seen;
    asm volatile("red.release.gpu.global.add.u32 [%%0], 1;" ::"l"(&arrived_) : "memory");
    do {
      asm volatile("ld.acquire.gpu.global.u32 %%0, [%%1];" : "=r"(seen) : "l"(&arrived_) : "memory");
    } while (static_cast<int>(seen - goal) < 0);
  }
  __syncthreads();
}

template <int N> __device__ __forceinline__ void run(const Table<N>& table) {
  __shared__ Instruction code[N];
  constexpr unsigned pieces = sizeof(Instruction) / sizeof(int4);
  for (unsigned at = threadIdx.x; at < table.ops * pieces; at += blockDim.x)
    reinterpret_cast<int4*>(code)[at] = reinterpret_cast<const int4*>(table.code)[at];
  __syncthreads();
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  unsigned goal = table.arrived;
  for (unsigned at = 0; at < table.ops; ++at) {
    const Instruction* op = code + at;
    switch (op->code) {
%s      default: __trap();  // rather no result than a wrong one
    }
    if (at + 1 == table.ops) break;
    if (code[at + 1].goes_on) continue;
    __syncthreads();
    if (gridDim.x > 1) wait_for_blocks(goal += gridDim.x);
  }
}
"""

_KERNEL = """
extern "C" __global__ void __launch_bounds__(%d) %s(const __grid_constant__ Table<%d> table) {
  run(table);
}
"""

#: What a body may not name: the loop around it is another than CuPy's.
_OF_THE_LOOP = re.compile(
    r"\b(_ind|_raw_\w+|i|n|threadIdx|blockIdx|blockDim|gridDim|CUPY_FOR)\b|\breturn\b|^\s*#", re.M
)


class Body(NamedTuple):
    """An op of CuPy's on arrays of certain types; all types are names of C++."""

    #: What CuPy puts before the kernel, before the loop, and into it.
    preamble: str
    prologue: str
    routine: str
    #: In which types the operands and the result are computed with, and in which they lie in memory.
    inputs: tuple[str, ...]
    output: str
    stored_inputs: tuple[str, ...]
    stored_output: str
    #: Which operand says whether there is a result; none if there always is.
    condition: str = ""


def can_stand(body: Body) -> bool:
    """Tell whether an op's body can stand in another loop than CuPy's, beside others."""
    return (
        not _OF_THE_LOOP.search(body.routine)
        and not body.prologue.strip()
        and "#" not in _GUARDED.sub("", body.preamble)
    )


def program(bodies: Mapping[int, Body]) -> str:
    """Return the source of the kernels for ``bodies``, by their codes."""
    functions = "".join(_function(code, body) for code, body in bodies.items())
    cases = "".join(f"      case {code}: op_{code}::run(op, first, step); break;\n" for code in bodies)
    kernels = "".join(_KERNEL % (THREADS, name, room) for name, room in KERNELS.items())
    return _HEADERS + _INSTRUCTION + functions + _LOOP % cases + kernels


def _function(code: int, body: Body) -> str:
    operands = range(len(body.inputs) + 1)
    last = operands[-1]
    types = [*body.inputs, body.output]
    stored = [*body.stored_inputs, body.stored_output]
    names = [f"in{number}" for number in operands[:-1]] + ["out0"]
    lines = [f"typedef {kind} {name}_type;" for kind, name in zip(types, names, strict=True)]
    lines += ["__device__ __noinline__ void run(const Instruction* op_, unsigned first_, unsigned step_) {"]
    lines += [f"  char* const place{number}_ = place_of(op_, {number});" for number in operands]
    lines += ["  for (unsigned at_ = first_; at_ < op_->elements; at_ += step_) {"]
    lines += [f"    long long shift{number}_ = 0;" for number in operands]
    lines += ["    unsigned rest_ = at_;"]
    lines += ["    #pragma unroll 1  // or it would be the most of the code, and of what compiling takes"]
    lines += ["    for (int axis_ = static_cast<int>(op_->axes) - 1; axis_ > 0; --axis_) {"]
    lines += ["      const unsigned extent_ = op_->extents[axis_], next_ = rest_ / extent_;"]
    lines += ["      const long long along_ = rest_ - next_ * extent_;"]
    lines += [f"      shift{number}_ += along_ * op_->strides[{number}][axis_];" for number in operands]
    lines += ["      rest_ = next_;", "    }"]
    lines += [
        f"    shift{number}_ += static_cast<long long>(rest_) * op_->strides[{number}][0];" for number in operands
    ]
    for number, (kind, name) in enumerate(zip(stored, names[:-1], strict=False)):
        read = f"*reinterpret_cast<const {kind}*>(place{number}_ + shift{number}_)"
        lines += [f"    const {name}_type {name}({_cast(read, kind, types[number])});"]
    lines += [f"    if (!{body.condition}) continue;"] if body.condition else []
    lines += ["    out0_type out0;", f"    {body.routine};"]
    result = _cast("out0", types[last], stored[last])
    lines += [f"    *reinterpret_cast<{stored[last]}*>(place{last}_ + shift{last}_) = {result};", "  }", "}"]
    return f"\nnamespace op_{code} {{\n{body.preamble}\n" + "\n".join(lines) + "\n}\n"


def _cast(value: str, kind: str, into: str) -> str:
    """Return what of ``value`` goes into another type, as CuPy writes it: of a bool that is neither, a one."""
    return f"({value}) ? 1 : 0" if kind == "bool" and into != "bool" else value
