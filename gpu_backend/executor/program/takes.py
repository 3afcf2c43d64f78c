"""How functions take their operands: element by element, otherwise, or in a way that only CuPy knows."""

from __future__ import annotations

from gpu_backend.devices.segments import OPERANDS
from gpu_backend.executor.program.plan import KEEPS, Plan
from gpu_backend.executor.verbs import STORE, STORE_WHERE

__all__ = ["RECAST", "Takes"]

#: Functions that choose element by element, and are no ufuncs: how many operands they have.
_OTHERS = {"cupy.where": 3, STORE: 1, STORE_WHERE: 2}
#: Functions that are an elementwise op of another name, or a copy, of arrays that may lie otherwise.
RECAST = frozenset(("cupy.outer", "cupy.ndarray.astype", "cupy.ndarray.copy", "cupy.copy", "cupy.ndarray.__pow__"))
#: What is never captured: what makes random numbers, from a state that goes on, and verbs.
_NEVER_CAPTURED = ("cupy.random.", ".")
#: So many ways of one name that cannot be captured, and none that can, speak for all others of that name.
_HOPELESS = 4
#: Transforms, which go by plans that CuPy keeps.
_TRANSFORMS = "cupy.fft."


class Takes(dict[str, int | None]):
    """By name: how many operands a function takes that goes element by element, whatever numbers it is given.

    0 for others, None for what always goes CuPy's way. Found out once.

    Parameters
    ----------
    goes_past
        Whether anything but elementwise ops can go past CuPy.
    """

    def __init__(self, plan: Plan, goes_past: bool) -> None:
        self._plan, self._goes_past = plan, goes_past
        #: What names begin with that are never captured.
        self._never_captured: tuple[str, ...] = _NEVER_CAPTURED
        #: By name: how many ways in which it comes were not captured, as long as none was.
        self._hopeless: dict[str, int] = {}

    def __missing__(self, name: str) -> int | None:
        if name not in self._plan.operands:
            self._plan.learn(name)
        takes: int | None = _OTHERS.get(name, self._plan.operands[name])
        assert takes is not None
        if not 1 <= takes < OPERANDS:
            forgets = self._plan.new_memory[name] is not KEEPS and not name.startswith(self._never_captured)
            takes = 0 if forgets and (self._goes_past or name in RECAST) else None
        self[name] = takes
        return takes

    def judge(self, name: str, is_captured: bool, goes_otherwise: bool) -> None:
        """Look for no more ways of a name, which takes a third of an op's time, if none of them can be captured.

        ``goes_otherwise`` says that some may go past CuPy without that.
        """
        failed = self._hopeless.get(name, 0)
        if is_captured or failed < 0:
            self._hopeless[name] = -1
        elif failed + 1 < _HOPELESS or goes_otherwise:
            self._hopeless[name] = failed + 1
        else:
            self[name] = None

    def leave_transforms(self) -> bool:
        """Have transforms go CuPy's way from now on; tell whether they did not."""
        if _TRANSFORMS in self._never_captured:
            return False
        self._never_captured += (_TRANSFORMS,)
        self.clear()
        return True
