"""The pipeline of a session with several devices: it knows which ops reach over from one to another.

What all lies on the device of an op is proved as ever. Of an op on another device's arrays nobody here can say whether
the one device reaches the other's memory, so such an op is waited for, and fails at its own line. CUDA itself copies
from device to device, and has any stream wait for any event: that is recorded wherever it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpu_backend.opstream.devices import device_of
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Dict, List, Ref, Tuple, Value, View
from kernelproxy.errors import warn_again
from kernelproxy.stream.forms import Form
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.recorder import Args, Kwargs

__all__ = ["SpreadPipeline"]

_WAIT = ".wait_event"


class SpreadPipeline(MirroredPipeline):
    """A pipeline to an executor with several devices."""

    has_several = True

    def note(self, form: Form, args: Args, depth: int, kwargs: Kwargs = None, stream: int = 0) -> int:
        """Note an op of ``form``, as `Recorder.note`; one that reaches over to another device is asked for instead."""
        __tracebackhide__ = True
        # Whoever wants results has asked already, or only looks.
        if form.results or form.name == _WAIT or not self.reaches_over(args, kwargs, stream):
            return super().note(form, args, depth + 1, kwargs, stream)
        answer = self.call(form.name, args, Want.DESCRIPTION, kwargs, None, stream)
        if answer.warnings:
            warn_again(answer.warnings)
        return 0

    def note_copy(self, form: Form, args: Args, depth: int, stream: int) -> None:
        """Note a copy between arrays without gaps that lie alike, as `note`, wherever they are."""
        super().note(form, args, depth + 1, None, stream)

    def reaches_over(self, args: Args, kwargs: Kwargs, stream: int) -> bool:
        """Tell whether an op for ``stream`` is given anything that is on another device."""
        device = device_of(stream)
        return _is_any_elsewhere(args, device) or bool(kwargs and _is_any_elsewhere(kwargs.values(), device))


def _is_any_elsewhere(values: Iterable[Value], device: int) -> bool:
    return any(_is_elsewhere(value, device) for value in values)


def _is_elsewhere(value: Value, device: int) -> bool:
    if isinstance(value, Ref):
        return device_of(value.handle) != device
    if isinstance(value, View):
        return device_of(value.root) != device
    if isinstance(value, (Tuple, List)):
        return _is_any_elsewhere(value.items, device)
    return isinstance(value, Dict) and any(_is_any_elsewhere(pair, device) for pair in value.items)
