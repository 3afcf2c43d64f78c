"""Where Prometheus asks for the pool's figures: a loopback port, which any account of the machine can reach."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import Thread
from time import monotonic
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from gpu_backend.gateway.metrics import Metrics

log = logging.getLogger("gateway.metrics")

__all__ = ["MetricsDoor"]

#: Connections at a time; each has a thread. One more is hung up on.
_MOST_CONNECTIONS = 8
#: How long a connection may take in all, seconds: an answer takes milliseconds.
_MOST_SECONDS = 5.0


class MetricsDoor:
    """Answers Prometheus on a loopback port; a port that cannot be had is logged, and the pool goes on without."""

    def __init__(self, metrics: Metrics, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(metrics)
        self._server: _Server | None = None
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except OSError as error:
            log.error("no metrics are served, port %d cannot be had: %s", port, error)
            return
        self._server.set_app(make_wsgi_app(registry))
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        log.info("metrics are served at http://127.0.0.1:%d/metrics", port)

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """Has few connections at a time, none of them for long: strangers must not take the gateway's descriptors."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        #: Until when each connection may go on (monotonic).
        self._until: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection. Called by `serve_forever`."""
        if len(self._until) >= _MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        self._until[request] = monotonic() + _MOST_SECONDS
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection. Called when it was served, by its own thread."""
        self._until.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Hang up on who is late. Called by `serve_forever`, twice a second."""
        for request, until in self._until.copy().items():
            if until < monotonic():
                with suppress(OSError):  # it was closed meanwhile
                    request.shutdown(socket.SHUT_RDWR)  # its thread, which reads or writes, comes to an end by it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that broke: others would fill our log."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests either."""
