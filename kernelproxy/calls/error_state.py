"""How a client handles numerical trouble, as ``cupyx.seterr`` says."""

from __future__ import annotations

from kernelproxy.client import Client


class ErrorState:
    """What is done about which kind of trouble."""

    def __init__(self, client: Client) -> None:
        self.kinds: dict[str, str | None] = {
            **dict.fromkeys(("divide", "over", "under", "invalid")),
            **dict.fromkeys(("linalg", "fallback_mode"), "ignore"),
        }

    @property
    def linalg_may_raise(self) -> bool:
        """Whether the user hears of matrices without an answer: then nothing of linear algebra surely succeeds."""
        return self.kinds["linalg"] == "raise"
