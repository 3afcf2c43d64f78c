"""Compiled kernels on disk: found again, made once by many processes, private, replaced when damaged, pruned."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.devices.cpu.kernels import ElementwiseKernel, NoCompilerError, cache, module, toolchain
from gpu_backend.devices.cpu.kernels.cache import KernelCache, default_directory

ADD = ("T x", "T y", "y = x + 1")

#: Says when it is ready, waits for a line, then runs a kernel.
PROGRAM = """
import sys, numpy as np
from gpu_backend.devices.cpu.kernels import ElementwiseKernel, set_cache_directory
set_cache_directory(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(float(ElementwiseKernel("T x", "T y", "y = x * 3 + 0.125", "race")(np.full(3, 2.0)).sum()), flush=True)
"""
ROOT = Path(__file__).parents[5]


def run_program(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(directory)]
    return subprocess.run(command, input="go\n", capture_output=True, text=True, cwd=ROOT, check=False, timeout=200)


def compiled(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.so"))


def test_a_second_kernel_of_the_same_text_is_not_compiled(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ElementwiseKernel(*ADD, "one")(np.zeros(2)).tolist() == [1, 1]
    (path,) = compiled(fresh_cache)
    monkeypatch.setattr(module.subprocess, "run", None)
    module._load.cache_clear()
    assert ElementwiseKernel(*ADD, "one")(np.zeros(3)).tolist() == [1, 1, 1]
    assert compiled(fresh_cache) == [path]


def test_other_options_are_another_kernel(fresh_cache: Path) -> None:
    for step in (1, 2):
        kernel = ElementwiseKernel("T x", "T y", "y = x + STEP", "step", options=(f"-DSTEP={step}",))
        assert kernel(np.zeros(1)).tolist() == [step]
    assert len(compiled(fresh_cache)) == 2


def test_a_damaged_file_is_made_anew(fresh_cache: Path) -> None:
    run_program(PROGRAM, fresh_cache)
    (path,) = compiled(fresh_cache)
    path.write_bytes(b"not a shared object")
    assert run_program(PROGRAM, fresh_cache).stdout == "ready\n18.375\n"
    assert path.read_bytes()[:4] == b"\x7fELF"


def test_the_directory_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "cache"
    KernelCache(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o777)
    with pytest.raises(PermissionError, match="chmod 700"):
        KernelCache(directory)


def test_where_the_cache_is_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPU_WORKBENCH_KERNEL_CACHE", "CUPY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_directory() == Path("~/.cache/gpu-workbench/kernels").expanduser()
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_directory() == Path("/x/gpu-workbench/kernels")
    monkeypatch.setenv("CUPY_CACHE_DIR", "/y")
    assert default_directory() == Path("/y")
    monkeypatch.setenv("GPU_WORKBENCH_KERNEL_CACHE", "/z")
    assert default_directory() == Path("/z")


def test_of_many_askers_one_builds(tmp_path: Path) -> None:
    store = KernelCache(tmp_path / "cache")
    builds: list[Path] = []
    together = threading.Barrier(4)

    def build(path: Path) -> None:
        builds.append(path)
        path.write_text("built")

    def ask() -> None:
        together.wait()
        assert store.get("ab" * 20, build).read_text() == "built"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    store = KernelCache(tmp_path / "cache")

    def build(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get("cd" * 20, build)
    assert [path.name for path in store.directory.iterdir()] == [".lock-cd"]


def test_the_least_used_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_FILES", 8)
    store = KernelCache(tmp_path / "cache")
    for number in range(8):
        os.utime(store.get(f"{number:040x}", Path.touch), (number, number))
    store.get(f"{0:040x}", Path.touch)  # used again
    store.get(f"{8:040x}", Path.touch)
    left = {int(path.stem, 16) for path in compiled(store.directory)}
    assert left == {0, 4, 5, 6, 7, 8}


def test_two_processes_race_for_one_kernel(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "cache")]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, _ = racer.communicate(timeout=200)
        assert (out, racer.returncode) == ("18.375\n", 0)
    assert len(compiled(tmp_path / "cache")) == 1


def test_without_a_compiler_one_sentence_says_what_to_install(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    toolchain.find_compiler.cache_clear()
    try:
        with pytest.raises(NoCompilerError, match=r"apt install g\+\+.*pip install ziglang"):
            ElementwiseKernel(*ADD, "none")(np.zeros(1))
    finally:
        toolchain.find_compiler.cache_clear()


def test_a_wild_pointer_ends_only_its_own_process(tmp_path: Path) -> None:
    program = PROGRAM.replace("y = x * 3 + 0.125", "*(volatile int*)8 = 1; y = x")
    assert run_program(program, tmp_path / "cache").returncode == -signal.SIGSEGV
