"""Events in few words, and machines to which they have happened."""

from __future__ import annotations

from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.machine import Lifecycle, Patience

HERE = ev.Place("node", 0, "cpu")
THERE = ev.Place("other", 1, "cpu")
PATIENCE = Patience(launch_seconds=60.0, lease_margin_seconds=30.0, join_seconds=20.0)
LEASE = 100.0


def machine(*events: ev.Event, now: float = 0.0) -> Lifecycle:
    lifecycle = Lifecycle(patience=PATIENCE)
    for event in events:
        lifecycle.handle(event, now)
    return lifecycle


def admitted(session: str = "s", place: ev.Place = HERE) -> ev.SessionAdmitted:
    return ev.SessionAdmitted(
        session=session, user="ada", client_key="key", label="a.ipynb", place=place, memory_limit_bytes=0,
        lease_seconds=LEASE, opened_at=1.0,
    )  # fmt: skip


def ready(epoch: int = 1, session: str = "s") -> ev.ExecutorReady:
    return ev.ExecutorReady(session, epoch, ("tls://e:1",), f"secret{epoch}", f"certificate{epoch}")


def ended(epoch: int = 1, is_final: bool = False) -> ev.ExecutorEnded:
    return ev.ExecutorEnded("s", epoch, is_final, "It died.")


def live(
    epoch: int = 1,
    session: str = "s",
    idle: float = 0.0,
    user: str = "",
    has_joined: bool = True,
    is_sealed: bool = True,
) -> ev.LiveExecutor:
    return ev.LiveExecutor(
        session=session, epoch=epoch, ordinal=0, kind="cpu", user=user, client_key="key", endpoints=("tls://e:1",),
        secret=f"secret{epoch}", certificate=f"certificate{epoch}", memory_limit_bytes=0, lease_seconds=LEASE,
        idle_seconds=idle, is_sealed=is_sealed, has_joined=has_joined,
    )  # fmt: skip


def reported(*executors: ev.LiveExecutor, node: str = "node") -> ev.NodeReported:
    return ev.NodeReported(node, executors, 5.0)


SERVING = (admitted(), ready())
LOST = (*SERVING, ended())


def kinds(instructions: list[ev.Instruction]) -> list[str]:
    return [type(instruction).__name__ for instruction in instructions]
