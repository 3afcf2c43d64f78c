"""What nodes say, made fit to be reckoned with and shown: a node may be hostile, and others must not suffer from it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gpu_backend.opstream.devices import MOST_DEVICES
from gpu_backend.wire.control import ExecutorEnded, ExecutorReport, LaunchFailed, NodeReport
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import MalformedMessage
from gpu_backend.wire.figures import can_be
from gpu_backend.wire.words import printable

#: More than a machine has: what takes its time for each of them, takes it from everybody.
_MOST_DEVICES, _MOST_EXECUTORS = 256, 1_024
_SHOWN = ("kind", "name", "uuid", "policy", "wall", "unseen", "island")


def fit_report(report: NodeReport) -> NodeReport:
    """Return ``report`` with nothing in its words that a terminal would obey.

    Raises
    ------
    MalformedMessage
        If there is more in it than on any machine, or a figure that none can have: sums of others would be wrong by it.
    """
    ordinals = {device.ordinal for device in report.devices}
    if len(report.devices) > min(len(ordinals), _MOST_DEVICES) or len(report.executors) > _MOST_EXECUTORS:
        raise MalformedMessage("it has more devices or executors than can be")
    if any(
        max(len(one.others) + 1, len(one.others_booked) + 1, len(one.held)) > MOST_DEVICES for one in report.executors
    ):
        raise MalformedMessage("it has more devices or executors than can be")
    if not all(map(can_be, _figures(report))):
        raise MalformedMessage("it has figures that cannot be")
    devices = tuple(_fit_device(device) for device in report.devices)
    # One line each: two of one session would be two parts of its user's share.
    executors = tuple({(one.session, one.epoch): one for one in report.executors}.values())
    return replace(report, devices=devices, executors=executors, version=printable(report.version))


def fit_word(message: LaunchFailed | ExecutorEnded) -> LaunchFailed | ExecutorEnded:
    """Return ``message`` with nothing in its words that a terminal would obey."""
    if isinstance(message, LaunchFailed):
        return replace(message, message=printable(message.message))
    return replace(message, detail=printable(message.detail))


def _figures(report: NodeReport) -> Iterator[float]:
    yield from (report.processes, report.clock)
    for device in report.devices:
        yield from (device.ordinal, device.total_bytes, device.warm)
    for executor in report.executors:
        yield from _figures_of(executor)


def _figures_of(executor: ExecutorReport) -> Iterator[float]:
    usage, booked = executor.usage, executor.booked
    yield from (executor.epoch, executor.memory_limit_bytes, executor.lease_seconds, executor.used_bytes, executor.ops)
    yield from (executor.idle_seconds, usage.gpu_seconds, usage.peak_bytes, usage.received_bytes, usage.sent_bytes)
    yield from (*usage.by_class, *executor.others, *executor.held)
    for each in (booked, *executor.others_booked):
        yield from (each.used_seconds, each.wanted_seconds, each.at_seconds, each.unused_seconds)


def _fit_device(device: DeviceReport) -> DeviceReport:
    words = {name: getattr(device, name) for name in _SHOWN}
    fit = {name: printable(text) for name, text in words.items()}
    return device if fit == words else replace(device, **fit)
