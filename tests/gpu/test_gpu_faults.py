"""What only a GPU can do wrong, and what the user is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Sides

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ILLEGAL = """
import cupy as cp
kernel = cp.RawKernel('extern "C" __global__ void f(float* p) { p[1ULL << 40] = 1; }', "f")
x = cp.zeros(4, cp.float32)
TRIGGER
"""


def test_an_illegal_address_is_told_and_a_fresh_executor_takes_over(sides: Sides) -> None:
    trigger = """
try:
    kernel((1,), (1,), (x,))
    cp.cuda.Device().synchronize()
except cp.cuda.runtime.CUDARuntimeError as error:
    results["first"] = str(error)
try:
    float(x[0])
except Exception as error:
    results["then"] = type(error).__name__
results["after"] = float((cp.arange(3) + 1).sum())
"""
    results = sides.remote(ILLEGAL.replace("TRIGGER", trigger))
    assert "cudaErrorIllegalAddress" in results["first"]
    assert results["then"] == "SessionLost"
    assert results["after"] == 6.0


def test_another_session_does_not_notice(sides: Sides) -> None:
    bad = ILLEGAL.replace("TRIGGER", "kernel((1,), (1,), (x,)); print(float(x[0]))")
    path = sides.root / "bad.py"
    path.write_text(bad)
    program = f"""
import subprocess, sys
import cupy as cp
x = cp.arange(1000.0)
faulty = subprocess.Popen([sys.executable, "-m", "workbench", "run", {str(path)!r}])
while faulty.poll() is None:
    total = float((x * 2).sum())
results["failed"] = faulty.returncode != 0
results["total"] = total
"""
    assert sides.remote(program) == {"failed": True, "total": 999000.0}


def test_ten_gigabytes_of_a_limit_of_one_are_refused_at_their_own_line(sides: Sides) -> None:
    program = """
import cupy as cp
pool = cp.get_default_memory_pool()
pool.set_limit(size=1 << 30)
kept = cp.ones(1000)
try:
    cp.zeros(10 * (1 << 30), cp.uint8)
except cp.cuda.memory.OutOfMemoryError as error:
    results["error"] = str(error)
results["kept"] = float(kept.sum())
"""
    results = sides.remote(program)
    assert "Out of memory allocating 10,737,418,240 bytes" in results["error"]
    assert results["kept"] == 1000.0


def test_a_compile_error_has_the_compilers_text(sides: Sides) -> None:
    program = """
import cupy as cp
kernel = cp.RawKernel('extern "C" __global__ void f() { nonsense; }', "f")
try:
    kernel((1,), (1,), ())
except cp.cuda.compiler.CompileException as error:
    results["error"] = str(error)
"""
    assert "nonsense" in sides.remote(program)["error"]


def test_what_is_put_into_no_elements_is_refused(sides: Sides) -> None:
    """CuPy's kernel would write through an address of its own making, and end all that the session has."""
    results = sides.remote("""
import cupy as cp
x = cp.arange(3.0)
for name, put in {
    "function": lambda: cp.put(cp.zeros((2, 0)), cp.zeros(4, "B"), cp.zeros(3)),
    "method": lambda: cp.zeros((2, 0)).put([0, 1], [1.0]),
}.items():
    try:
        put()
        cp.cuda.Device().synchronize()
    except IndexError as error:
        results[name] = str(error)
cp.put(cp.zeros((2, 0)), [], [])
results["after"] = float(x.sum())
""")
    words = "cannot replace elements of an empty array"
    assert words in results["function"]
    assert words in results["method"]
    assert results["after"] == 3.0
