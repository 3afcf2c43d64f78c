"""A session was given, and its executor cannot be reached: the place goes back, and one message says why."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec
import pytest

from gpu_backend.transport import local
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.reaching import Expected
from gpu_backend.wire.control import CloseSession, Denied, FromGateway, OpenSession, RenewTicket, Ticket, ToGateway
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable, ProtocolError, RefusalCode
from kernelproxy import settings
from kernelproxy.client import current
from kernelproxy.session import handover, lease, links
from kernelproxy.sessions import open_session
from tests.unit.workbench.conftest import gateway
from tests.unit.workbench.scripted_gateway import ScriptedGateway, a_ticket, obliging

__all__ = ["gateway"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_GREET_SECONDS", 0.5)
    monkeypatch.setattr(current(), "_handed", "")


@pytest.fixture
def pool(gateway: ScriptedGateway) -> ScriptedGateway:
    """A pool whose executors are behind a firewall: nobody listens where its tickets lead."""

    def answer(message: ToGateway) -> FromGateway | None:
        return a_ticket(message.session) if isinstance(message, RenewTicket) else obliging(message)

    gateway.answer = answer
    return gateway


def handed(thing: handover.Handed, path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    handover.write(thing, path)
    monkeypatch.setattr(current(), "_handed", str(path))
    return path


def test_the_place_goes_back_and_the_message_says_what_to_do(pool: ScriptedGateway) -> None:
    with pytest.raises(PoolUnreachable) as told:
        open_session()
    assert [one.session for one in pool.asked_for(CloseSession)] == ["s1"]
    for word in ("127.0.0.1:9", "Connection refused", "firewall", "The place was given back", "workbench doctor"):
        assert word in str(told.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConnectionLost("it hung up"), RuntimeError("a defect")])
def test_whatever_ends_the_attempt_the_place_goes_back(
    pool: ScriptedGateway, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(links, "reach_far", fail)
    with pytest.raises((KeyboardInterrupt, PoolUnreachable, RuntimeError)):
        open_session()
    assert len(pool.asked_for(CloseSession)) == 1


def test_a_way_that_is_cut_when_the_time_is_up_is_not_reached(
    pool: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: of the ticket it says nothing."""
    now, reach = [0.0], links.reach_far

    def cut_late(endpoint: str, expected: Expected, seconds: float, lanes: int) -> object:
        if now[0]:
            return reach(endpoint, expected, seconds, lanes)
        now[0] = 1.0
        raise ConnectionLost("it hung up")

    monkeypatch.setattr(lease, "monotonic", lambda: now[0])
    monkeypatch.setattr(links, "reach_far", cut_late)
    with pytest.raises(PoolUnreachable, match="timed out"):
        open_session()
    assert len(pool.asked_for(CloseSession)) == 1


def test_an_executor_of_this_machine_is_behind_no_firewall(pool: ScriptedGateway) -> None:
    near = f"{local.SCHEME}{local.here()}/{secrets.token_hex(8)}"
    ticket = Ticket(0, "s1", 1, (near,), "00" * 32, "c" * 64, "cpu0", "cpu", 0, 60.0)
    pool.answer = lambda message: ticket if isinstance(message, OpenSession | RenewTicket) else obliging(message)
    with pytest.raises(PoolUnreachable, match="executor of this machine, and that does not answer") as told:
        open_session()
    assert "firewall" not in str(told.value)


def test_a_session_that_was_handed_over_is_given_back_and_the_next_cell_asks_for_another(
    pool: ScriptedGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = handed(a_ticket("handed"), tmp_path / "ticket", monkeypatch)
    with pytest.raises(PoolUnreachable):
        open_session()
    assert [one.session for one in pool.asked_for(CloseSession)] == ["handed"]
    assert isinstance(handover.read(path), OpenSession)
    with pytest.raises(PoolUnreachable):
        open_session()
    assert [one.session for one in pool.asked_for(CloseSession)] == ["handed", "s1"]


@pytest.mark.parametrize("thing", [a_ticket("old"), RenewTicket(0, "old")], ids=["ticket", "request"])
def test_a_session_that_ended_before_its_first_cell_is_replaced(
    gateway: ScriptedGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thing: handover.Handed
) -> None:
    """A notebook is read for longer than its lease before the first cell is run."""

    def answer(message: ToGateway) -> FromGateway | None:
        if isinstance(message, RenewTicket) and message.session == "old":
            return Denied(0, RefusalCode.UNKNOWN_SESSION, "It has ended.")
        return a_ticket("new") if isinstance(message, RenewTicket | OpenSession) else obliging(message)

    gateway.answer = answer
    handed(thing, tmp_path / "ticket", monkeypatch)
    with pytest.raises(PoolUnreachable, match="cannot be reached"):  # by the way to the new one, which nobody serves
        open_session()
    assert len(gateway.asked_for(OpenSession)) == 1
    assert gateway.asked_for(CloseSession)[-1].session == "new"


def test_a_ticket_that_makes_no_sense_is_told_as_that(gateway: ScriptedGateway) -> None:
    senseless = Ticket(0, "s1", 1, ("tls://nowhere:99999999",), "xyz", "c", "cpu0", "cpu", 0, 60.0)
    gateway.answer = lambda message: senseless if isinstance(message, OpenSession) else obliging(message)
    with pytest.raises(ProtocolError, match="makes no sense"):
        open_session()


@pytest.mark.parametrize("lanes", [0, 3])
def test_an_executor_on_another_host_is_asked_for_the_lanes_that_the_user_wants(
    pool: ScriptedGateway, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    asked = []

    def reach(endpoint: str, expected: object, seconds: float, lanes: int) -> None:
        asked.append(lanes)
        raise ConnectionLost("it is only played")

    monkeypatch.setattr(links, "reach_far", reach)
    settings.save(msgspec.structs.replace(settings.load(), lanes=lanes))
    with pytest.raises(PoolUnreachable, match="it is only played"):
        open_session()
    assert set(asked) == {lanes}


@pytest.mark.parametrize("lanes", [-1, 5])
def test_more_lanes_than_there_are_or_less_than_none_are_refused(pool: ScriptedGateway, lanes: int) -> None:
    settings.save(msgspec.structs.replace(settings.load(), lanes=lanes))
    with pytest.raises(PoolRefusal, match=r"client\.toml .*lanes"):
        open_session()
