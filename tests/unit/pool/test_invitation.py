"""Tokens of invitations, and the settings of a machine that joins."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.pool import invitation, joined, settings, state
from gpu_backend.pool.invitation import Invitation
from gpu_backend.pool.serving import gateway_settings
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolRefusal

MADE = Invitation(curve.generate().public, curve.generate())


def test_a_token_brings_the_keys_back_and_is_a_word_for_any_shell() -> None:
    for _ in range(200):
        made = Invitation(curve.generate().public, curve.generate())
        token = invitation.token_of(made)
        assert tuple(invitation.read(f"  {token}\n")) == tuple(made)
        assert token.replace("-", "").replace("_", "").isalnum()


def test_an_invitation_does_not_show_its_key() -> None:
    assert MADE.keys.secret.decode() not in repr(MADE)


@given(st.one_of(st.text(max_size=120), st.integers(0, 80).map(lambda n: invitation.token_of(MADE)[:n])))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(PoolRefusal, match="no token of an invitation"):
        invitation.read(text)


def test_the_settings_of_a_machine_are_its_own_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    wanted = PoolSettings(executor_host="10.0.0.2", devices="cpu", warm_executors_per_device=3)
    path.write_text(settings.render(wanted, joined.OF_A_NODE))
    assert settings.read(path, joined.OF_A_NODE) == wanted
    assert "lease_seconds" not in path.read_text()
    path.write_text("lease_seconds = 5.0\n")
    with pytest.raises(PoolRefusal, match="lease_seconds can be set on the pool's head alone"):
        settings.read(path, joined.OF_A_NODE)


def test_other_machines_are_heard_only_where_the_operator_says(tmp_path: Path) -> None:
    here = state.at(tmp_path)
    for plain in (PoolSettings(), PoolSettings(listen_host="0.0.0.0", advertise_host="gpu")):
        assert gateway_settings(here, plain).agent_endpoints == (here.agent_endpoint,)
    head = PoolSettings(nodes_host="10.0.0.1", nodes_port=7000)
    assert gateway_settings(here, head).agent_endpoints == (here.agent_endpoint, "tcp://10.0.0.1:7000")
