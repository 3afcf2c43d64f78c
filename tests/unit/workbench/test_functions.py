"""What a function's calls ask of a pool, and what is told of those that get nothing; a scripted gateway answers."""

from __future__ import annotations

import threading
from collections import defaultdict, namedtuple
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelproxy
import workbench
from gpu_backend.wire.control import Denied, Done, FromGateway, LeaveQueue, OpenSession, Queued, ToGateway
from gpu_backend.wire.errors import PoolFull, PoolRefusal, PoolUnreachable, RefusalCode
from gpu_backend.wire.wish import Wish
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.common_client import MixedClients
from kernelproxy.client import Client, current
from kernelproxy.settings import CONFIG_VARIABLE
from workbench.call_client import CallClient, Terms
from workbench.held import Held
from workbench.passing import brought_home, client_of

from .scripted_gateway import ScriptedGateway

QUEUED = Queued(0, 3, 5, -1.0, "The pool is full: 8 of 8 places are taken.")


@pytest.fixture(autouse=True)
def inactive() -> Iterator[None]:
    """Whatever a function makes of `import cupy`, other tests have it as it was."""
    yield
    kernelproxy.deactivate()


@pytest.fixture
def nothing() -> Any:
    @workbench.function(gpu=0.5, memory="4 GiB")
    def nothing() -> None:
        raise AssertionError("it has no session")

    return nothing


def asked(gateway: ScriptedGateway) -> OpenSession:
    first = gateway.asked_for(OpenSession)[0]
    assert isinstance(first, OpenSession)
    return first


def test_what_is_said_of_the_function_is_asked_for(
    gateway: ScriptedGateway, nothing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is what the user's other sessions ask for."""
    monkeypatch.setenv("GPU_WORKBENCH_MEMORY", "1 GiB")
    monkeypatch.setenv("GPU_WORKBENCH_LIMIT", "0.8")
    monkeypatch.setattr(current().wishes, "said", Wish("best-effort", request=0.7, limit=0.9, priority=2))
    gateway.answer = lambda message: Denied(0, RefusalCode.NO_DEVICE, "Nothing for you.", "Go home.")
    for one in (nothing, nothing.options(memory=1 << 20), workbench.function(nothing.__wrapped__)):
        with pytest.raises(PoolRefusal, match=r"Nothing for you\. Go home\."):
            one().result()
    known, smaller, usual = gateway.asked_for(OpenSession)
    assert isinstance(known, OpenSession)
    assert (known.label, known.memory_bytes) == ("function nothing", 4 << 30)
    assert known.wish == Wish("best-effort", request=0.5, limit=0.5, priority=2)
    assert known.waiter
    assert isinstance(smaller, OpenSession)
    assert (smaller.memory_bytes, smaller.wish) == (1 << 20, known.wish)
    assert isinstance(usual, OpenSession)
    assert (usual.memory_bytes, usual.wish) == (1 << 30, Wish("best-effort", request=0.7, limit=0.9, priority=2))


def test_a_call_that_is_cancelled_in_the_queue_leaves_it(gateway: ScriptedGateway, nothing: Any) -> None:
    left = threading.Event()

    def answer(message: ToGateway) -> FromGateway:
        if isinstance(message, LeaveQueue):
            left.set()
            return Done(0)
        future.cancel()
        return QUEUED

    gateway.answer = lambda message: QUEUED
    future = nothing()
    gateway.answer = answer
    assert left.wait(60)
    assert future.cancelled()
    assert {one.waiter for one in gateway.asked_for(LeaveQueue)} == {asked(gateway).waiter}  # type: ignore[attr-defined]


def test_a_call_whose_time_is_over_leaves_the_queue_and_says_what_is_full(
    gateway: ScriptedGateway, nothing: Any
) -> None:
    gateway.answer = lambda message: Done(0) if isinstance(message, LeaveQueue) else QUEUED
    with pytest.raises(PoolFull) as told:
        nothing.options(timeout=0)().result()
    assert str(told.value) == (
        "A call of nothing waited 0 s for a place in the pool and found none: The pool is full: 8 of 8 places are "
        "taken. You are number 3 of 5 in the queue. Call it again later, or give it a longer timeout."
    )
    assert len(gateway.asked_for(OpenSession)) == 1
    assert len(gateway.asked_for(LeaveQueue)) == 1


def test_what_is_cancelled_before_it_is_asked_for_is_not_asked_for(gateway: ScriptedGateway, nothing: Any) -> None:
    is_cancelled = threading.Event()

    def answer(message: ToGateway) -> FromGateway:
        assert is_cancelled.wait(60)
        return Denied(0, RefusalCode.QUOTA, "Too many.")

    gateway.answer = answer
    one_by_one = nothing.options(max_workers=1)
    first, second, third = one_by_one(), one_by_one(), one_by_one()
    assert second.cancel()
    is_cancelled.set()
    for future in (first, third):
        with pytest.raises(PoolRefusal, match="Too many"):
            future.result()
    assert len(gateway.asked_for(OpenSession)) == 2


def test_one_that_is_cancelled_as_it_is_refused_is_cancelled(gateway: ScriptedGateway, nothing: Any) -> None:
    """And the thread goes on to the next."""
    futures: list[Any] = []
    is_made = threading.Event()

    def answer(message: ToGateway) -> FromGateway:
        assert is_made.wait(60)
        if len(gateway.asked_for(OpenSession)) == 1:
            assert futures[0].cancel()
        return Denied(0, RefusalCode.QUOTA, "Too many.")

    gateway.answer = answer
    one_by_one = nothing.options(max_workers=1)
    futures += [one_by_one(), one_by_one()]
    is_made.set()
    with pytest.raises(PoolRefusal, match="Too many"):
        futures[1].result()
    assert futures[0].cancelled()


def test_without_a_pool_the_future_says_so(nothing: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(PoolUnreachable, match="No pool is set up here"):
        nothing().result()


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ({"gpu": 2}, "part of one device, above 0 and up to 1, not 2"),
        ({"gpu": 0}, "not 0"),
        ({"memory": "lots"}, "'lots' is no amount of memory"),
        ({"timeout": -1}, "seconds from 0 on, not -1"),
        ({"max_workers": 0}, "from 1 on, not 0"),
    ],
)
def test_terms_that_mean_nothing_are_refused_where_they_stand(terms: dict[str, Any], told: str) -> None:
    for say in (workbench.function, workbench.function(print).options):
        with pytest.raises(ValueError, match=told):
            say(**terms)


