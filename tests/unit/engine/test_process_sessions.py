"""What a process has started is found when it has ended, and nothing else is taken for it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from gpu_backend.engine import detached
from gpu_backend.engine.detached import ProcessId
from gpu_backend.engine.process_sessions import end_session
from tests.integration.notebook_pool import wait_until

CHILDREN = """
import os, signal, subprocess, sys
os.setsid() if os.getsid(0) != os.getpid() else None
wait = [sys.executable, "-c", "import os, signal; os.setpgid(0, 0); signal.pause()"]
names = [str(subprocess.Popen(wait).pid) for _ in range(3)]
open("children.new", "w").write(" ".join(names)); os.rename("children.new", "children")
signal.pause()
"""


def test_all_of_a_session_ends_with_its_leader(tmp_path: Path) -> None:
    leader = detached.spawn([sys.executable, "-c", CHILDREN], tmp_path / "log", tmp_path)
    wait_until((tmp_path / "children").exists)
    children = [ProcessId.of(int(name)) for name in (tmp_path / "children").read_text().split()]
    assert end_session(leader) == 0, "it leads them still"
    os.kill(leader.pid, signal.SIGKILL)
    assert detached.wait_gone(leader, 10)
    assert end_session(ProcessId(leader.pid, leader.start_time + 1_000_000)) == 0, "another of that number, of later"
    assert end_session(leader) >= 3
    wait_until(lambda: not any(child is not None and child.is_running for child in children))
    assert end_session(leader) == 0
