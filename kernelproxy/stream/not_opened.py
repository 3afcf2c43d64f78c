"""What stands for the pipeline of a client that has no session."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["NotOpened"]


class _Opens(Protocol):
    @property
    def session(self) -> Any: ...


class NotOpened:
    """Stands for the pipeline of a ``client`` that has no session: whoever uses it opens one."""

    def __init__(self, client: _Opens) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.session.pipeline, name)
