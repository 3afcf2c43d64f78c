"""What is said of a pool's machines."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from gpu_backend.wire.views import NodeView
from workbench.finding import State
from workbench.nodes import clock_in_words, findings, state_in_words
from workbench.status import GpuStatus, PoolFacts

UP = NodeView("m", "up", "0.1.0", 0.2, 0.4, devices=2, sessions=1)
POOL = PoolFacts("lab", "tcp://gpu:7766", "ada", "0.1.0", devices=1, sessions=3, capacity=8, mine=1)


def like(**changes: object) -> NodeView:
    return msgspec.structs.replace(UP, **changes)


def test_nothing_is_said_of_a_machine_that_is_well() -> None:
    assert not list(findings([UP, like(state="draining"), like(version="")], "0.1.0"))


@pytest.mark.parametrize(
    ("node", "found", "remedy"),
    [
        (
            like(version="0.0.9"),
            "it runs version 0.0.9, the pool's head 0.1.0",
            "`workbench node up` on m, `workbench pool reload` on the head",
        ),
        (like(ahead_seconds=61.4), "its clock is 61 s ahead of the head's", "NTP"),
        (like(ahead_seconds=-3_600.0), "its clock is 3600 s behind the head's", "NTP"),
        (like(state="silent", silent_seconds=7.2), "silent, not heard for 7 s", "`workbench node up`"),
        (like(state="down"), "its operator took it down", "`workbench node up`"),
        (like(state="never heard"), "never heard", "`workbench node up`"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_its_remedy(node: NodeView, found: str, remedy: str) -> None:
    (finding,) = findings([node], "0.1.0")
    assert (finding.subject, finding.state, finding.found) == ("node m", State.NOTE, found)
    assert remedy in finding.remedy


def test_states_and_clocks_in_words() -> None:
    assert [state_in_words(one) for one in (UP, like(state="draining"), like(state="lost", silent_seconds=40.0))] == [
        "up", "takes no new sessions", "lost, not heard for 40 s",
    ]  # fmt: skip
    assert clock_in_words(UP) == ""


def test_status_says_on_which_machine_a_session_is_where_there_are_several() -> None:
    alone = GpuStatus(session="s1", epoch=1, is_connected=True, node="m", pool=POOL)
    assert "s1 in lab, connected" in repr(alone)
    assert "s1 on m in lab, connected" in repr(replace(alone, pool=replace(POOL, nodes=2)))
