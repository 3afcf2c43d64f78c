"""A kernel as Jupyter runs it, and a client of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from traitlets.config import Config

from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import ANSWER_SECONDS, sessions

READY_SECONDS = 120.0
#: However busy the machine is, the pool's answer is waited for.
PATIENT = Config(RemoteGpuProvisioner={"lease_timeout": ANSWER_SECONDS})
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Notebook:
    """A running kernel and its client."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.traceback = ""  # of the last error, without colours
        self.client: BlockingKernelClient = manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=READY_SECONDS)

    def run(self, code: str, timeout: float = 120.0) -> str:
        """Return what a cell printed and returned as text; what it raised, as "Name: message"."""
        return self.collect(self.client.execute(code), timeout)

    def collect(self, message_id: str, timeout: float = 120.0) -> str:
        """Return what a cell says to its end, but for the line that tells of a second's wait and is kept up to date."""
        said = []
        while True:
            message = self.client.get_iopub_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                said.append(content["text"])
            elif kind in ("execute_result", "display_data"):
                if "display_id" not in content.get("transient", {}):
                    said.append(content["data"]["text/plain"])
            elif kind == "error":
                self.traceback = _ANSI.sub("", "\n".join(content["traceback"]))
                said.append(f"{content['ename']}: {content['evalue']}")
            elif kind == "status" and content["execution_state"] == "idle":
                return "".join(said)

    def complete(self, line: str) -> list[str]:
        """Return what is offered at the end of ``line``."""
        message_id = self.client.complete(line, len(line))
        while True:
            reply = self.client.get_shell_msg(timeout=120)
            if reply["parent_header"]["msg_id"] == message_id:
                return list(reply["content"]["matches"])

    def start(self, code: str) -> str:
        """Send a cell that prints "started" first, and return its message's id once it has."""
        # Without an end of the line: that is written by itself, and may come later and by itself.
        message_id: str = self.client.execute(f"print('started', end='', flush=True)\n{code}")
        while True:
            message = self.client.get_iopub_msg(timeout=120.0)
            if message["msg_type"] == "stream" and "started" in message["content"]["text"]:
                return message_id

    def interrupted(self, code: str) -> str:
        """Interrupt ``code``; return what it said then."""
        message_id = self.start(code)
        self.manager.interrupt_kernel()
        return self.collect(message_id)

    def restart(self) -> None:
        self.manager.restart_kernel()
        self.client.wait_for_ready(timeout=READY_SECONDS)


@contextmanager
def notebook(name: str = "remote-gpu", **options: Any) -> Iterator[Notebook]:
    manager = KernelManager(kernel_name=name, config=PATIENT, **options)
    manager.start_kernel()
    try:
        running = Notebook(manager)
        yield running
        running.client.stop_channels()
    finally:
        manager.shutdown_kernel()
        manager.context.destroy(linger=0)


@contextmanager
def leased(pool: PoolState) -> Iterator[Notebook]:
    """Have a kernel that was started with a session; a pool that is kept from the processor leaves it to the kernel."""
    before = len(sessions(pool))
    while True:
        with notebook() as running:
            if len(sessions(pool)) > before:
                yield running
                return
