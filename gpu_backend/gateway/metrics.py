"""The pool's figures for Prometheus, on a loopback port."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from gpu_backend.wire.views import PoolView

log = logging.getLogger("gateway.metrics")

_PREFIX = "gpu_workbench"
_DEVICE = ("node", "device", "kind", "name")


@dataclass(frozen=True, slots=True)
class Figures:
    """The pool at one moment. Made in the gateway's loop, read in the thread that answers Prometheus."""

    #: As an operator sees it.
    view: PoolView
    #: GPU seconds of every user, of all time.
    gpu_seconds: Mapping[str, float] = field(default_factory=dict)
    #: The same by user and class of op.
    class_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    #: Requests that were answered with a no, by its code, since the gateway was started.
    refusals: Mapping[str, int] = field(default_factory=dict)
    #: How many have left the queue with a place since the gateway was started, and how long they had waited in all.
    waits: int = 0
    waited_seconds: float = 0.0


class Metrics(Collector):
    """Turns the last `Figures` into metrics."""

    def __init__(self) -> None:
        #: The figures that are told; None until there are any.
        self.figures: Figures | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. Called by Prometheus's client in a thread of its own."""
        figures = self.figures
        if figures is None:
            return
        yield from _devices(figures.view)
        yield from _sessions(figures.view)
        seconds = CounterMetricFamily(f"{_PREFIX}_gpu_seconds", "GPU time used, of all time.", labels=["user"])
        for user, used in sorted(figures.gpu_seconds.items()):
            seconds.add_metric([user], used)
        yield seconds
        classes = CounterMetricFamily(
            f"{_PREFIX}_op_seconds", "GPU time used by class of op, of all time.", labels=["user", "op_class"]
        )
        for labels, used in sorted(figures.class_seconds.items()):
            classes.add_metric(labels, used)
        yield classes
        refusals = CounterMetricFamily(f"{_PREFIX}_refusals", "Requests that were refused.", labels=["code"])
        for code, count in sorted(figures.refusals.items()):
            refusals.add_metric([code], count)
        yield refusals
        yield SummaryMetricFamily(
            f"{_PREFIX}_queue_wait_seconds", "How long those who got a place had waited for it.",
            count_value=figures.waits, sum_value=figures.waited_seconds,
        )  # fmt: skip


class MetricsDoor:
    """Answers Prometheus on a loopback port; a port that cannot be had is logged, and the pool goes on without."""

    def __init__(self, metrics: Metrics, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(metrics)
        self._serving: tuple[WSGIServer, Thread] | None = None
        try:
            self._serving = start_http_server(port, "127.0.0.1", registry)
        except OSError as error:
            log.error("no metrics are served, port %d cannot be had: %s", port, error)
            return
        log.info("metrics are served at http://127.0.0.1:%d/metrics", port)

    def close(self) -> None:
        """Answer no more."""
        if self._serving is not None:
            server, thread = self._serving
            server.shutdown()
            server.server_close()
            thread.join()


def _devices(view: PoolView) -> Iterator[Metric]:
    told = {
        "memory_total_bytes": ("Memory of the device.", "total_bytes"),
        "memory_used_bytes": ("Memory that sessions hold on the device.", "used_bytes"),
        "busy_ratio": ("Part of the device's time that was used in the last seconds.", "busy"),
        "sessions": ("Sessions that have a place on the device.", "sessions"),
        "places": ("Most sessions that may have a place on the device.", "capacity"),
    }
    for name, (text, attribute) in told.items():
        family = GaugeMetricFamily(f"{_PREFIX}_device_{name}", text, labels=_DEVICE)
        for one in view.devices:
            family.add_metric([one.node, str(one.ordinal), one.kind, one.name], getattr(one, attribute))
        yield family


def _sessions(view: PoolView) -> Iterator[Metric]:
    by_state: Counter[tuple[str, str]] = Counter()
    memory: Counter[str] = Counter()
    for one in view.sessions:
        by_state[one.user, one.state] += 1
        memory[one.user] += one.used_bytes
    sessions = GaugeMetricFamily(f"{_PREFIX}_sessions", "Sessions that are not closed.", labels=["user", "state"])
    for labels, count in sorted(by_state.items()):
        sessions.add_metric(labels, count)
    held = GaugeMetricFamily(f"{_PREFIX}_memory_bytes", "Device memory that a user's sessions hold.", labels=["user"])
    for user, used in sorted(memory.items()):
        held.add_metric([user], used)
    queue = GaugeMetricFamily(f"{_PREFIX}_queue_length", "Notebooks that wait for a place.", value=len(view.waiting))
    yield from (sessions, held, queue)
