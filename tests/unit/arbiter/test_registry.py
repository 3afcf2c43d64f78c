"""Policies by name: ours, and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.policies.fair_share import FairShare
from gpu_backend.arbiter.policies.fifo import Fifo


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package offers a policy of its own, and one under a name of ours."""
    target = "gpu_backend.arbiter.policies.fifo:Fifo"
    points = EntryPoints([EntryPoint(name, target, registry.ENTRY_POINTS) for name in ("lottery", "fair_share")])

    def installed(**wanted: Any) -> EntryPoints:
        return points.select(**wanted)

    monkeypatch.setattr(registry, "entry_points", installed)


def test_the_first_is_the_default() -> None:
    assert registry.names()[0] == "fair_share"
    assert {name: registry.make(name).name for name in registry.BUILT_IN} == {name: name for name in registry.BUILT_IN}


@pytest.mark.usefixtures("others")
def test_another_packages_policy_is_found_and_cannot_take_a_name_of_ours() -> None:
    assert registry.names()[-1] == "lottery"
    assert isinstance(registry.make("lottery"), Fifo)
    assert isinstance(registry.make("fair_share"), FairShare)


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(registry.UnknownPolicy, match="kubeshare"):
        registry.make("lottery")
