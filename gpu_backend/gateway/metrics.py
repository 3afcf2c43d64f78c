"""The pool's figures as Prometheus reads them; by user only where the operator wants it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from gpu_backend.wire.views import PoolView

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
    """Turns the last `Figures` into metrics. ``names_users`` says whether these tell users apart."""

    def __init__(self, names_users: bool = False) -> None:
        self._names_users = names_users
        #: The figures that are told; None until there are any.
        self.figures: Figures | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. Called by Prometheus's client in a thread of its own."""
        figures = self.figures
        if figures is None:
            return
        yield from _devices(figures.view)
        yield from self._of_users(figures)
        yield GaugeMetricFamily(
            f"{_PREFIX}_queue_length", "Notebooks that wait for a place.", value=len(figures.view.waiting)
        )
        refusals = CounterMetricFamily(f"{_PREFIX}_refusals", "Requests that were refused.", labels=["code"])
        for code, count in sorted(figures.refusals.items()):
            refusals.add_metric([code], count)
        yield refusals
        yield SummaryMetricFamily(
            f"{_PREFIX}_queue_wait_seconds", "How long those who got a place had waited for it.",
            count_value=figures.waits, sum_value=figures.waited_seconds,
        )  # fmt: skip

    def _of_users(self, figures: Figures) -> Iterator[Metric]:
        by_state: Counter[tuple[str, ...]] = Counter()
        memory: Counter[tuple[str, ...]] = Counter()
        for one in figures.view.sessions:
            by_state[one.user, one.state] += 1
            memory[one.user,] += one.used_bytes
        seconds = (((user,), used) for user, used in figures.gpu_seconds.items())
        yield self._told(GaugeMetricFamily, "sessions", "Sessions that are not closed.", ["state"], by_state.items())
        yield self._told(GaugeMetricFamily, "memory_bytes", "Device memory that sessions hold.", [], memory.items())
        yield self._told(CounterMetricFamily, "gpu_seconds", "GPU time used, of all time.", [], seconds)
        classes, text = figures.class_seconds.items(), "GPU time used by class of op, of all time."
        yield self._told(CounterMetricFamily, "op_seconds", text, ["op_class"], classes)

    def _told(
        self,
        kind: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        text: str,
        labels: Sequence[str],
        figures: Iterable[tuple[tuple[str, ...], float]],
    ) -> Metric:
        """Return a metric of ``figures`` by user and ``labels``, or by these alone and over all users."""
        first = 0 if self._names_users else 1
        family = kind(f"{_PREFIX}_{name}", text, labels=("user", *labels)[first:])
        summed: dict[tuple[str, ...], float] = {}
        for key, value in figures:
            summed[key[first:]] = summed.get(key[first:], 0) + value
        for key, value in sorted(summed.items()):
            family.add_metric(key, value)
        return family


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
