"""A node has kernels compiled beforehand, in a process that ends with it and whose failure harms nobody."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gpu_backend.node import launcher, prepared_kernels
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NodeSettings

GPU = Found(1, "cuda", "a GPU", "GPU-1", 1 << 30, visible="GPU-1")
WRITES = "import os, sys; open(sys.argv[1] + '/note', 'w').write(os.environ['CUDA_VISIBLE_DEVICES'])"


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_it_is_done_once_for_each_model_and_for_no_cpu() -> None:
    twin, other = Found(2, "cuda", "a GPU", "GPU-2", 1 << 30), Found(3, "cuda", "another", "GPU-3", 1 << 30)
    cpu = Found(0, "cpu", "a CPU", "cpu-0", 1 << 30)
    assert [one.name for one in prepared_kernels.one_of_each([cpu, GPU, twin, other])] == ["a GPU", "another"]


def test_the_process_sees_the_device_and_the_folder_that_executors_read(tmp_path: Path) -> None:
    asyncio.run(prepared_kernels.prepare(str(tmp_path / "c"), GPU, command(WRITES)))
    folder = prepared_kernels.folder(str(tmp_path / "c"))
    assert (folder / "note").read_text() == "GPU-1"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", [command("raise SystemExit('no compiler')"), ("/nowhere/python",)])
def test_a_failure_is_logged_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: tuple[str, ...]
) -> None:
    asyncio.run(prepared_kernels.prepare(str(tmp_path), GPU, what))
    assert "compiled beforehand: " in caplog.text


def test_it_ends_with_the_agent(tmp_path: Path) -> None:
    note = tmp_path / "prepared" / "pid"
    code = "import os, signal, sys; p = sys.argv[1] + '/pid'; open(p + '~', 'w').write(str(os.getpid()))"
    code += "; os.rename(p + '~', p); signal.pause()"

    async def story() -> None:
        task = asyncio.create_task(prepared_kernels.prepare(str(tmp_path), GPU, command(code)))
        while not note.exists():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(story())
    assert not Path(f"/proc/{note.read_text()}").exists()


def test_executors_on_gpus_are_told_of_the_folder(tmp_path: Path) -> None:
    settings = NodeSettings(
        node="n", gateway="ipc://g", gateway_key="k" * 40, key_file="k", runtime_dir=str(tmp_path),
        log_dir=str(tmp_path / "logs"), cache_dir=str(tmp_path / "c"), has_walls=False,
        executor_command=(sys.executable, "-c", "import signal; signal.pause()"),
    )  # fmt: skip
    directory, process = launcher.launch(settings, b"a" * 40, [GPU])
    launcher.end(process, 1.0)
    told = launcher.config_in(directory)
    assert told is not None
    assert told.prepared == str(tmp_path / "c" / "prepared")
    assert Path(told.prepared).is_dir()
