"""Kernels written in Python: what their source may ask for, and that nothing of it runs."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.devices.python_source import NamedModule, PythonSource
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.python_kernels import make_kernel


def on_the_cpu() -> tuple[CpuDevice, DescribedObjects]:
    device = CpuDevice()
    return device, DescribedObjects(device)


CP = {"cp": NamedModule("cupy"), "jit": NamedModule("cupyx.jit")}


def checked(body: str, **names: Any) -> ast.FunctionDef | ast.Lambda:
    return PythonSource("f", f"def f(x):\n    {body}", {**CP, **names}).definition()


@pytest.mark.parametrize(
    "body",
    ["x[0] = cp.sin(x[jit.threadIdx.x])", "x[0] = x.shape[0] + cp.float32(2)", "jit.cg.sync(jit.cg.this_grid())"],
)
def test_what_kernels_are_made_of_is_let_through(body: str) -> None:
    assert isinstance(checked(body), ast.FunctionDef)


@pytest.mark.parametrize(
    "body",
    [
        "cp.float32(1).tofile('/tmp/stolen')",
        "N.tofile('/tmp/stolen')",
        "'{}'.format(x)",
        "cp.cuda.compiler.os.system('true')",
        "x.__class__.__bases__",
        "jit._compile",
        "cp.add.at(x, 0, 1)",
        "(lambda: 0).__globals__",
    ],
)
def test_a_way_from_a_constant_to_the_executor_is_refused(body: str) -> None:
    with pytest.raises(AttributeError, match="Unknown attribute"):
        checked(body, N=np.float32(3))


@pytest.mark.parametrize("body", ["cp = cp.float32(1)", "import os", "yield x"])
def test_a_module_stays_what_it_is(body: str) -> None:
    with pytest.raises(ValueError, match="A kernel may not"):
        checked(body)


def test_what_would_run_when_the_function_is_defined_is_not_there() -> None:
    source = PythonSource("f", "@open('/tmp/x')\ndef f(x: open('/tmp/y')) -> open('/tmp/z'):\n    x[0] = 1", {})
    assert ast.unparse(source.definition()) == "def f(x):\n    x[0] = 1"
    with pytest.raises(NotImplementedError):
        PythonSource("f", "def f(x=open('/tmp/x')): pass", {}).definition()
    with pytest.raises(ValueError, match="instead of one"):
        PythonSource("f", "import os\ndef f(x): pass", {}).definition()


@pytest.mark.parametrize(
    "named",
    [("module", "os"), ("public", "cupy.cuda.compiler"), ("builtin", "open"), ("builtin", "eval"), ("kernel", print),
     ("value", print), ("public", "numpy._core"), ("nonsense", 1)],
)  # fmt: skip
def test_names_stand_for_numbers_modules_and_kernels_only(named: tuple[str, Any]) -> None:
    with pytest.raises(TypeError, match="cannot use 'n'"):
        make_kernel(*on_the_cpu(), "cupyx.jit.rawkernel", "f", "def f(x): x[0] = n", {"n": named}, {})


def test_a_file_is_out_of_reach_of_a_kernel() -> None:
    names = {"cp": ("module", "cupy")}
    kernel = make_kernel(*on_the_cpu(), "cupyx.jit.rawkernel", "f", "def f(x): cp.save('/tmp/stolen', 1)", names, {})
    with pytest.raises(AttributeError, match=r"cannot use 'cupy.save'"):
        kernel((1,), (1,), (np.zeros(3),))
