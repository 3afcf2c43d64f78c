"""The plugin of pytest in a worker: picks the worker's tests, writes each outcome, and ends what hangs.

It acts when `worker` imports it, before pytest reads its settings.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.cupy_suite import outcomes, plan, selection
from tests.cupy_suite.outcomes import Outcome
from tests.cupy_suite.pages import Pages
from tests.cupy_suite.programs import Programs
from tests.cupy_suite.sides import Library, Native, Proxy, Spent


class TooLong(BaseException):
    """A test took longer than it may. No test expects it, not even one that expects any `Exception`."""


class Worker:
    """Runs one worker's plan."""

    def __init__(self, given: plan.Plan) -> None:
        self.plan = given
        self._done = outcomes.read(given.out)
        self._like = outcomes.read(given.like) if given.like else None
        self._current: dict[str, Outcome] = {}
        self._before = self._spent = Spent()
        self.library: Library = Native() if given.side == "native" else Proxy(given.testing)
        signal.signal(signal.SIGALRM, self._interrupt)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of this worker that are not done, in rounds if the time is limited."""
        kept = [item for item in items if self._is_ours(item.nodeid)]
        if self.plan.deadline:
            kept.sort(key=lambda item: selection.begun(item.nodeid))
        config.hook.pytest_deselected(items=[item for item in items if not self._is_ours(item.nodeid)])
        items[:] = kept

    def _is_ours(self, node_id: str) -> bool:
        given = self.plan
        return (
            selection.shard(node_id, given.shards) == given.shard
            and selection.place(node_id) < given.fraction
            and node_id not in self._done
            and (self._like is None or node_id in self._like)
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Say which test is being run, and give it its time and its random numbers."""
        if self.plan.deadline and time.time() > self.plan.deadline:
            stopped = Outcome(f"::{self.plan.shard}", outcomes.STOPPED, selection.begun(item.nodeid))
            outcomes.append(self.plan.out, stopped)
            pytest.exit("the time is up", 0)
        self.plan.now.write_text(item.nodeid)
        seed = int(selection.place(item.nodeid) * (1 << 32))
        random.seed(seed)
        np.random.seed(seed)
        self._before, self._spent = self.library.spent(), Spent()
        result = yield
        if self.library.is_lost:  # the runner blames the test, and starts another worker
            os._exit(70)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Limit the time of the set-up."""
        return (yield from self._limited())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Limit the time of the test, which has not passed before the device has done its work."""
        try:
            result = yield from self._limited()
        except BaseException:
            with suppress(Exception):  # the test has failed already
                self.library.settle()
            raise
        waited = self.library.spent().round_trips
        self.library.settle()  # sends what is left, and asks an op of its own for it
        after, before = self.library.spent(), self._before
        self._spent = Spent(after.ops - (after.round_trips - waited) - before.ops, waited - before.round_trips)
        return result

    def _limited(self) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_REAL, self.plan.test_seconds)
        try:
            return (yield)
        except TooLong:
            self.library.renew()
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _interrupt(self, *given: Any) -> None:
        raise TooLong(f"The test took longer than {self.plan.test_seconds:.0f} s.")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what each phase gave; the outcome is known after the tear-down."""
        if report.when == "setup" or report.failed or (report.when == "call" and report.nodeid in self._current):
            self._current[report.nodeid] = self._outcome(report)
        if report.failed:
            with self.plan.failures.open("a") as file:
                file.write(f"=== {report.nodeid}\n{report.longreprtext}\n")
        if report.when == "teardown" and (outcome := self._current.pop(report.nodeid, None)):
            outcomes.append(self.plan.out, msgspec.structs.replace(outcome, **self._spent._asdict()))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is one failure."""
        if report.failed:
            why = _last_line(report.longreprtext)
            outcomes.append(self.plan.out, Outcome(report.nodeid, "error", 0.0, why))
            with self.plan.failures.open("a") as file:
                file.write(f"=== {report.nodeid}\n{report.longreprtext}\n")

    def _outcome(self, report: pytest.TestReport) -> Outcome:
        kind: str = report.outcome
        why = ""
        if report.skipped:
            kind = outcomes.XFAILED if hasattr(report, "wasxfail") else outcomes.SKIPPED
            why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        elif report.failed:
            kind = "failed" if report.when == "call" else "error"
            why = _last_line(report.longreprtext)
            kind = outcomes.XPASSED if why.startswith("[XPASS(strict)]") else kind
        return Outcome(report.nodeid, kind, round(report.duration, 3), why[:300])


def _last_line(text: str) -> str:
    raised = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return raised[0] if raised else text.strip().rpartition("\n")[2]


def pytest_configure(config: pytest.Config) -> None:
    """Take part if this process is a worker."""
    if _worker is not None:
        config.pluginmanager.register(_worker, "cupy-suite-worker")
        if _worker.plan.kind == "programs":
            config.pluginmanager.register(Programs(_worker.plan.side))
        elif _worker.plan.kind == "pages":
            config.pluginmanager.register(Pages())


@pytest.fixture
def json_metadata() -> dict[str, object]:
    """Take what the array API's tests tell pytest-json-report: nobody reads such a report here."""
    return {}


sys.modules.setdefault("pytest_jsonreport", types.ModuleType("pytest_jsonreport"))
_given = plan.load()
_worker = Worker(_given) if _given is not None else None
if _given is not None:
    import hypothesis

    hypothesis.settings.register_profile("cupy-suite", derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile("cupy-suite")
