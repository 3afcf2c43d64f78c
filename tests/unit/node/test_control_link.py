"""What an executor sends its agent that is no report: counted, logged once, and in the end the executor's end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.config import CONTROL
from gpu_backend.node import executor as node_executor
from gpu_backend.node.control_link import ControlLink
from gpu_backend.node.places import Place
from gpu_backend.transport.control_socket import ControlListener, ControlSocket
from gpu_backend.wire import orders
from gpu_backend.wire.codec import encode

REPORT = orders.Report(orders.Phase.SERVING, "s", 1, 1, 0, 0, 2.0)
#: Of an executor whose native code writes what it likes: a line of its own, and what a terminal obeys.
FORGED = orders.Stop("x" * 9_000 + "\n2026-01-01 00:00:00,000 node FORGED \x1b[2J")


@contextmanager
def talking_to(link: ControlLink, path: Path) -> Iterator[ControlSocket]:
    """Yield the executor's end of ``link``."""
    with closing(ControlListener.open(path)) as listening:
        assert link.send(orders.RenewLease(5.0))
        listener = ControlListener(listening.detach(), 8)
        peer = listener.accept()
        assert peer is not None
        try:
            yield peer
        finally:
            peer.close()
            listener.close()


def test_what_is_no_report_is_logged_once_and_what_is_one_still_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    link = ControlLink(tmp_path / CONTROL)
    with caplog.at_level(logging.INFO), talking_to(link, tmp_path / CONTROL) as peer:
        for _ in range(5):
            assert peer.send(b"no message of ours")
            assert peer.send(encode(FORGED)[0])
        assert peer.send(encode(REPORT)[0])
        assert list(link.read()) == [REPORT]
    assert link.dropped == 10
    assert len(caplog.records) == 1
    link.close()


def test_who_goes_on_is_ended(tmp_path: Path) -> None:
    executor = node_executor.Executor(tmp_path, ProcessId.mine(), [Place(0, tmp_path)])
    executor._changed = lambda _: None
    with talking_to(executor._link, tmp_path / CONTROL) as peer:
        for _ in range(node_executor._MOST_DROPPED):
            assert peer.send(b"no message of ours")
        executor._drain()
        assert executor.stage is not node_executor.Stage.ENDING, "so much may be a slip"
        assert peer.send(b"no message of ours")
        executor._drain()
        assert executor.stage is node_executor.Stage.ENDING
        assert executor._finish().detail == "It went on sending its agent what is no report."
        executor._link.close()
