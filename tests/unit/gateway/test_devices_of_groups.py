"""A device that serves one group (MPS): others do not get there, do not wait for it, and keep it from nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest
import zmq.asyncio

from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.placement import place, reserved
from gpu_backend.gateway.queue import Waiter, allot
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire import control
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import RefusalCode

GIB = 1 << 30
SHARED = DeviceLoad("n", 0, "cuda", "a GPU", 80 * GIB, 2, group="vision", members=frozenset({"ada"}))
PLAIN = DeviceLoad("n", 1, "cuda", "a GPU", 40 * GIB, 2)


def spot(among: list[DeviceLoad], user: str, **wanted: object) -> int | Refusal:
    found = place(among, "", 0, Wanted(user=user, **wanted))  # type: ignore[arg-type]
    return found if isinstance(found, Refusal) else found.ordinal


def waiter(user: str, since: float) -> Waiter:
    return Waiter(client_key=user, waiter="w", user=user, label="", since=since, kind="", memory_bytes=0)


def test_others_get_another_device_however_full_it_is() -> None:
    assert spot([SHARED, replace(PLAIN, sessions=1)], "eve") == 1
    assert spot([SHARED, replace(PLAIN, sessions=1)], "ada") == 0


def test_others_do_not_wait_for_it() -> None:
    refused = spot([SHARED], "eve")
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.NO_DEVICE
    assert "'vision'" in refused.message
    full = spot([SHARED, replace(PLAIN, sessions=2)], "eve")
    assert isinstance(full, Refusal)
    assert full.code is RefusalCode.POOL_FULL
    assert "2 of 2 places" in full.message, "only what they could have is counted"


def test_what_one_is_refused_another_may_get() -> None:
    found = allot([waiter("eve", 1.0), waiter("ada", 2.0)], [SHARED, replace(PLAIN, sessions=2)])
    assert isinstance(found["eve", "w"], Refusal)
    got = found["ada", "w"]
    assert isinstance(got, DeviceLoad)
    assert got.ordinal == 0


@pytest.mark.parametrize(("user", "kept"), [("ada", 0), ("eve", 1)])
def test_who_waits_keeps_a_device_that_they_can_have(user: str, kept: int) -> None:
    after = reserved([SHARED, PLAIN], "", 0, Wanted(user=user))
    assert [one.ordinal for one in after if one.sessions == one.capacity] == [kept]


def test_it_goes_with_no_other_into_a_session() -> None:
    assert isinstance(spot([SHARED, PLAIN], "ada", devices=2), Refusal)
    assert spot([SHARED, PLAIN, replace(PLAIN, ordinal=2)], "ada", devices=2) == 1


def test_none_goes_where_none_can_begin() -> None:
    ailing = replace(SHARED, ailment="its daemon has ended")
    assert spot([ailing, replace(PLAIN, sessions=1)], "ada") == 1
    refused = spot([ailing], "ada")
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.POOL_FULL, "it may be mended"
    assert "n/cuda0 cannot be used: its daemon has ended" in refused.message


def test_who_is_in_the_group_is_asked_each_time() -> None:
    members = {"vision": frozenset({"ada"})}
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as socket:
        nodes = Nodes(socket, 10.0, 1, members=lambda group: members.get(group, frozenset()))
        shared = DeviceReport(0, "cuda", "a GPU", "GPU-0", GIB, 0, group="vision", space="MPS", ailment="none yet")
        nodes.note("n", b"route", control.NodeReport((shared, DeviceReport(1, "cpu", "", "", GIB, 0)), (), 0))
        first, plain = nodes.devices()
        members["vision"] = frozenset()
        assert nodes.devices()[0].members == frozenset()
    assert (first.group, first.members, first.space, first.ailment) == ("vision", {"ada"}, "MPS", "none yet")
    assert plain.members is None
