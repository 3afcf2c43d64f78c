"""Memory that is kept for results to come, beside ops that go CuPy's way: which of them find it given back."""

from __future__ import annotations

from gpu_backend.executor.heap import Places
from gpu_backend.executor.program.effects import Accounts
from gpu_backend.wire.messages import Op

__all__ = ["SpareMemory"]

#: So much may be spare beside an op that is not run twice for want of it.
_LITTLE_BYTES = 8 << 20


class SpareMemory:
    """Gives memory back where it may be missed."""

    def __init__(self, places: Places, accounts: Accounts) -> None:
        self._places, self._accounts = places, accounts

    def settle(self, op: Op) -> None:
        """Give it back if ``op``, which is next, may count memory, and shall find what CuPy alone would hold.

        Or if much is spare, and it would miss it and cannot be run twice.
        """
        places, accounts = self._places, self._accounts
        if not places.spare:
            return
        is_little = places.spare_bytes <= _LITTLE_BYTES
        if not op.out or accounts.may_remember(op) or not (is_little or accounts.may_repeat(op)):
            places.give_back()

    def relent(self, op: Op, has_let_go: bool) -> bool:
        """Give it back, since ``op``, which makes something, has found no memory; tell whether it may run again.

        Parameters
        ----------
        has_let_go
            Whether somebody else has let go of memory.
        """
        has_spare = bool(self._places.spare)
        self._places.give_back()
        return (has_spare or has_let_go) and self._accounts.may_repeat(op)
