"""How nodes of Ray are started, as far as can be told without Ray."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.engine.ray_cluster import RayCluster, make_token, need_ray
from gpu_backend.wire.errors import PoolRefusal


def test_the_token_is_its_owners_alone_and_stays(tmp_path: Path) -> None:
    make_token(tmp_path / "token")
    token = (tmp_path / "token").read_text()
    make_token(tmp_path / "token")
    assert (tmp_path / "token").read_text() == token
    assert len(token) == 64
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_the_token_is_in_no_command_and_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-somebody-else")
    cluster = RayCluster("10.0.0.1:6380", tmp_path / "token")
    make_token(cluster.token_file)
    token = cluster.token_file.read_text()
    environment = cluster.head_environment(tmp_path)
    words = [
        *cluster.head_command("a", tmp_path),
        *cluster.node_command("b", "10.0.0.2", tmp_path),
        *environment.values(),
    ]
    assert not [word for word in words if token in word or "of-somebody-else" in word]
    assert environment["RAY_AUTH_MODE"] == cluster.environment()["RAY_AUTH_MODE"] == "token"
    assert environment["RAY_AUTH_TOKEN_PATH"] == str(cluster.token_file)


def test_where_ray_is_missing_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PoolRefusal, match=r"pip install 'gpu-workbench\[ray\]'"):
        need_ray()


def test_the_engine_is_imported_without_ray() -> None:
    code = "import sys; sys.modules['ray'] = None; import gpu_backend.engine.ray, gpu_backend.pool.serving"
    subprocess.run([sys.executable, "-c", code], check=True)
