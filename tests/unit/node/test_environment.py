"""What an executor has in its environment: nothing of whoever started the pool but what it needs by name."""

from __future__ import annotations

import site
from pathlib import Path

import pytest

from gpu_backend.node.environment import executor_environment
from gpu_backend.node.inventory import Found

CPU = Found(0, "cpu", "a CPU", "cpu-0", 1 << 30)
GPU = Found(3, "cuda", "a GPU", "GPU-1", 1 << 30, "GPU-1-2", ("/dev/nvidia7",))


def test_no_secret_and_no_path_of_the_operator_is_inherited(tmp_path: Path) -> None:
    ours = {
        "AWS_SECRET_ACCESS_KEY": "s", "GITHUB_TOKEN": "s", "SSH_AUTH_SOCK": "/s", "HOME": "/root", "USER": "root",
        "GPU_WORKBENCH_CONFIG": "/s", "CUPY_CACHE_DIR": "/s", "CUPY_CUDA_LIB_PATH": "/s", "LD_PRELOAD": "/s.so",
        "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": "/run/user/0", "DBUS_SESSION_BUS_ADDRESS": "unix:/s", "PATH": "/root/bin",
        "PYTHONSTARTUP": "/s.py", "CUDA_VISIBLE_DEVICES": "0,1,2,3",
        "LANG": "de_DE.UTF-8", "LC_ALL": "C", "OMP_NUM_THREADS": "3", "PYTHONPATH": "/src", "CUPY_TF32": "1",
    }  # fmt: skip
    given = executor_environment(tmp_path, [CPU], ours)
    assert not {"s", "/s", "/s.so", "/s.py", "unix:/s"} & set(given.values())
    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "USER", "LD_PRELOAD"} & set(given)
    assert [given[name] for name in ("LANG", "LC_ALL", "OMP_NUM_THREADS", "CUPY_TF32")] == [
        "de_DE.UTF-8",
        "C",
        "3",
        "1",
    ]
    assert given["PYTHONPATH"] == "/src"
    assert "/root" not in given["PATH"].split(":")
    assert "CUDA_VISIBLE_DEVICES" not in given


def test_all_that_it_writes_goes_into_its_own_folder(tmp_path: Path) -> None:
    given = executor_environment(tmp_path, [CPU], {})
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "CUPY_CACHE_DIR", "GPU_WORKBENCH_KERNEL_CACHE", "CUDA_CACHE_PATH"):
        assert Path(given[name]).is_dir()
        assert Path(given[name]).is_relative_to(tmp_path)


def test_it_sees_its_own_gpu_and_no_other(tmp_path: Path) -> None:
    assert (
        executor_environment(tmp_path, [GPU], {"CUDA_VISIBLE_DEVICES": "4,5,6,7"})["CUDA_VISIBLE_DEVICES"] == "GPU-1-2"
    )


def test_what_one_user_has_installed_is_still_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "getuserbase", lambda: "/home/ada/.local")
    assert executor_environment(tmp_path, [CPU], {})["PYTHONUSERBASE"] == "/home/ada/.local"
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    assert "PYTHONUSERBASE" not in executor_environment(tmp_path, [CPU], {})
