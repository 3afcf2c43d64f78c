"""What is known of sessions, users and groups comes and goes with them."""

from __future__ import annotations

from gpu_backend.arbiter.policies._shares import Shares
from gpu_backend.gate.terms import SessionTerms


def test_a_session_of_which_nothing_was_counted_leaves_after_the_last_of_its_user() -> None:
    shares = Shares(60.0, 0.02, 0.1)
    looked_at, served = (SessionTerms(session=name, user="ada", group="lab") for name in ("looked at", "served"))
    assert shares.may_pass(looked_at, 0.0)
    shares.charge(served, 0.01, 1.0)
    shares.forget(served.session)
    shares.forget(looked_at.session)
    shares.charge(SessionTerms(session="looked at", user="ada", group="another"), 0.01, 2.0)
