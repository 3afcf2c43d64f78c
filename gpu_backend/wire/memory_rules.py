"""Words of the gateway about a session's memory limit by which an executor knows what can be done about it."""

from __future__ import annotations

#: How a rule begins where the limit is all that its user's quota had left: no session can ask for more than that.
REST_OF_QUOTA = "it asked for no amount, and that was left of the quota"
