"""A pool whose device 0 a group shares by MPS, and its users."""

from __future__ import annotations

from gpu_backend.node import mps_files
from gpu_backend.node.mps_files import Standing
from gpu_backend.pool import people, shares
from gpu_backend.pool.state import PoolState
from tests.faults.notebook import Notebook

__all__ = ["GroupPool"]


class GroupPool:
    """A pool of two users of a group, ada and bob, and of eve, who is in none."""

    def __init__(self, state: PoolState) -> None:
        self.state = state
        self.folder = mps_files.directory_of(str(state.runtime), 0)
        for name in ("ada", "bob", "eve"):
            people.add_user(state, name)
            people.make_key(state, name, state.root / f"{name}.key")
            client = (state.root / "client.toml").read_text()
            own = client.replace(str(state.operator_key), str(state.root / f"{name}.key"))
            (state.root / f"{name}.toml").write_text(own)
        for name in ("ada", "bob"):
            shares.set_group(state, name, "vision")

    def notebook(self, name: str) -> Notebook:
        return Notebook(self.state.root / f"{name}.toml")

    @property
    def standing(self) -> Standing:
        return mps_files.standing(self.folder) or Standing()
