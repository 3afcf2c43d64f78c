"""A played driver that would die of any number that is no handle: it is never asked about one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpu_backend.executor.handles import Handles
from gpu_backend.opstream.surface.addresses import addresses
from gpu_backend.opstream.surface.handles import handle_table, taken

KINDS = handle_table().kinds
RUNTIME = "cupy.cuda.runtime"
MADE_UP = (3, 0x400000, -1, 1 << 62)


class Died(BaseException):
    """The driver read where a number points that is no handle."""


class Thing:
    """A stream, an event: it can be watched."""

    ptr = 0x7000


class Compiled:
    """A function of a kernel, a graph: it cannot."""

    __slots__ = ("ptr",)

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Session:
    """Handles, and a driver that knows which numbers it gave."""

    def __init__(self) -> None:
        self.classes: dict[type, str] = {}
        self.handles = Handles(lambda value: self.classes.get(type(value)))
        self.alive: set[int] = set()
        self.next = 0x1000

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.handles.held(name, self._driver(name), bound=False)(*args, **kwargs)

    def _driver(self, name: str) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            places = addresses().get(name, {})
            for parameter, kind in taken().get(name, {}).items():
                place = places[parameter]
                given = args[place] if place is not None and place < len(args) else kwargs[parameter]
                if type(given) is not int or given not in self.alive | set(KINDS[kind].always):
                    raise Died(name)
                if any(name in one.ended for one in KINDS.values()):
                    self.alive.discard(given)
            self.next += 16
            self.alive.add(self.next)
            return self.next

        return function

    def show(self, kind: str, owner: Any) -> int:
        """Let the notebook read the handle of ``owner``."""
        self.alive.add(owner.ptr)
        return int(self.handles.told(KINDS[kind].attributes[0], owner, owner.ptr))


@pytest.fixture
def session() -> Session:
    return Session()


def arguments(name: str, number: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for ``name`` with ``number`` for all that are held, and few for others."""
    places = [place for place in addresses()[name].values() if place is not None]
    args: list[Any] = [1] * (max(places, default=-1) + 1)
    kwargs = {}
    for parameter in taken()[name]:
        place = addresses()[name][parameter]
        if place is None:
            kwargs[parameter] = number
        else:
            args[place] = number
    return args, kwargs


@pytest.mark.parametrize("name", taken())
def test_a_number_that_is_made_up_reaches_no_function(session: Session, name: str) -> None:
    for number in MADE_UP:
        args, kwargs = arguments(name, number)
        with pytest.raises(ValueError, match=rf"{number:#x} is no .* of this session: give .*\."):
            session.call(name, *args, **kwargs)
        for parameter, place in addresses()[name].items():
            if place is not None and parameter in taken()[name]:
                with pytest.raises((ValueError, KeyError)):  # by keyword: alone, so that it is looked at
                    session.call(name, **{parameter: number})
    for other in (1.5, "7", None, Thing()):
        args, kwargs = arguments(name, other)
        with pytest.raises(TypeError):
            session.call(name, *args, **kwargs)


@pytest.mark.parametrize("name", [name for kind in KINDS.values() for name in kind.given])
def test_what_was_given_is_taken_until_it_is_destroyed(session: Session, name: str) -> None:
    (kind,) = (kind for kind in KINDS.values() if name in kind.given)
    args: list[Any] = []
    if name in taken():
        (needed,) = taken()[name].values()
        args = [session.show(needed, owner := Thing())]
        assert owner.ptr in session.alive
    handle = session.call(name, *args)
    (end,) = kind.ended
    session.call(end, handle)
    with pytest.raises(ValueError, match="of this session"):
        session.call(end, handle)


def test_the_default_streams_are_taken_always(session: Session) -> None:
    for stream in (0, 1, 2):
        session.call(f"{RUNTIME}.streamSynchronize", stream)
        with pytest.raises(ValueError, match="belongs to an object of this session"):
            session.call(f"{RUNTIME}.streamDestroy", stream)
    with pytest.raises(ValueError, match="0x0 is no event of this session"):
        session.call(f"{RUNTIME}.eventQuery", 0)


def test_a_handle_of_one_kind_is_none_of_another(session: Session) -> None:
    event = session.call(f"{RUNTIME}.eventCreate")
    stream = session.call(f"{RUNTIME}.streamCreateWithFlags", 1)
    session.call(f"{RUNTIME}.eventRecord", event, stream=stream)
    with pytest.raises(ValueError, match="no event"):
        session.call(f"{RUNTIME}.eventRecord", stream, event)
    with pytest.raises(ValueError, match="no stream"):
        session.call(f"{RUNTIME}.streamWaitEvent", event, event)


def test_the_handle_of_an_object_is_taken_while_it_lives(session: Session) -> None:
    stream = Thing()
    handle = session.show("stream", stream)
    session.call(f"{RUNTIME}.streamQuery", handle)
    with pytest.raises(ValueError, match="belongs to an object of this session, which destroys its stream itself"):
        session.call(f"{RUNTIME}.streamDestroy", handle)
    del stream
    with pytest.raises(ValueError, match="no stream of this session"):
        session.call(f"{RUNTIME}.streamQuery", handle)


def test_what_cannot_be_watched_stays_so_that_its_handle_lasts(session: Session) -> None:
    handle = session.show("function", Compiled(0x9000))
    session.call("cupy.cuda.driver.funcGetAttribute", 0, handle)
    session.handles.clear()
    with pytest.raises(ValueError, match="no kernel function of this session"):
        session.call("cupy.cuda.driver.funcGetAttribute", 0, handle)


def test_an_attribute_that_is_no_handle_is_not_noted(session: Session) -> None:
    assert session.handles.told("cupy.cuda.MemoryPointer.ptr", Thing(), 0x5000) == 0x5000
    with pytest.raises(ValueError, match="no stream"):
        session.call(f"{RUNTIME}.streamQuery", 0x5000)


def test_where_cupy_means_a_stream_no_other_object_is_taken(session: Session) -> None:
    session.classes = {Thing: "cupy.cuda.Stream", Compiled: "cupy.cuda.MemoryPointer"}
    stream, pointer = Thing(), Compiled(0x400000)
    session.call("cupy.cuda.MemoryPool.free_all_blocks", object(), stream)
    session.call("cupy.cuda.MemoryPool.free_all_blocks", object(), None)
    for name, args, kwargs in (
        ("cupy.cuda.MemoryPool.free_all_blocks", (object(), pointer), {}),
        ("cupy.cuda.MemoryPool.free_all_blocks", (object(),), {"stream": pointer}),
        ("cupy.cuda.Stream.synchronize", (pointer,), {}),
        ("cupy.cuda.Stream.wait_event", (stream, stream), {}),
        ("cupy.cuda.get_elapsed_time", (pointer, pointer), {}),
        ("cupy.RawKernel.__call__", (object(), (1,), (1,), ()), {"stream": pointer}),
        ("cupy.cuda.Function.__call__", (object(), (1,), (1,), (), 0, pointer), {}),
    ):
        with pytest.raises(TypeError, match="takes a cupy"):
            session.call(name, *args, **kwargs)


def test_what_takes_no_handle_is_itself(session: Session) -> None:
    def add() -> None: ...

    assert session.handles.held("cupy.add", add) is add
