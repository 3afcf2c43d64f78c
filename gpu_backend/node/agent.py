"""The agent: starts, watches and re-adopts the executors of one node, and tells the gateway about them.

It may be killed at any moment. Executors go on without it for ``orphan_seconds``; the next agent finds them by their
directories and verifies each by pid and start time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from time import monotonic, time
from typing import Any

import msgspec
import zmq.asyncio

from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.node import launcher, prepared_kernels, shares, stock
from gpu_backend.node.dialing import Dialing
from gpu_backend.node.executor import End, Executor, Stage, Times, said_end
from gpu_backend.node.gateway_link import GatewayLink
from gpu_backend.node.inventory import Found
from gpu_backend.node.kernel_cache import UserCache
from gpu_backend.node.last_words import LastWords
from gpu_backend.node.settings import NodeSettings
from gpu_backend.node.shares import Share
from gpu_backend.node.sharing import Sharing
from gpu_backend.node.waiting import Key, Waiting
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control, orders
from gpu_backend.wire.channels import DialChannel
from gpu_backend.wire.control import EndCause
from gpu_backend.wire.figures import fit_count
from gpu_backend.wire.version import of_software

log = logging.getLogger("node.agent")

_REPORT_SECONDS = 1.0
#: How often to try while the gateway is away, seconds.
_TRY_SECONDS = 0.05
#: How often a launch is given another executor because the one it got died before it served.
_MOST_TRIES = 2
#: Of an executor that cannot be said to be on any device.
_NO_DEVICE: Key = (-1,)
#: Ends of executors after which their logs are kept.
_LOGGED = (EndCause.CRASHED, EndCause.EVICTED)


class Agent:
    """Keeps the executors of one node."""

    def __init__(self, settings: NodeSettings, keys: KeyPair, devices: Sequence[Found]) -> None:
        self._settings = settings
        self._keys = keys
        self._devices = {device.ordinal: device for device in devices}
        self._times = Times(settings.orphan_seconds, settings.start_seconds, settings.stop_seconds)
        self._executors: list[Executor] = []
        self._sharing = Sharing(settings, self._devices, self._executors)
        self._waiting: list[Waiting] = []
        #: Starts that failed in a row, and when the next may be tried, by devices.
        self._failures: Counter[Key] = Counter()
        self._next_start: defaultdict[Key, float] = defaultdict(float)
        self._last_words = LastWords()
        self._dialing = Dialing(self._serving)
        self._version = of_software()  # as it was when this process began
        self._is_stopping = False
        self._tending: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Serve until `stop` is called. The executors outlive it."""
        settings = self._settings
        self._context = zmq.asyncio.Context()
        self._link = GatewayLink(self._context, self._keys, settings.gateway, settings.gateway_key.encode())
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._adopt()
                self._sharing.publish()
                for keeping in self._sharing.keepers():
                    self._tending.add(group.create_task(keeping))
                for device in prepared_kernels.one_of_each(self._devices.values()):
                    self._do_apart(prepared_kernels.prepare(settings.cache_dir, device))
                loops = [group.create_task(self._hear_gateway()), group.create_task(self._attend())]
                await self._stop.wait()
                for task in [*loops, *self._tending]:
                    task.cancel()
        finally:
            self._link.close()
            self._context.destroy(linger=0)
            self._sharing.close()
            self._dialing.close()

    def stop(self) -> None:
        """End the agent and nothing else."""
        self._stop.set()

    # --- executors ----------------------------------------------------------------------------------------------------

    def _adopt(self) -> None:
        for directory in launcher.directories(self._settings.runtime_dir):
            config, process = launcher.config_in(directory), launcher.process_in(directory)
            if process is None:
                self._sweep_found(directory, config)
                continue
            log.info("adopted the executor in %s, pid %d", directory, process.pid)
            key = (config.on_node or (config.ordinal,)) if config is not None else _NO_DEVICE
            executor = self._follow(directory, process, key)
            if config is None or config.agent_key != self._keys.public.decode():
                # Followed to its end all the same: a process whose directory is gone would be found by nobody.
                executor.stop("Its agent does not know what it was told.")
            elif self._sharing.has_changed(executor):
                executor.stop("Its device is shared in another way now.")

    def _sweep_found(self, directory: Path, config: ExecutorConfig | None) -> None:
        """Remove the directory of an executor that ended while no agent looked; its kernels stay its user's."""
        order = launcher.assignment_in(directory)
        if config is not None and order is not None and config.agent_key == self._keys.public.decode():
            self._kernels_of(shares.noted(directory, order)).harvest(directory)
        launcher.sweep(directory, None)

    def _follow(self, directory: Path, process: ProcessId, key: Key) -> Executor:
        executor = Executor(directory, process, [self._sharing.place(ordinal) for ordinal in key])
        self._executors.append(executor)
        self._do_apart(self._tend(executor))
        return executor

    async def _tend(self, executor: Executor) -> None:
        end = await executor.tend(self._times, self._changed)
        if executor.has_served:
            self._report(executor)  # what it used up to its death
        if executor.share is not None:
            await asyncio.to_thread(self._kernels_of(executor.share).harvest, executor.directory)
        self._executors.remove(executor)
        log.info("the executor in %s ended: %s (%s)", executor.directory, end.detail, end.cause)
        executor.forget()
        if not executor.was_heard and not end.was_ordered:
            self._note_failed_start(executor.ordinals, end)
        else:
            self._next_start[executor.ordinals] = 0.0  # what it held may have been what the next one lacked: a port
        order = executor.assignment
        if order is not None and not self._has_another_try(executor, end):
            self._tell_end(order, end)
        self._news.set()
        logs = Path(self._settings.log_dir) if end.cause in _LOGGED else None
        await asyncio.to_thread(launcher.sweep, executor.directory, logs)  # last: there may be much of it

    def _changed(self, executor: Executor) -> None:
        order, report = executor.assignment, executor.report
        if executor.stage is Stage.WARM:
            self._failures[executor.ordinals] = 0
        if order is not None and report is not None and report.phase == orders.Phase.ENDING:
            # The session need not wait until the process is gone: with a GPU that takes a while.
            end = said_end(report)
            if end.cause is EndCause.DEVICE_FAULT:
                self._sharing.spread_fault(executor)
            self._report(executor)  # what it used since its last report
            self._tell_end(order, end)
        self._news.set()

    def _has_another_try(self, executor: Executor, end: End) -> bool:
        """Give a session another executor if its first one died before it ever served."""
        order, share = executor.assignment, executor.share
        is_hopeless = end.was_ordered or executor.tries >= _MOST_TRIES
        if order is None or share is None or executor.has_served or is_hopeless:
            return False
        launch = control.Launch(
            order.session, order.epoch, executor.ordinals[0], order.client_key, order.memory_limit_bytes,
            order.lease_seconds, share.user, share.terms, order.memory_rule, share.seal, share.user_since,
            executor.ordinals[1:],
        )  # fmt: skip
        self._waiting.append(Waiting(launch, executor.tries))
        return True

    def _note_failed_start(self, key: Key, end: End) -> None:
        self._failures[key] += 1
        pause = stock.pause_after(self._failures[key])
        self._next_start[key] = monotonic() + pause
        on = ", ".join(map(str, key))
        log.error("an executor for device %s did not start, the next is tried in %.1f s: %s", on, pause, end.detail)
        # Those who came first get the executors that are on their way.
        self._give_up([w for w in self._waiting if w.key == key][self._count_starting(key) :], end.detail)

    def _give_up(self, waiting: Sequence[Waiting], reason: str) -> None:
        for one in waiting:
            self._waiting.remove(one)
            self._link.send(control.LaunchFailed(one.order.session, one.order.epoch, reason))

    # --- orders -------------------------------------------------------------------------------------------------------

    async def _hear_gateway(self) -> None:
        while True:
            order = await self._link.receive(_REPORT_SECONDS)
            if order is not None:
                self._obey(order)

    def _obey(self, order: control.ToAgent) -> None:
        # The gateway says again after each report what it still misses: only what is new may lead to the next report,
        # or the two would keep each other busy for as long as anything starts or ends.
        match order:
            case control.Launch():
                self._launch(order)
            case control.SetTerms():
                self._set_terms(order)
            case control.StopExecutor():
                self._stop_executor(order)
            case control.StopNode():
                self._stop_all(order.reason)
            case DialChannel():
                self._do_apart(self._dialing.dial(order))

    def _serving(self, session: str, epoch: int) -> Executor | None:
        return next((one for one in self._executors if one.serves(session, epoch)), None)

    def _launch(self, order: control.Launch) -> None:
        missing = [ordinal for ordinal in (order.ordinal, *order.others) if ordinal not in self._devices]
        reason = "The node is being stopped." if self._is_stopping else self._sharing.refuse(order)
        if missing:
            reason = f"There is no device {missing[0]}."
        if reason:
            self._link.send(control.LaunchFailed(order.session, order.epoch, reason))
            return
        known = any(e.serves(order.session, order.epoch) for e in self._executors)
        if not known and all((w.order.session, w.order.epoch) != (order.session, order.epoch) for w in self._waiting):
            self._waiting.append(Waiting(order))
            self._news.set()

    def _set_terms(self, order: control.SetTerms) -> None:
        for executor in self._executors:
            if executor.assignment is not None and executor.assignment.session == order.session and executor.share:
                try:
                    executor.set_share(msgspec.structs.replace(executor.share, terms=order.terms))
                except OSError as error:  # a full disk, say: it keeps the terms that it has
                    log.error("the terms of session %s cannot be noted: %s", order.session, error)
        for waiting in self._waiting:
            if waiting.order.session == order.session:
                waiting.order = msgspec.structs.replace(waiting.order, terms=order.terms)
        self._news.set()

    def _stop_executor(self, order: control.StopExecutor) -> None:
        serving = [e for e in self._executors if e.serves(order.session, order.epoch)]
        for executor in serving:
            if executor.stop(order.reason):
                self._news.set()
        if not serving:
            self._waiting = [
                w for w in self._waiting if (w.order.session, w.order.epoch) != (order.session, order.epoch)
            ]
            self._link.send(control.ExecutorEnded(order.session, order.epoch, EndCause.STOPPED, order.reason))

    def _stop_all(self, reason: str) -> None:
        self._is_stopping = True
        for executor in self._executors:
            executor.stop(reason)
        self._sharing.stop()
        self._news.set()

    # --- what is to be done, and what there is to tell ----------------------------------------------------------------

    async def _attend(self) -> None:
        pause = 0.0
        while True:
            # Not `wait_for`, which in Python 3.11 loses the cancellation that comes together with the news.
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._news.wait()
            self._news.clear()
            for key in self._kept_keys():
                self._balance(key)
            self._sharing.publish()
            pause = _REPORT_SECONDS if self._report() else _TRY_SECONDS

    def _kept_keys(self) -> set[Key]:
        """Return the devices that executors are kept for, each alone, and together those that sessions have so."""
        together = [w.key for w in self._waiting] + [e.ordinals for e in self._executors if len(e.ordinals) > 1]
        return {(ordinal,) for ordinal in self._devices} | set(together)

    def _balance(self, key: Key) -> None:
        if self._is_stopping:
            return
        warm = [e for e in self._executors if e.ordinals == key and e.stage is Stage.WARM]
        waiting = [w for w in self._waiting if w.key == key]
        if ailment := self._sharing.ailment(key):
            self._give_up(waiting, ailment)
        if ailment or not self._sharing.is_ready(key):
            return
        while warm and waiting:
            self._hand_over(warm.pop(0), waiting.pop(0))
        settings, now = self._settings, monotonic()
        kept = settings.kept_ready(self._devices[key[0]].uuid) if len(key) == 1 else 0
        if now >= self._next_start[key]:
            for _ in range(stock.to_start(len(waiting), self._count_starting(key), len(warm), kept)):
                self._start(key)
        idle = sorted(now - e.since for e in warm)
        surplus = stock.to_let_go(idle, len(waiting), kept, settings.linger_seconds)
        for executor in warm[:surplus]:
            executor.stop("It is not needed.")

    def _hand_over(self, executor: Executor, waiting: Waiting) -> None:
        self._waiting.remove(waiting)
        order = waiting.order
        executor.tries = waiting.tries + 1
        assign = orders.Assign(
            order.session, order.epoch, order.client_key, order.memory_limit_bytes, order.lease_seconds,
            memory_rule=order.memory_rule,
        )  # fmt: skip
        try:
            share = Share(order.user or order.client_key, order.terms, order.seal, order.user_since)
            executor.assign(assign, share)
        except OSError as error:  # a full disk, say: it was told nothing, and is as good as before
            log.error("session %s cannot be noted: %s", order.session, error)
            told = f"Its node cannot note whose an executor is: {error}. Ask the pool's operator to make room there."
            self._link.send(control.LaunchFailed(order.session, order.epoch, told))
            return
        self._do_apart(self._bring_kernels(executor))

    async def _bring_kernels(self, executor: Executor) -> None:
        """Give an executor the compiled kernels of its user before it serves them."""
        if executor.share is not None:
            await asyncio.to_thread(self._kernels_of(executor.share).fill, executor.directory)
        executor.tell_assignment()

    def _kernels_of(self, share: Share) -> UserCache:
        return UserCache(Path(self._settings.cache_dir), share.user, share.user_since)

    def _do_apart(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tending.add(task)
        task.add_done_callback(self._tending.discard)

    def _start(self, key: Key) -> None:
        try:
            devices = [self._devices[ordinal] for ordinal in key]
            directory, process = launcher.launch(self._settings, self._keys.public, devices, self._sharing.way(key))
        except (OSError, CalledProcessError) as error:
            self._note_failed_start(key, End(EndCause.CRASHED, f"It could not be started: {error}."))
            return
        self._follow(directory, process, key)

    def _tell_end(self, order: orders.Assign, end: End) -> None:
        """Tell why an executor ended, now or before the next report: that would only say that it is there no more."""
        self._last_words.add(control.ExecutorEnded(order.session, order.epoch, end.cause, end.detail))
        self._tell_ends()

    def _tell_ends(self) -> None:
        self._last_words.tell(self._link.send, self._link.was_away(), monotonic())

    def _report(self, ended: Executor | None = None) -> bool:
        """Tell the gateway how things stand; return whether it was there."""
        self._tell_ends()
        return self._link.send(self._whole_report(ended))

    def _whole_report(self, ended: Executor | None = None) -> control.NodeReport:
        """Return what there is to tell; of an executor that has just ``ended`` its last word as well."""
        devices = tuple(self._sharing.report(d, self._count_warm((d.ordinal,))) for d in self._devices.values())
        executors = tuple(
            self._line(e, e.assignment, e.config)
            for e in self._executors
            if (e.stage is Stage.SERVING or e is ended) and e.assignment is not None and e.config is not None
        )
        return control.NodeReport(devices, executors, len(self._executors), self._version, time())

    def _count_starting(self, key: Key) -> int:
        starting = (e for e in self._executors if e.stage is Stage.STARTING and e.assignment is None)
        return sum(1 for e in starting if e.ordinals == key)

    def _count_warm(self, key: Key) -> int:
        return sum(1 for e in self._executors if e.ordinals == key and e.stage is Stage.WARM)

    def _line(self, executor: Executor, order: orders.Assign, told: ExecutorConfig) -> control.ExecutorReport:
        report = executor.report
        used, ops = (fit_count(report.used_bytes), fit_count(report.ops)) if report is not None else (0, 0)
        booked, share = executor.booked(), executor.share
        return control.ExecutorReport(
            order.session, order.epoch, executor.ordinals[0], order.client_key, self._reachable(told.endpoints),
            told.secret, told.certificate, order.memory_limit_bytes, order.lease_seconds, used, ops,
            executor.idle_seconds, executor.usage(), booked[0], share.seal if share is not None else "",
            executor.ordinals[1:], tuple(booked[1:]), tuple(executor.held_bytes()) if executor.ordinals[1:] else (),
        )  # fmt: skip

    def _reachable(self, endpoints: Sequence[str]) -> tuple[str, ...]:
        """Return ``endpoints`` as seen from outside: who listens on every address must still name one."""
        host = self._settings.advertise_host
        return tuple(
            f"tls://{host}:{e.rpartition(':')[2]}" if host and e.startswith("tls://") else e for e in endpoints
        )
