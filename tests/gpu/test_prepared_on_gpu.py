"""What a pool compiles beforehand is found by executors, is ready at once, and gives CuPy's own bits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.usual_ops import usual_ops
from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = pytest.mark.gpu
COMMAND = [sys.executable, "-m", "gpu_backend.devices.cuda_prepared"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared")
    subprocess.run([*COMMAND, str(path)], check=True, timeout=240)
    return path


@pytest.fixture
def device(folder: Path) -> Iterator[Any]:
    from cupy.cuda import compiler

    from gpu_backend.devices.cuda import CudaDevice

    own = compiler._kernel_cache_backend
    yield CudaDevice(0, folder)
    compiler._set_kernel_cache_backend(own)


def test_the_usual_ops_are_gathered_from_the_first_on_and_give_cupys_bits(device: Any) -> None:
    device.segments._compiler._thread.join()
    numbers = np.random.default_rng(1)
    on, plain = PlayedNotebook(PASSES, device), PlayedNotebook((), device)
    asked = [one for one in usual_ops() if one.name]
    for number, (name, kinds) in enumerate(asked):
        given = [(numbers.normal(size=(3, 70)) * 4).astype(kind) for kind in kinds]
        for notebook in (on, plain):
            for handle, array in enumerate(given, 1):
                notebook.stream.heap.put(handle, device.upload(array))
                notebook.stream.heap.ownership.own(handle)
            assert not notebook.run(Op(name, 100 + number, tuple(Ref(one) for one in range(1, len(given) + 1))))
        assert on.contents(Ref(100 + number)).tobytes() == plain.contents(Ref(100 + number)).tobytes(), (name, kinds)
    assert on.stream._direct is not None
    assert on.stream._direct.segment is not None
    assert on.stream._direct.segment.table.gathered > 0.9 * len(asked)


def test_a_second_run_finds_all_there(folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    subprocess.run([*COMMAND, str(folder)], check=True, timeout=240)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_nothing_is_written_there_by_who_only_reads(device: Any, folder: Path) -> None:
    import cupy

    before = sorted(path.name for path in folder.iterdir())
    cupy.ElementwiseKernel("T x", "T y", "y = x + 12345", "not_prepared")(cupy.zeros(3))
    assert sorted(path.name for path in folder.iterdir()) == before
