"""What `%catalog try` has a reader run: a policy, a program and its neighbour, on a pool that is gone afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import catalog
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.notebook_pool import environment
from workbench import beside as besides
from workbench.beside import Beside, Side, beside

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with environment(tmp_path):
        monkeypatch.setattr(besides.tempfile, "tempdir", None)
        yield


def test_a_program_is_seen_alone_and_beside_its_neighbour_and_the_pool_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    roots: list[Path] = []
    made = besides.tempfile.mkdtemp
    monkeypatch.setattr(besides.tempfile, "mkdtemp", lambda **name: roots.append(Path(made(**name))) or str(roots[-1]))
    seen = beside(
        "reef", ours={"class": "production"}, theirs={"class": "best-effort"}, does="ask", seconds=1.0, device="cpu"
    )
    for side in (seen.alone, seen.ours, seen.theirs):
        assert side.turns_per_second > 0
        assert math.isfinite(side.median_seconds)
        assert side.gpu_part >= 0
    assert str(seen).startswith("reef: ours keeps ")
    assert roots
    assert not any(root.exists() for root in roots)


def test_what_cannot_be_tried_is_refused_in_a_sentence() -> None:
    with pytest.raises(PoolRefusal, match="there is no policy 'tsg'; installed are "):
        beside("tsg", device="cpu")
    with pytest.raises(PoolRefusal, match="A program can work, pause, ask, not 'sleep'"):
        beside("tgs", does="sleep")  # type: ignore[arg-type]


def test_a_program_that_ends_says_why() -> None:
    with pytest.raises(PoolRefusal, match=r"ended\. It said: [\s\S]*production, interactive or best-effort"):
        beside("tgs", ours={"class": "prodction"}, device="cpu")


@pytest.mark.parametrize("system", ["tgs", "antman", "reef", "paella", "gemini", "kubeshare", "gaiagpu"])
def test_a_policys_cell_sets_that_policy_and_prints_what_it_does(
    system: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def played(policy: str, ours: object = None, theirs: object = None, does: str = "work", **more: object) -> Beside:
        tried.append(policy)
        assert does in besides._TURNS
        assert ours or theirs or does == "ask"
        return Beside(policy, Side(2.0, 0.5, 0.5), Side(1.0, 1.0, 0.3), Side(1.0, 1.0, 0.2))

    monkeypatch.setattr(besides, "beside", played)
    exec(catalog.trial(system).cell, {})
    assert tried == [system]
    assert f"{system}: ours keeps 50%" in capsys.readouterr().out
