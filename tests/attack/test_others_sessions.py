"""Whoever is admitted asks the gateway for another's session, and another's executor for itself: neither gives it."""

from __future__ import annotations

import secrets

import msgspec
import pytest

from gpu_backend.transport.asking import ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import NotAuthorized, PoolError
from gpu_backend.wire.wish import Wish
from kernelproxy.session.connection import Connection
from tests.attack.conftest import WAYS, Tenants
from tests.attack.hostile import hostile_session
from tests.integration.notebook_pool import STATE_SECONDS

#: Without native code: it is about messages.
pytestmark = pytest.mark.parametrize("tenants", WAYS[:1], indirect=True)


@pytest.mark.parametrize("request_of", [
    lambda session: control.RenewTicket(0, session),
    lambda session: control.RestartSession(0, session),
    lambda session: control.SetWish(0, session, Wish(limit=0.1)),
    lambda session: control.StopPool(0),
], ids=["renew", "restart", "wish", "stop the pool"])  # fmt: skip
def test_another_users_session_is_not_to_be_had(tenants: Tenants, request_of: object) -> None:
    assert callable(request_of)
    with pytest.raises(PoolError):
        ask(tenants.eve, request_of(tenants.ada_ticket.session))
    tenants.computes(2)


def test_another_users_session_is_not_closed(tenants: Tenants) -> None:
    ask(tenants.eve, control.CloseSession(0, tenants.ada_ticket.session))
    tenants.computes(2)
    assert tenants.ada_ticket.session in tenants.pool.sessions()


def test_a_ticket_with_another_secret_opens_nothing(tenants: Tenants) -> None:
    """Eve knows where ada's executor listens, and has a secret of her own."""
    with hostile_session(tenants.eve) as (_, own):
        for secret in (own.secret, secrets.token_hex(32), "00" * 32):
            for endpoint in tenants.ada_ticket.endpoints:
                forged = msgspec.structs.replace(tenants.ada_ticket, secret=secret, endpoints=(endpoint,))
                with pytest.raises(NotAuthorized):
                    Connection(forged, secrets.token_hex(8), False, STATE_SECONDS).close()
    tenants.computes(2)


def test_another_users_label_and_use_are_not_told(tenants: Tenants) -> None:
    view = ask(tenants.eve, control.AskPool(0))
    assert "thesis" not in str(view)
    usage = ask(tenants.eve, control.AskUsage(0, "notebook"))
    assert "thesis" not in str(usage)
    assert "ada" not in str(usage)
