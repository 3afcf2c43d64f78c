"""What an agent decides about devices that are shared by MPS: who may come, who ends with whom, when to begin anew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.node import mps_files
from gpu_backend.node.executor import Executor
from gpu_backend.node.inventory import Found
from gpu_backend.node.kept import Kept
from gpu_backend.node.mps_files import MpsSharing, Standing
from gpu_backend.node.places import Place
from gpu_backend.node.settings import NO_GATE, NodeSettings
from gpu_backend.node.sharing import Sharing
from gpu_backend.wire.control import Launch, Terms
from gpu_backend.wire.orders import Assign

DEVICES = {n: Found(n, "cpu", "a CPU", f"cpu-{n}", 1 << 30) for n in (0, 1)}
ORDER = Launch("s", 1, 0, "k" * 40, 0, 60.0, "ada", Terms(group="vision"))


class PlayedExecutor(Executor):
    """An executor without a process, that keeps why it was told to end."""

    def __init__(self, directory: Path, ordinal: int, group: str, daemon: str) -> None:
        directory.mkdir()
        super().__init__(directory, ProcessId(1, 1), [Place(ordinal, directory)])
        template = {
            "device_kind": "cpu", "own": "o", "agent_key": "k", "endpoints": (), "secret": "", "certificate": "",
            "descriptors": {"local": 0, "control": 0, "far": 0, "report": 0}, "group": group, "daemon": daemon,
        }  # fmt: skip
        self.config = msgspec.convert(template, ExecutorConfig)
        self.told = ""

    def stop(self, reason: str) -> bool:
        self.told = reason
        return True


class Node:
    """A node with a device that group "vision" shares by MPS and one that is shared in turns."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.executors: list[Executor] = []
        settings = NodeSettings(
            node="n", gateway="g", gateway_key="k", key_file="k", runtime_dir=str(root), log_dir="l", cache_dir="c",
            mps_devices={0: MpsSharing(group="vision"), 7: MpsSharing(group="speech")},
        )  # fmt: skip
        assert (settings.policy_of(0), settings.policy_of(1)) == (NO_GATE, "fair_share")
        self.sharing = Sharing(settings, DEVICES, self.executors)

    def stand(self, **now: object) -> None:
        mps_files.note_standing(mps_files.directory_of(str(self.root), 0), Standing(**now))  # type: ignore[arg-type]

    def executor(self, ordinal: int = 0, group: str = "vision", daemon: str = "1-1") -> PlayedExecutor:
        made = PlayedExecutor(self.root / f"e{len(self.executors)}", ordinal, group, daemon)
        self.executors.append(made)
        return made


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(Kept, "is_steady", True)
    made = Node(tmp_path)
    made.stand(is_ready=True, daemon="1-1")
    return made


def test_strangers_are_refused_whoever_sent_them(node: Node) -> None:
    assert node.sharing.refuse(ORDER) == ""
    stranger = msgspec.structs.replace(ORDER, terms=Terms(group="over quota"))
    assert node.sharing.refuse(stranger) == "Device 0 is shared by MPS, and serves group 'vision' alone."
    assert node.sharing.refuse(msgspec.structs.replace(stranger, ordinal=1)) == ""
    with_another = msgspec.structs.replace(ORDER, ordinal=1, others=(0,))
    assert node.sharing.refuse(with_another) == "A device that is shared by MPS goes with no other into a session."


def test_a_fault_ends_those_who_share_the_device_by_mps_and_nobody_else(node: Node) -> None:
    faulty, neighbour = node.executor(), node.executor()
    elsewhere, in_turns = node.executor(1, "", ""), node.executor(0, "", "")
    node.sharing.spread_fault(faulty)
    assert "Another session of group 'vision' on the same device failed" in neighbour.told
    assert (faulty.told, elsewhere.told, in_turns.told) == ("", "", "")
    assert not node.sharing.is_ready((0,)), "none begins while they are there"
    assert node.sharing.is_ready((1,))


def test_a_fault_where_turns_are_taken_ends_nobody_else(node: Node) -> None:
    faulty, neighbour = node.executor(1, "", ""), node.executor(1, "", "")
    node.sharing.spread_fault(faulty)
    assert neighbour.told == ""
    assert node.sharing.is_ready((1,))


def test_another_daemon_is_asked_for_once_all_have_gone_that_a_fault_has_ended(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Kept] = []
    monkeypatch.setattr(Kept, "renew", lambda kept: asked.append(kept))
    node.sharing.spread_fault(node.executor())
    node.sharing.publish()
    assert not asked
    assert not node.sharing.is_ready((0,))
    node.executors.clear()
    assert not node.sharing.is_ready((0,)), "its server takes nobody before"
    node.sharing.publish()
    node.sharing.publish()
    assert len(asked) == 1
    assert node.sharing.is_ready((0,))


def test_whose_daemon_is_gone_is_ended_and_told(node: Node) -> None:
    mine, in_turns = node.executor(), node.executor(0, "", "")
    node.sharing.publish()
    assert mine.told == ""
    (mps_files.directory_of(str(node.root), 0) / "standing.json").unlink()
    node.sharing.publish()
    assert mine.told == "", "nobody ends because a file cannot be read"
    node.stand(daemon="2-2")
    node.sharing.publish()
    assert mine.told == "The MPS daemon by which group 'vision' shares the device has ended, and this session with it."
    assert in_turns.told == ""


def test_a_group_waits_until_those_have_gone_whom_the_device_served_before(node: Node) -> None:
    node.executor(group="speech")
    problem = "sessions of group 'speech', which it served before, are still on it"
    assert node.sharing.ailment((0,)) == problem
    assert node.sharing.report(DEVICES[0], 0).ailment == problem
    node.executors.clear()
    assert node.sharing.ailment((0,)) == ""


def test_who_was_kept_ready_for_another_way_of_sharing_is_not_needed(node: Node) -> None:
    ready = [node.executor(), node.executor(0, "", ""), node.executor(1, "", ""), node.executor(1)]
    assert [node.sharing.has_changed(one) for one in ready] == [False, True, False, True]
    for one in ready:
        one.assignment = Assign("s", 1, "k", 0, 60.0)
    assert not any(map(node.sharing.has_changed, ready)), "a session goes on as it began"


def test_what_there_is_to_tell_of_it(node: Node) -> None:
    node.stand(problem="there is none")
    told = node.sharing.report(DEVICES[0], 1)
    assert (told.group, told.space, told.ailment) == ("vision", "MPS, for group 'vision'", "there is none")
    assert told.policy == NO_GATE
    assert "all of them use together" in told.unseen
    other = node.sharing.report(DEVICES[1], 1)
    assert (other.group, other.space, other.ailment) == ("", "", "")
    assert node.sharing.way((1,)) is None
