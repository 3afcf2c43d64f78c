"""Code of one's own in one's executor: on the CPU device by a kernel, which is native code there; else by a traitor.

Both run the same text, that of `payloads`, as code of that process: it may do whatever native code may.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.config import OWN
from gpu_backend.wire.values import Ref, Tuple
from tests.attack.hostile import Hostile, HungUp
from tests.integration.notebook_pool import wait_until

_PAYLOADS = [Path(__file__).with_name(name) for name in ("payloads.py", "payloads_of_sharing.py")]
_ANSWER_BYTES = 1 << 16

#: The interpreter's own functions are part of the process, and so can be called by any code in it. The first line of
#: the program names the place of the answer, which only this code knows.
_KERNEL = r"""
extern "C" { int PyGILState_Ensure(); void PyGILState_Release(int); int PyRun_SimpleString(const char*); }
extern "C" __global__ void f(char* program, char* answer) {
  unsigned long place = (unsigned long)answer;
  for (int i = 0; i < 16; i++) program[26 - i] = "0123456789abcdef"[(place >> (4 * i)) & 15];
  int lock = PyGILState_Ensure();
  PyRun_SimpleString(program);
  PyGILState_Release(lock);
}
"""
_PLACE = "PLACE = 0x" + "0" * 17 + "\n"


class Intruder(Protocol):
    """Runs functions of `payloads` within an executor."""

    def run(self, function: str, **arguments: Any) -> Any:
        """Call a function there, and return what it returned.

        Raises
        ------
        HungUp
            If the executor was ended before that.
        """


class ByKernel:
    """Code that a client sends as the source of a kernel. Native code on the CPU device only."""

    def __init__(self, hostile: Hostile) -> None:
        self._hostile = hostile
        self._kernel = hostile.make("cupy.RawKernel", _KERNEL, "f")

    def run(self, function: str, **arguments: Any) -> Any:
        """Call a function of `payloads` there, and return what it returned."""
        ending = f"\nanswer_in_memory(PLACE, {function}, {arguments!r})\n"
        program = (_PLACE + _text() + ending).encode() + b"\0"
        text = self._hostile.upload(np.frombuffer(program, np.uint8))
        answer = self._hostile.upload(np.zeros(_ANSWER_BYTES, np.uint8))
        one = Tuple((1,))
        self._hostile.make(".call", Ref(self._kernel), one, one, Tuple((Ref(text), Ref(answer))))
        told = self._hostile.download(answer).tobytes().rstrip(b"\0")
        assert told, "the code did not run to its end"
        return _result(json.loads(told))


class ByTraitor:
    """Code that an executor brings along: it looks for it in the folder that is its own, in ``directory``."""

    def __init__(self, directory: Path, process: ProcessId) -> None:
        self._directory, self._process = directory / OWN, process

    def run(self, function: str, **arguments: Any) -> Any:
        """Call a function of `payloads` there, and return what it returned."""
        name = secrets.token_hex(4)
        answer = self._directory / f"{name}.answer"
        ending = f"\nanswer_in_file({str(answer)!r}, {function}, {arguments!r})\n"
        fresh = self._directory / name
        fresh.write_text(_text() + ending)
        fresh.rename(self._directory / f"{name}.program")
        wait_until(lambda: answer.exists() or not self._process.is_running)
        if not answer.exists():
            raise HungUp(f"the executor ended before {function} did")
        return _result(json.loads(answer.read_text()))


def _text() -> str:
    """Return both texts as one. What must stand at the top of a file cannot stand in the middle of a program."""
    return "\n".join(path.read_text().replace("from __future__ import annotations\n", "") for path in _PAYLOADS)


def _result(told: dict[str, Any]) -> Any:
    assert "raised" not in told, told["raised"]
    return told["returned"]
