"""Process groups in which somebody does not come, does not fit, goes or is interrupted."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpu_backend.pool import people
from gpu_backend.pool.state import PoolState
from tests.integration.ranks import Ranks
from tests.integration.test_process_groups import _each_begins_alone, pool

__all__ = ["_each_begins_alone", "pool"]

pytestmark = pytest.mark.timeout(300)

_IMPATIENT = """
from kernelproxy.namespace.process_group import meeting

def asked(*of, ask=meeting._asked):
    group = ask(*of)
    if group is not None:  # however long it takes until the pool has said who is missing
        meeting.PATIENCE_SECONDS = 0.0
    return group

meeting._asked = asked
init_process_group(size, rank, port=7)
"""


def test_who_did_not_come_is_named(pool: PoolState) -> None:
    with Ranks(_IMPATIENT, 3, ranks=[1]) as running:
        assert "Of the 3 processes of the group 127.0.0.1:7, ranks 0, 2 did not come within 0 s." in running.errors()[0]


_ONE_GOES_AWAY = """
from kernelproxy.namespace.process_group import backend, meeting
channels_to = backend.channels_to

def met(*of):
    channels = channels_to(*of)
    if rank == 1:
        print("met", flush=True)
        sys.stdin.read()
        sys.exit()
    meeting.PATIENCE_SECONDS = 0.5
    return channels

backend.channels_to = met
try:
    init_process_group(size, rank)
except TimeoutError as error:
    print(error, cp.arange(3).sum())
"""


def test_who_goes_away_when_all_have_come_is_not_waited_for_without_end(pool: PoolState) -> None:
    with Ranks(_ONE_GOES_AWAY, 2, ranks=[1]) as gone, Ranks(_ONE_GOES_AWAY, 2, ranks=[0]) as waiting:
        assert gone.line(0) == "met\n"
        assert "not all went on within 0.5 s: one was interrupted or has ended." in waiting.line(0)
        assert gone.said() == [""]


_GIVES_UP = """
from kernelproxy.namespace.process_group import meeting
meeting._look = lambda *of: print("waits", flush=True)
comm = None
while comm is None:
    try:
        print("begins", flush=True)
        comm = init_process_group(size, rank)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.read()
"""


def test_who_is_interrupted_while_it_waits_is_not_counted_on(pool: PoolState) -> None:
    with Ranks(_GIVES_UP, 2, ranks=[0]) as first:
        assert [first.line(0), first.line(0)] == ["begins\n", "waits\n"]
        first.signal(0, signal.SIGINT)
        while first.line(0) != "interrupted\n":
            pass
        with Ranks(_JOIN, 2, ranks=[1]) as last:
            assert last.line(0) == "waits\n", "the group was made with one that is not there"
            assert first.errors() == last.errors() == [""]


_JOIN = """
from kernelproxy.namespace.process_group import meeting
meeting._look = lambda *of: print("waits", flush=True)
init_process_group(int(os.environ.get("OF", size)), int(os.environ.get("AS", rank)))
"""


@pytest.mark.parametrize(
    ("more", "why"),
    [({"AS": "0"}, "Another process is rank 0 of the group 127.0.0.1:13333."),
     ({"OF": "3"}, "The group 127.0.0.1:13333 is of 2 processes for others, and of 3 for this one.")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(pool: PoolState, more: dict[str, str], why: str) -> None:
    with Ranks(_JOIN, 2, ranks=[0]) as first:
        assert first.line(0) == "waits\n"
        with Ranks(_JOIN, 2, ranks=[1], **more) as wrong:
            assert why in wrong.errors()[0]
        with Ranks(_JOIN, 2, ranks=[1]) as right:
            assert right.errors() == first.errors() == [""]


def test_another_users_process_does_not_meet_ours(pool: PoolState, tmp_path: Path) -> None:
    people.add_user(pool, "eve")
    people.make_key(pool, "eve", tmp_path / "eve.key")
    own = Path(os.environ["GPU_WORKBENCH_CONFIG"]).read_text().splitlines()
    hers = tmp_path / "eve.toml"
    hers.write_text("\n".join([f'key_file = "{tmp_path / "eve.key"}"', *[x for x in own if not x.startswith("key_f")]]))
    with (
        Ranks(_IMPATIENT, 2, ranks=[0]) as ours,
        Ranks(_IMPATIENT, 2, ranks=[1], GPU_WORKBENCH_CONFIG=str(hers)) as other,
    ):
        assert "rank 1 did not come" in ours.errors()[0]
        assert "rank 0 did not come" in other.errors()[0]


_BESIDE_A_DEAD_ONE = """
from gpu_backend.wire.errors import NotCopied
comm = init_process_group(size, rank)
comm.barrier()
print("met", flush=True)
if rank == 0:
    sys.stdin.read()
out = cp.empty(3)
try:
    comm.all_reduce(cp.ones(3), out)
    out.get()
except NotCopied as error:
    print("told", "Run the cell again." in str(error))
print(cp.arange(3).sum())
"""


def test_whose_peer_was_killed_is_told_and_goes_on(pool: PoolState) -> None:
    with Ranks(_BESIDE_A_DEAD_ONE, 3, ranks=[1, 2]) as others, Ranks(_BESIDE_A_DEAD_ONE, 3, ranks=[0]) as dies:
        assert [dies.line(0), others.line(0), others.line(1)] == ["met\n"] * 3
        dies.signal(0, signal.SIGKILL)
        assert others.said() == ["told True\n3\n"] * 2


_INTERRUPTED = """
from gpu_backend.wire.errors import NotCopied
from kernelproxy.client import current
comm = init_process_group(size, rank)
out = cp.zeros(3)
if rank == 0:
    comm.all_reduce(cp.ones(3), out)  # the other does not come
    try:
        print("waits", flush=True)
        out.get()
    except KeyboardInterrupt:
        current().session.cancel_pending()
    print(cp.arange(3).sum(), flush=True)
else:
    sys.stdin.read()
    comm.all_reduce(cp.ones(3), out)  # it was sent something if that was not dropped by then
    try:
        print(out.get().tolist())
    except NotCopied:
        print("told")
out = cp.zeros(3)
comm.all_reduce(cp.full(3, 5.0), out)
print(out.get().tolist())
"""


def test_a_rank_that_waits_can_be_interrupted_and_the_next_calls_are_each_others(pool: PoolState) -> None:
    with Ranks(_INTERRUPTED, 2) as both:
        assert both.line(0) == "waits\n"
        both.signal(0, signal.SIGINT)
        assert both.line(0) == "3\n"
        first, second = both.said()
    assert first == "[10.0, 10.0, 10.0]\n"
    assert second in ("[2.0, 2.0, 2.0]\n[10.0, 10.0, 10.0]\n", "told\n[10.0, 10.0, 10.0]\n")
