"""What a notebook is told whose session is over."""

from __future__ import annotations

from kernelproxy.session import coming_back


def test_why_an_executor_ended_is_guessed_only_where_nobody_told() -> None:
    told = str(coming_back.ended("The pool was stopped by its operator."))
    assert told.count("stopped") == 1
    assert "The pool cannot be reached now. When it is up again" in told
    assert "The pool cannot be reached now: it may have been stopped." in str(coming_back.ended(""))
