"""An executor that computes nothing: the control protocol and the data door, quick to start. Run by an agent.

``GPU_WORKBENCH_TEST_START_AT`` names a file that it waits for, ``GPU_WORKBENCH_TEST_REFUSAL`` makes it refuse to start.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from gpu_backend.executor import config as configuration
from gpu_backend.executor.control_door import Gates, Order
from gpu_backend.executor.outbox import Outbox
from gpu_backend.executor.ports import Ports
from gpu_backend.wire import orders
from gpu_backend.wire.control import EndCause
from gpu_backend.wire.orders import Phase


class PlainExecutor:
    """Serves one session by hearing its client: any message keeps the lease and is sent back, ``bye`` is obeyed."""

    def __init__(self, directory: Path) -> None:
        configuration.note_process(directory)
        self.config = configuration.read(directory)
        self.ports = Ports(self.config, lambda memory: None)
        self.order: orders.Assign | None = None
        self.heard = self.wanted = time.monotonic()

    def run(self) -> None:
        while True:
            self.ports.wait(0.05)
            if any(self.obey(order) for order in self.ports.control.read()):
                return None
            outbox = Outbox()
            for peer, message in self.ports.read_data():
                self.heard = time.monotonic()
                if message == [b"bye"]:
                    return self.end(EndCause.RELEASED, "The notebook released the session.")
                outbox.put(peer, message)
            self.ports.send(outbox)
            now = time.monotonic()
            if now - self.wanted > self.config.orphan_seconds:
                return self.end(EndCause.ORPHANED, "Nobody wants it.")
            if self.order is not None and now - self.heard > self.order.lease_seconds:
                return self.end(EndCause.LEASE_LAPSED, "The notebook was not heard.")

    def obey(self, order: Order) -> bool:
        if isinstance(order, Gates):  # it launches nothing
            for descriptor in order:
                os.close(descriptor)
            return False
        if isinstance(order, orders.Stop):
            self.end(EndCause.STOPPED, order.reason)
            return True
        if isinstance(order, orders.RenewLease):
            self.wanted = time.monotonic()
        elif self.order is None:
            self.order, self.heard = order, time.monotonic()
        self.report(Phase.WARM if self.order is None else Phase.SERVING)
        return False

    def end(self, cause: EndCause, detail: str) -> None:
        self.report(Phase.ENDING, cause, detail)
        self.ports.close()

    def report(self, phase: Phase, cause: str = "", detail: str = "") -> None:
        order = self.order
        report = orders.Report(
            phase, order.session if order else "", order.epoch if order else 0, os.getpid(), 0, 0,
            time.monotonic() - self.heard, detail, cause,
        )  # fmt: skip
        self.ports.control.report(report)


if __name__ == "__main__":
    if refusal := os.environ.get("GPU_WORKBENCH_TEST_REFUSAL"):
        sys.exit(refusal)
    start = os.environ.get("GPU_WORKBENCH_TEST_START_AT", "")  # a file: it takes until that is there
    while start and not os.path.exists(start):
        time.sleep(0.02)
    PlainExecutor(Path(sys.argv[1])).run()
