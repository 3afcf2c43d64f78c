"""What a process has started is found when it has ended, and nothing else is taken for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from gpu_backend.engine import detached
from gpu_backend.engine.detached import ProcessId
from gpu_backend.engine.process_sessions import _of_number, end_session
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
    int told = open("links", O_CREAT | O_WRONLY | O_APPEND, 0600);
    setsid();
    if (fork() == 0)
        for (int links = 0; links < 10000000 && access("stop", F_OK); links++) {
            if (fork() != 0)
                _exit(0);
            write(told, "x", 1);
            usleep(300);
            if (links == 1000)
                close(open("begun", O_CREAT | O_WRONLY, 0600));
        }
    else
        pause();
    return 0;
}
"""


def test_nobody_outruns_the_end_by_starting_others(tmp_path: Path) -> None:
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run(["cc", "-o", "chain", "chain.c"], cwd=tmp_path, check=True)
    leader = detached.spawn([str(tmp_path / "chain")], tmp_path / "log", tmp_path)
    try:
        wait_until((tmp_path / "begun").exists)
        os.kill(leader.pid, signal.SIGKILL)
        assert detached.wait_gone(leader, 10)
        end_session(leader)
        with (tmp_path / "links").open("rb") as links:  # each adds a byte
            links.seek(0, os.SEEK_END)
            wait_until(lambda: not os.read(links.fileno(), 1 << 20) and not list(_of_number(leader.pid)))
            assert not os.read(links.fileno(), 1)
    finally:
        (tmp_path / "stop").touch()
        if leader.is_running:
            os.kill(leader.pid, signal.SIGKILL)


def test_the_group_of_somebody_else_is_left_alone() -> None:
    """A number that is free again may be that of a row of commands, whose first has ended."""
    ours = os.getsid(0)
    first = subprocess.Popen(["true"], process_group=0)
    second = subprocess.Popen(["sleep", "600"], process_group=first.pid)
    try:
        first.wait()
        assert os.getsid(second.pid) == ours
        assert end_session(ProcessId(first.pid, 1)) == 0
        assert second.poll() is None
    finally:
        second.kill()
        second.wait()