def test_what_would_run_nothing_is_refused() -> None:
    async def waits() -> None: ...

    def yields() -> Iterator[int]:
        yield 1

    for wrapped, kind in ((waits, "coroutine"), (yields, "generator")):
        with pytest.raises(TypeError, match=f"{kind} function.*plain function"):
            workbench.function(wrapped)


def test_it_is_the_function_that_it_was_made_of() -> None:
    def area(width: float, height: float) -> float:
        """Return it."""
        return width * height

    made = workbench.function(area)
    assert (made.__name__, made.__doc__) == ("area", "Return it.")
    assert made.__wrapped__(2, 3) == 6
    assert repr(made.options(gpu=0.1)) == "<workbench.function area>"


# --- what is passed ---------------------------------------------------------------------------------------------------


def array_of(client: Client) -> Any:
    array = ArrayCore()
    array._client, array._dropped = client, None
    return array


def test_arrays_are_found_in_whatever_holds_them() -> None:
    one, other = Client(), Client()
    assert client_of(1, [2, (3, {"a": "b"})], {4}) is None
    assert client_of(1, [2, (3, {"a": array_of(one)})], array_of(one)) is one
    with pytest.raises(MixedClients):
        client_of([array_of(one)], {"b": array_of(other)})


def test_what_holds_nothing_remote_comes_home_as_it_is() -> None:
    pair = namedtuple("pair", "left right")
    found = brought_home({"a": [1, (2, None)], "b": pair("c", 3.0)})
    assert found == {"a": [1, (2, None)], "b": pair("c", 3.0)}
    assert type(found["b"]) is pair
    counts = defaultdict(list, {"a": [1]})
    assert brought_home(counts)["b"] == []
    assert counts == {"a": [1]}
    thing = SimpleNamespace(get=1)
    assert brought_home(thing) is thing


# --- who waits for whom -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("gateway")
def test_one_that_is_refused_waits_for_what_may_be_given_back() -> None:
    held = Held(current())
    first, second = (CallClient("f", Terms()) for _ in range(2))
    seen = held.ask(first)
    assert not held.wait_for_another(seen, [first], lambda: True), "nobody else has any"
    held.settle(first, has_session=True)
    seen = held.ask(second)
    held.settle(second, has_session=False)
    assert not held.wait_for_another(seen, [first], lambda: True), "the first waits for the second"
    assert held.wait_for_another(seen, [], lambda: False), "it is not wanted any more"
    waits = threading.Thread(target=lambda: told.append(held.wait_for_another(seen, [], lambda: True)))
    told: list[bool] = []
    waits.start()
    held.give_back(first)
    waits.join(60)
    assert told == [True]


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"gpu": "x"}, r"gpu is to be a part of one device, above 0 and up to 1, not 'x'\."),
        ({"gpu": True}, r"gpu is to be a part of one device.* not True\."),
        ({"timeout": "x"}, r"timeout is to be a number of seconds from 0 on, not 'x'\."),
        ({"timeout": float("nan")}, r"timeout is to be a number of seconds from 0 on, not nan\."),
        ({"max_workers": "a"}, r"max_workers is to be a whole number from 1 on, not 'a'\."),
        ({"max_workers": 1.5}, r"max_workers is to be a whole number from 1 on, not 1\.5\."),
        ({"memory": 1.5}, r'memory is to be an amount like "4 GiB", or a whole number of bytes, not 1\.5\.'),
        ({"memory": 10**20}, r"memory is to be a number of bytes from 0 to 1125899906842624 \(1024\.0 TiB\)\."),
        ({"memory": 10**5000}, r"memory is to be a number of bytes from 0 to 1125899906842624 \(1024\.0 TiB\)\."),
        ({"memory": -1}, r"memory is to be a number of bytes from 0 to "),
        ({"memory": "99999999999999999999 GiB"}, r"more memory than there can be"),
    ],
)
def test_terms_that_are_no_such_amounts_are_told_in_a_sentence(terms: dict[str, Any], said: str, nothing: Any) -> None:
    for make in (workbench.function, nothing.options):
        with pytest.raises(ValueError, match=f"{said}"):
            make(**terms)


def test_amounts_of_numpy_are_amounts(nothing: Any) -> None:
    terms = nothing.options(
        gpu=np.float32(0.5), memory=np.int64(1 << 20), timeout=np.int32(1), max_workers=np.int8(2)
    )._terms
    amounts = (terms.gpu, terms.memory_bytes, terms.timeout_seconds, terms.max_workers)
    assert amounts == (0.5, 1 << 20, 1, 2)
    assert [type(one) for one in amounts] == [float, int, float, int]  # nothing else can be sent


def test_what_cannot_be_called_is_made_no_function() -> None:
    wrong: Any = "4 GiB"
    for given in (3, wrong):
        with pytest.raises(TypeError, match=rf"{given!r} cannot be called\. What it asks for is said by name"):
            workbench.function(given)
