"""What is said of a GPU that CuPy here cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import diagnosis, local_gpu
from workbench.finding import State

#: A CuPy on a driver of CUDA 11.8, as far as can be told from outside.
_CUPY = """
class runtime:
    driverGetVersion = staticmethod(lambda: {driver})
    runtimeGetVersion = staticmethod(lambda: 13000)

class cuda:
    runtime = runtime

    def Device(ordinal):
        raise RuntimeError("{error}")
"""


def finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, error: str) -> diagnosis.Finding:
    (tmp_path / "cupy.py").write_text(_CUPY.format(driver=driver, error=error))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(diagnosis, "probe", local_gpu.probe)
    return diagnosis._local_gpu()


def test_a_driver_that_is_too_old_is_a_problem_with_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = finding(tmp_path, monkeypatch, "12040", "cudaErrorInsufficientDriver")
    assert (found.subject, found.state) == ("GPU here", State.PROBLEM)
    assert found.found == "the driver is too old: it serves CUDA 12.4, and CuPy here is for CUDA 13.0"
    assert "'gpu-workbench[cuda12]'" in found.remedy


@pytest.mark.parametrize("driver", ["0", "13010", "1 / 0"])
def test_what_else_keeps_cupy_from_a_gpu_is_no_old_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    found = finding(tmp_path, monkeypatch, driver, "cudaErrorNoDevice")
    assert (found.state, found.found) == (State.NOTE, "CuPy cannot use one (RuntimeError: cudaErrorNoDevice)")
