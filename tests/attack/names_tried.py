"""Tries each way to files, addresses and callbacks that goes by a name, an option or a source; prints what came of it.

Run by `workbench run`, with the path of a file that no kernel may read. Ops are said past the notebook's own classes,
which would not say them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import cupy as cp

from gpu_backend.opstream.surface.not_served import groups, names_of, refusal
from kernelproxy.calls.dispatch import ask_object

SECRET = sys.argv[1]
LINE = 'extern "C" __global__ void f(char *x) { x[0] = 1; }\n'
STRING = f'#define S(x) #x\n__constant__ char text[] = S(\n#include "{SECRET}"\n);\n{LINE}'
x = cp.zeros(64, "b")
pointer = x.data
stream = cp.cuda.Stream()


def launch(code: str, **options: Any) -> None:
    cp.RawKernel(code, "f", **options)((1,), (1,), (x,))


def option(*options: str) -> Callable[[], None]:
    return lambda: launch(LINE, options=options)


def source(code: str) -> Callable[[], None]:
    return lambda: launch(code)


ways: dict[str, Callable[[], Any]] = {
    "file: DataSource": lambda: ask_object("cupy.DataSource"),
    "file: tofile": lambda: ask_object("cupy.ndarray.tofile", x, SECRET),
    "file: save": lambda: ask_object("cupy.save", SECRET, x),
    "file: RawModule(path)": lambda: ask_object("cupy.RawModule", path=SECRET),
    "file: optimize": lambda: ask_object("cupyx.optimizing.optimize", path=SECRET),
    "file: graphDebugDotPrint": lambda: ask_object("cupy.cuda.runtime.graphDebugDotPrint", 0, SECRET, 0),
    "file: moduleLoad": lambda: ask_object("cupy.cuda.driver.moduleLoad", SECRET),
    "file: linkAddFile": lambda: ask_object("cupy.cuda.driver.linkAddFile", 0, 0, SECRET),
    "address: UnownedMemory": lambda: ask_object("cupy.cuda.UnownedMemory", 0x400000, 64, None, 0),
    "address: UnownedMemory beyond an array": lambda: ask_object(
        "cupy.cuda.UnownedMemory", x.data.ptr, 1 << 46, None, 0
    ),
    "address: memset": lambda: ask_object("cupy.cuda.runtime.memset", 0x400000, 0, 1),
    "address: memcpy": lambda: ask_object("cupy.cuda.runtime.memcpy", x.data.ptr, 0x400000, 8, 1),
    "address: copy_to_host": lambda: ask_object(".method", pointer, "copy_to_host", 0x400000, 8),
    "address: copy_from_host": lambda: ask_object(".method", pointer, "copy_from_host", 0x400000, 8),
    "address: copy_from": lambda: ask_object(".method", pointer, "copy_from", 0x400000, 8),
    "address: cublas": lambda: ask_object("cupy.cuda.cublas.sdot", 0x400000, 1, 0x400000, 1, 0x400000, 1, 0x400000),
    "address: IPC": lambda: ask_object("cupy.cuda.runtime.ipcOpenMemHandle", b"0" * 64),
    "callback: launchHostFunc": lambda: ask_object("cupy.cuda.runtime.launchHostFunc", 0, len, 0),
    "callback: of a stream": lambda: ask_object(".method", stream, "launch_host_func", len, 0),
    "callback: allocator": lambda: ask_object("cupy.cuda.PythonFunctionAllocator", len, len),
    "processes: distributed": lambda: ask_object("cupyx.distributed.init_process_group", 1, 0),
    "pickle: __setstate__": lambda: ask_object("cupy.RawKernel.__setstate__", cp.RawKernel(LINE, "f"), {}),
    "option: -include": option("-include", SECRET),
    "option: --pre-include": option(f"--pre-include={SECRET}"),
    "option: -I": option(f"-I{os.path.dirname(SECRET)}"),
    "option: --options-file": option(f"--options-file={SECRET}"),
    "option: @file": option(f"@{SECRET}"),
    "option: -o": option("-o", "/tmp/out"),
    "option: --time": option("--time=/tmp/out"),
    "option: --keep": option("--keep"),
    "option: a second one in a macro": option(f"-DA=1 -include {SECRET}"),
    "option: of an elementwise kernel": lambda: cp.ElementwiseKernel(
        "T x", "T y", "y = x", "f_option", options=("-include", SECRET)
    )(x),
    "option: of a reduction kernel": lambda: cp.ReductionKernel(
        "T x", "T y", "x", "a + b", "y = a", "0", "f_reduce", options=(f"-include={SECRET}",)
    )(x),
    "source: include": source(f'#include "{SECRET}"\n{LINE}'),
    "source: in a string": source(STRING),
    "source: spliced": source(f'#in\\\nclude "{SECRET}"\n{LINE}'),
    "source: by a macro": source(f'#define N "{SECRET}"\n#include N\n{LINE}'),
    "source: digraph": source(f'%: /* */ include "{SECRET}"\n{LINE}'),
    "source: next": source(f"#include_next <{SECRET}>\n{LINE}"),
    "source: up from a folder that is served": source(f"#include <cuda/../../../../../../..{SECRET}>\n{LINE}"),
    "source: looked for": source(f'#if __has_include("{SECRET}")\n#error there\n#endif\n{LINE}'),
    "source: embedded": source(f'char c[] = {{\n#embed "{SECRET}"\n}};\n{LINE}'),
    "source: shown in a message": source(f'#line 1 "{SECRET}"\nerror here;\n{LINE}'),
    "source: assembler": source(f'asm(".incbin \\"{SECRET}\\"");\n{LINE}'),
    "source: of an elementwise kernel": lambda: cp.ElementwiseKernel(
        "T x", "T y", "y = x", "f_preamble", preamble=f'#include "{SECRET}"'
    )(x),
    "source: in an operation": lambda: cp.ElementwiseKernel(
        "T x", "T y", f'y = x;\n#include "{SECRET}"\n', "f_operation"
    )(x),
    "source: of a reduction kernel": lambda: cp.ReductionKernel(
        "T x", "T y", "x", "a + b", "y = a", "0", "f_pre", preamble=f'#include "{SECRET}"'
    )(x),
    "source: name expression": lambda: cp.RawModule(
        code="template <class T> __global__ void f(T *x) {}", name_expressions=(f'f<int>\n#include "{SECRET}"\n',)
    ).get_function("f<int>"),
}
if cp.cuda.runtime.getDeviceProperties(0)["major"] and "--cuda" in sys.argv:
    ways |= {
        "nvcc: backend": lambda: launch(LINE, backend="nvcc"),
        "nvcc: legacy callbacks": lambda: cp.fft.config.set_cufft_callbacks(cb_load="x").__enter__(),
        "handle: cublas": lambda: ask_object("cupy.cuda.cublas.getMathMode", 0x400000),
        "file: load_file": lambda: ask_object(".method", ask_object("cupy.cuda.Module"), "load_file", SECRET),
    }
for group in groups():
    for name in names_of(group):
        if refusal(name):
            ways[f"name: {name}"] = lambda name=name: ask_object(name)  # type: ignore[misc]

outcomes = {}
for way, attempt in ways.items():
    try:
        outcomes[way] = ["passed", repr(attempt())]
    except Exception as error:  # whatever it is, it is what the test looks at
        outcomes[way] = [type(error).__name__, str(error)]
assert x.tolist() == [0] * 64, "something was launched"
print(json.dumps(outcomes))  # noqa: T201 (what the test reads)
