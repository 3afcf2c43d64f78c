"""What a process has started is found when it has ended, and nothing else is taken for it."""

from __future__ import annotations

import os
import signal
import subprocess
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


#: A row of processes, each of which starts the next and ends: whoever looks for one finds it gone.
CHAIN = r"""
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int main(void)
{
    setsid();
    if (fork() == 0)
        for (int links = 0; links < 10000000 && access("stop", F_OK); links++) {
            if (fork() != 0)
                _exit(0);
            usleep(300);
            if (links == 1000)
                close(open("begun", O_CREAT | O_WRONLY, 0600));
        }
    else
        pause();
    return 0;
}
"""


def _is_left(group: int) -> bool:
    """Tell whether anybody is left in a group; those that were killed stay until init has heard of them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_nobody_outruns_the_end_by_starting_others(tmp_path: Path) -> None:
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run(["cc", "-o", "chain", "chain.c"], cwd=tmp_path, check=True)
    leader = detached.spawn([str(tmp_path / "chain")], tmp_path / "log", tmp_path)
    try:
        wait_until((tmp_path / "begun").exists)
        assert _is_left(leader.pid)
        os.kill(leader.pid, signal.SIGKILL)
        assert detached.wait_gone(leader, 10)
        end_session(leader)
        wait_until(lambda: not _is_left(leader.pid))
    finally:
        (tmp_path / "stop").touch()
