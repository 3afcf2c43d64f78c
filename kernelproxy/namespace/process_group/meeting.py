"""How the processes of a group find each other: at the pool's gateway, which knows whose they are."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from gpu_backend.wire.channels import CHANNEL
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable, TooManyAtOnce, WorkbenchError
from gpu_backend.wire.groups import Group
from gpu_backend.wire.messages import Want
from kernelproxy.client import Client
from kernelproxy.session.signs import Sign

__all__ = ["channels_to", "patiently"]

#: The minor version of pools from which on processes meet there.
_HAS_GROUPS = 3
#: How long the others are waited for, seconds.
PATIENCE_SECONDS = 300.0
#: The gateway answers late while somebody is missing. Where it does not, as too many wait, seconds until the next ask.
_PAUSE_SECONDS = 0.5
_ATTEMPT_BYTES = 16


def channels_to(client: Client, name: str, size: int, rank: int) -> tuple[str, ...]:
    """Return the names of the channels to each rank of a group, "" for our own, once all are there and open.

    Raises
    ------
    TimeoutError
        If somebody did not come in time; the message says who.
    PoolRefusal
        If the others say something else of the group, or the pool is too old to have any.
    PoolError
        If the pool cannot be asked, or the session has ended.
    ConnectionError
        If an executor cannot be reached from another's machine.
    """
    session = client.session
    if session.pipeline.connection.welcome.minor < _HAS_GROUPS:
        raise PoolRefusal("This pool is older than process groups: ask its operator to install a newer gpu-workbench.")
    # Who is in the middle of long work would not hear in time of the channels that are opened.
    session.synchronize()
    channels = _met(client, name, size, rank)
    for other, channel in enumerate(channels):
        why = client.pipeline.call(CHANNEL, (channel, True), Want.CONTENTS).value if channel else ""
        if why:
            raise ConnectionError(f"There is no way from rank {rank} of the group {name} to rank {other}: {why}.")
    return channels


def _met(client: Client, name: str, size: int, rank: int) -> tuple[str, ...]:
    """Wait at the gateway until nobody is missing; an interrupt too ends the line that says what is waited for."""
    raised: BaseException | None = None
    session = client.session  # what is left at the end is left with the one that was said to be a rank
    attempt = secrets.token_hex(_ATTEMPT_BYTES)
    try:
        return _waited(client, name, size, rank, attempt)
    except BaseException as error:  # whatever it is, the line says that it was so
        raised = error
        # Or the group might become whole with this process, and all the others wait for one that is not there.
        session.leave_group(name, size, rank, attempt)
        raise
    finally:
        client.signs.settle(raised)


def _waited(client: Client, name: str, size: int, rank: int, attempt: str) -> tuple[str, ...]:
    begun, missing = monotonic(), tuple(other for other in range(size) if other != rank)
    while (asked := monotonic()) - begun <= PATIENCE_SECONDS:
        if (group := _asked(client, name, size, rank, attempt, begun)) is not None:
            if not group.missing:
                return group.channels
            missing = group.missing
        _look(client, name, missing, begun)
        if monotonic() - asked < _PAUSE_SECONDS:
            sleep(_PAUSE_SECONDS)
    raise TimeoutError(
        f"Of the {size} processes of the group {name}, {_ranks(missing)} did not come within {PATIENCE_SECONDS:g} s. "
        "Start one for each rank, of one user, with one host, port and n_devices."
    )


def _asked(client: Client, name: str, size: int, rank: int, attempt: str, begun: float) -> Group | None:
    """Ask once; None if the gateway does not answer just now, as it is starting again or too many of ours wait."""
    client.signs.heed()
    try:
        return client.session.join_group(name, size, rank, attempt)
    except (PoolUnreachable, TooManyAtOnce):
        if monotonic() - begun > PATIENCE_SECONDS:
            raise
        return None


@contextmanager
def patiently(client: Client, name: str) -> Iterator[None]:
    """Wait in the block, for those who have all come, no longer than for them to come.

    Raises
    ------
    TimeoutError
        If one of them is not there any more; what was recorded is dropped then.
    """
    session, is_over = client.session, threading.Event()

    def give_up() -> None:
        is_over.set()
        session.cancel_pending()

    # Waiting goes as it always does, with its line, interrupts and lost connections; so the end comes from outside.
    timer = threading.Timer(PATIENCE_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except WorkbenchError:
        if not is_over.is_set():
            raise
        raise TimeoutError(
            f"All processes of the group {name} had come, and not all went on within {PATIENCE_SECONDS:g} s: one was "
            "interrupted or has ended. Make the group again, in all of them."
        ) from None
    finally:
        timer.cancel()
        timer.join()  # or it might drop what is recorded after the block


def _look(client: Client, name: str, missing: tuple[int, ...], begun: float) -> None:
    client.signs.look(begun, lambda: Sign(f"Waiting for {_ranks(missing)} of the group {name}"))


def _ranks(missing: tuple[int, ...]) -> str:
    return f"{'rank' if len(missing) == 1 else 'ranks'} {', '.join(map(str, missing))}"
