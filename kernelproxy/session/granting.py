"""Asking the gateway for a ticket until it gives one or says no."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gpu_backend.wire import control
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import AnswerOverdue, ExecutorStarting, PoolUnreachable, ProtocolError
from kernelproxy.session import gateway_client
from kernelproxy.session.signs import Signs
from kernelproxy.session.waiting import Wait
from kernelproxy.settings import ClientSettings

#: How long the gateway may take to answer, seconds.
GATEWAY_SECONDS = 5.0
#: How long to ask again for an executor that is starting, seconds.
_START_SECONDS = 90.0
#: How long a lost connection is tried before the user hears of it, seconds.
PATIENCE_SECONDS = 60.0
#: How long a gateway is asked again that has taken a request and does not answer, seconds.
_OVERDUE_SECONDS = 12.0


def granted(settings: ClientSettings, request: control.OpenSession | control.RenewTicket, signs: Signs) -> Ticket:
    """Ask the gateway until it gives a ticket or says no; "not yet" takes it nearly two seconds to say."""
    with Wait(settings, request, signs) as wait:
        return _asked(settings, request, wait, signs.heed)


def _asked(
    settings: ClientSettings,
    request: control.OpenSession | control.RenewTicket,
    wait: Wait,
    heed: Callable[[], None],
) -> Ticket:
    deadline = monotonic() + _START_SECONDS
    while True:
        heed()
        try:
            answer = gateway_client.request(settings, request, GATEWAY_SECONDS)
        except ExecutorStarting:
            if monotonic() > deadline:
                raise
            wait.hear()
            wait.look("Starting an executor in the pool")
            continue
        except PoolUnreachable as error:
            if wait.silent_seconds > _patience(request, wait.has_place, isinstance(error, AnswerOverdue)):
                raise
            wait.look("Waiting for the pool to answer")
            continue
        if isinstance(answer, Ticket):
            return answer
        if not isinstance(answer, control.Queued):
            raise ProtocolError("The gateway did not answer with a ticket.")
        wait.show(answer)
        deadline = monotonic() + _START_SECONDS


def _patience(request: control.OpenSession | control.RenewTicket, has_place: bool, was_taken: bool) -> float:
    """Return for how long to ask again where no answer comes, seconds."""
    if has_place:
        return PATIENCE_SECONDS  # a gateway that is being restarted has kept our place
    is_known = isinstance(request, control.RenewTicket) or bool(request.waiter)  # so that nobody gets two sessions
    return _OVERDUE_SECONDS if was_taken and is_known else 0.0
