"""What an agent tells the arbiter of a device: two files in the arbiter's own directory.

``config.json`` holds for the arbiter's life. ``roster.json`` is replaced whenever something changes and touched while
nothing does, so that an arbiter without an agent notices; it is always the whole truth, and whoever starts anew needs
nothing else.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpu_backend.gate.terms import SessionTerms
from gpu_backend.transport.private_files import replace_private

__all__ = [
    "BELL",
    "CONFIG",
    "PROCESS",
    "ROSTER",
    "ArbiterConfig",
    "Member",
    "Roster",
    "name_of",
    "read_config",
    "read_roster",
    "write",
]

CONFIG, ROSTER, BELL, PROCESS = "config.json", "roster.json", "bell", "process.json"
#: Why the arbiter sees nobody from outside; none if it does.
_UNSEEN = "unseen"


class ArbiterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one arbiter."""

    #: Name of the policy.
    policy: str
    #: Without a word from the agent for this long the arbiter opens all gates and ends.
    orphan_seconds: float = 120.0
    #: What the device is, "cuda" or "cpu", and which; where it is not said, nobody sees from outside who uses it.
    device_kind: str = ""
    device_uuid: str = ""
    #: For how long an op that runs when its session's gate shuts may go on while others want the device; 0 for ever.
    overrun_seconds: float = 0.0


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An executor that serves a session on the device."""

    terms: SessionTerms
    pid: int
    start_time: int
    #: Socket file on which it takes orders, and its gate's pages.
    control: str
    #: Number of its descriptor of its report page.
    report: int
    #: Which of its devices this one is.
    device: int = 0

    @property
    def name(self) -> str:
        """As what an arbiter knows the executor in its own directory."""
        return name_of(self.pid, self.start_time, self.report)


def name_of(pid: int, start_time: int, report: int) -> str:
    """Return as what an arbiter knows an executor in its own directory: no other ever has that name."""
    return f"{pid}-{start_time}-{report}"


class Roster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All executors that serve a session on the device."""

    members: tuple[Member, ...] = ()


def read_config(directory: Path) -> ArbiterConfig:
    """Return the settings in an arbiter's directory.

    Raises
    ------
    msgspec.DecodeError
        If they do not fit.
    OSError
        If there are none.
    """
    return msgspec.json.decode((directory / CONFIG).read_bytes(), type=ArbiterConfig)


def read_roster(directory: Path) -> Roster:
    """Return who shares the device; nobody if it was never said."""
    try:
        return msgspec.json.decode((directory / ROSTER).read_bytes(), type=Roster)
    except FileNotFoundError:
        return Roster()


def write(path: Path, value: ArbiterConfig | Roster) -> None:
    """Write one of the two files, all or nothing, for its owner only."""
    replace_private(path, msgspec.json.encode(value))


def note_unseen(directory: Path, problem: str) -> None:
    """Note in an arbiter's directory why it sees nobody from outside; empty if it does."""
    path = directory / _UNSEEN
    if not problem:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(problem)
    fresh.replace(path)


def unseen(directory: Path) -> str:
    """Return why the arbiter of that directory sees nobody from outside; empty if it does, or has not said."""
    try:
        return (directory / _UNSEEN).read_text()
    except OSError:
        return ""
