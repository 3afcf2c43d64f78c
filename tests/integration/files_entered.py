"""Notes which files of ours a program enters, in the order in which it first does, and from which others.

As a program it is an executor's: ``files_entered.py DIR`` runs the executor, and notes into ``files`` in the executor's
own folder; a signal (SIGUSR1) has it begin anew with the next message, which it says with a line ``anew``. With
``--segments`` before the folder its device carries out instructions, as a GPU does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
_PREFIX = f"{ROOT}/"
_OURS = ("kernelproxy/", "gpu_backend/", "workbench/")
SEGMENTS = "--segments"
#: As in `gpu_backend.sources`, which is not to be imported yet.
VARIABLE = "GPU_WORKBENCH_COMPILED_MODULES"


class FilesEntered:
    """The files of ours whose functions this thread has called, each once.

    ``say`` is told of each: the file, the one that called it, that one's caller and so on, with spaces between.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._seen: set[str] = set()

    def begin(self) -> None:
        """Forget what was entered before."""
        self._seen.clear()
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name not in self._seen:
            self._seen.add(name)
            if name.removeprefix(_PREFIX).startswith(_OURS):
                self._say(" ".join(_stack(frame)))


def _stack(frame: FrameType | None) -> Iterator[str]:
    """Yield the files of ours that are being run, the innermost first; one that calls itself is told once."""
    last = ""
    while frame is not None:
        path = frame.f_code.co_filename.removeprefix(_PREFIX)
        if path.startswith(_OURS) and path != last:
            last = path
            yield path
        frame = frame.f_back


def main() -> None:
    """Run an executor whose main thread notes what it enters."""
    # Of an executor's environment little is left.
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "executor" / "program")]

    from gpu_backend.executor import start
    from gpu_backend.executor.config import ExecutorConfig

    shut_in, has_segments = start.begin, SEGMENTS in sys.argv
    if has_segments:
        sys.argv.remove(SEGMENTS)

    def begin(directory: Path) -> ExecutorConfig:
        config = shut_in(directory)
        if has_segments:
            _have_segments()
        _note_into(Path(config.own) / "files")
        return config

    start.begin = begin
    start.main()


def _note_into(file: Path) -> None:
    """Note what is entered for the messages of the notebook. What is imported starts threads: behind the walls."""
    from gpu_backend.executor.ports import Ports
    from gpu_backend.executor.process import Executor

    notes = file.open("w", buffering=1)
    entered = FilesEntered(lambda stack: notes.write(f"{stack}\n"))
    read_data, obey, is_due = Ports.read_data, Executor._obey, [False]

    def read(ports: Ports) -> Iterator[object]:
        if is_due[0]:  # what it enters while it sleeps and wakes without a message is none of the cell's
            entered.begin()
        for message in read_data(ports):  # which may find only a part of one, and no message
            is_due[0] = False
            yield message

    def unseen(executor: Executor, order: Any) -> None:
        noting = sys.getprofile()
        sys.setprofile(None)  # an arbiter may hand over its gate in the midst of it, which is none of the cell's
        try:
            obey(executor, order)
        finally:
            sys.setprofile(noting)

    def anew(_: int, __: FrameType | None) -> None:
        notes.write("anew\n")
        is_due[0] = True

    Ports.read_data, Executor._obey = read, unseen
    signal.signal(signal.SIGUSR1, anew)


def _have_segments() -> None:
    """Have the device be one that carries out instructions."""
    from numpy_segments import SegmentedCpu

    from gpu_backend import devices

    devices.open_device = lambda kind, ordinal, prepared, count: SegmentedCpu()


if __name__ == "__main__":
    os.environ[VARIABLE] = "off"  # what is compiled enters no file
    main()
