"""What nodes say is used counts as their users' share of the pool while it is of a session that there still is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gpu_backend.gateway.accounts import Accounts
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements
from gpu_backend.gateway.ledger import Ledger
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.control import Booked, ExecutorReport, NodeReport, Usage
from gpu_backend.wire.devices import DeviceReport

NODE = "n"
DEVICES = tuple(DeviceReport(ordinal, "cpu", "CPU", f"u{ordinal}", 1, 1, policy="steered") for ordinal in (0, 1))


def session(name: str, user: str, ordinal: int, state: SessionState = SessionState.SERVING) -> Session:
    return Session(
        id=name, user=user, client_key=user, label="", node=NODE, ordinal=ordinal, device_kind="cpu",
        memory_limit_bytes=0, lease_seconds=60.0, opened_at=1.0, state=state, epoch=1,
    )  # fmt: skip


def line(one: Session, seconds: float) -> ExecutorReport:
    return ExecutorReport(
        one.id, 1, one.ordinal, one.client_key, (), "5" * 64, "c" * 64, 0, 60.0, 0, 0, 0.0, Usage(),
        Booked(seconds, seconds, 100.0 + seconds),
    )  # fmt: skip


@pytest.mark.parametrize("state", [SessionState.SERVING, SessionState.CLOSED])
def test_a_session_of_long_ago_takes_nothing_of_its_users_share(tmp_path: Path, state: SessionState) -> None:
    """It may be told of for ever, by a node that kept its seal or is on record as where it was."""
    elsewhere = session("a", "ada", 0, state)
    every = {one.id: one for one in (elsewhere, session("b", "ada", 1), session("c", "eve", 1))}
    directory, accounts = Directory(tmp_path / "directory.sqlite"), Accounts(tmp_path / "accounts.sqlite")
    ledger = Ledger(directory, accounts, Entitlements(), steered_policies=frozenset({"steered"}))
    for seconds in range(1, 20):
        ledger.hear(NODE, NodeReport(DEVICES, tuple(line(one, seconds) for one in every.values()), 3), every)
        ledger.settle_shares([NODE])
    directory.close()
    accounts.close()
    weight = ledger.pool.weights((NODE, 1), "ada", "").user
    assert weight == 1.0 if state is SessionState.CLOSED else weight < 0.5


def test_of_several_devices_it_is_told_what_is_used_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a device that is full looks half empty, and another one that nobody uses half full."""
    both = replace(session("a", "ada", 0), others=(1,))
    directory, accounts = Directory(tmp_path / "directory.sqlite"), Accounts(tmp_path / "accounts.sqlite")
    ledger = Ledger(directory, accounts, Entitlements(), steered_policies=frozenset({"steered"}))
    assert (ledger.used_by_device(both), ledger.busy(both)) == ([], 0.0)
    for now in range(5):
        monkeypatch.setattr("gpu_backend.gateway.ledger.monotonic", lambda now=now: float(now))
        told = msgspec.structs.replace(
            line(both, 0.75 * now), used_bytes=900, usage=Usage(1.5 * now), others=(1,), held=(100, 600),
            others_booked=(Booked(0.75 * now, 0.0, 100.0 + now),),
        )  # fmt: skip
        ledger.hear(NODE, NodeReport(DEVICES, (told,), 1), {both.id: both})
    assert (ledger.used_by_device(both), ledger.busy(both)) == ([(0, 100, 0.75), (1, 600, 0.75)], 0.75)
    unseen = msgspec.structs.replace(told, others_booked=(Booked(),))  # no arbiter looks at it
    older = msgspec.structs.replace(unseen, held=())  # by an agent that does not tell
    for one, held in ((unseen, (100, 600)), (older, (450, 450))):
        ledger.hear(NODE, NodeReport(DEVICES, (one,), 1), {both.id: both})
        assert ledger.used_by_device(both) == [(0, held[0], 0.75), (1, held[1], 0.75)]
    directory.close()
    accounts.close()
