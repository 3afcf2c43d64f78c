"""An executor that computes nothing: the control protocol and the data door, quick to start. Run by an agent.

``GPU_WORKBENCH_TEST_START_SECONDS`` delays it, ``GPU_WORKBENCH_TEST_REFUSAL`` makes it refuse to start.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import zmq

from gpu_backend.engine.detached import ProcessId
from gpu_backend.node.launcher import ExecutorState, write_private
from gpu_backend.transport import curve
from gpu_backend.transport.admission import AllowedKeys, guard_thread
from gpu_backend.transport.sockets import as_server
from gpu_backend.wire import control
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import EndCause, Phase

ORDERS: Codec[control.ToExecutorControl] = Codec(control.ToExecutorControl)


class PlainExecutor:
    """Serves one session by hearing its client: any message keeps the lease, ``crash`` and ``bye`` are obeyed."""

    def __init__(self, directory: Path) -> None:
        self.config = json.loads((directory / "config.json").read_text())
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.allowed = AllowedKeys([self.config["agent_key"].encode()])
        self.guard = guard_thread(self.context, self.allowed)
        self.keys = curve.generate()
        self.control = as_server(self.context.socket(zmq.ROUTER), self.keys)
        self.control.bind(f"ipc://{directory}/control")
        self.data = as_server(self.context.socket(zmq.ROUTER), self.keys)
        self.data.bind(f"ipc://{directory}/data")
        self.endpoints = (f"ipc://{directory}/data",)
        self.order: control.Assign | None = None
        self.route = b""
        self.heard = self.wanted = time.monotonic()
        self.orphan_seconds = float(self.config["orphan_seconds"])
        own = ProcessId.mine()
        state = ExecutorState(
            own.pid, own.start_time, self.keys.public.decode(), self.endpoints, f"ipc://{directory}/control"
        )
        write_private(
            directory / "state.json", json.dumps({f: getattr(state, f) for f in state.__struct_fields__}).encode()
        )

    def run(self) -> None:
        while True:
            ready = dict(zmq.zmq_poll([(self.control, zmq.POLLIN), (self.data, zmq.POLLIN)], 50))
            if self.control in ready:
                self.route, *frames = self.control.recv_multipart()
                if self.obey(ORDERS.decode(frames)):
                    return None
            if self.data in ready:
                route, word = self.data.recv_multipart()
                self.heard = time.monotonic()
                if word == b"bye":
                    return self.end(EndCause.RELEASED, "The notebook released the session.")
                self.data.send_multipart([route, word])
            now = time.monotonic()
            if now - self.wanted > self.orphan_seconds:
                return self.end(EndCause.ORPHANED, "Nobody wants it.")
            if self.order is not None and now - self.heard > self.order.lease_seconds:
                return self.end(EndCause.LEASE_LAPSED, "The notebook was not heard.")

    def obey(self, order: control.ToExecutorControl) -> bool:
        if isinstance(order, control.Stop):
            self.end(EndCause.STOPPED, order.reason)
            return True
        if isinstance(order, control.RenewLease):
            self.wanted = time.monotonic()
        elif self.order is None:
            self.order, self.heard = order, time.monotonic()
            self.allowed.replace([self.config["agent_key"].encode(), order.client_key.encode()])
        self.report(Phase.WARM if self.order is None else Phase.SERVING)
        return False

    def end(self, cause: EndCause, detail: str) -> None:
        self.report(Phase.ENDING, cause, detail)
        self.guard.stop()
        self.context.destroy(linger=500)

    def report(self, phase: Phase, cause: str = "", detail: str = "") -> None:
        order = self.order
        report = control.Report(
            phase, order.session if order else "", order.epoch if order else 0, os.getpid(), self.endpoints,
            self.keys.public.decode(), 0, 0, time.monotonic() - self.heard, detail, cause,
        )  # fmt: skip
        self.control.send_multipart([self.route, *encode(report)])


if __name__ == "__main__":
    if refusal := os.environ.get("GPU_WORKBENCH_TEST_REFUSAL"):
        sys.exit(refusal)
    until = time.monotonic() + float(os.environ.get("GPU_WORKBENCH_TEST_START_SECONDS", "0"))
    while time.monotonic() < until:
        time.sleep(0.05)
    PlainExecutor(Path(sys.argv[1])).run()
