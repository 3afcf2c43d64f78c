"""One of several sessions that a notebook's devices come from: each of its devices has an executor of its own.

No device reaches what lies on another, as with GPUs without peer access, and CuPy's own words refuse it. What looks at
an array, or reads it, is done wherever that is.
"""

from __future__ import annotations

from typing import Any

from gpu_backend.wire import messages as wire
from kernelproxy.stream.forms import Form
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.recorder import Args, Buffers, Kwargs
from kernelproxy.stream.streams import Streams

__all__ = ["JoinedPipeline", "JoinedStreams", "out_of_reach"]

#: Verbs that compute with what they are given, as all functions of CuPy do but those that are about the device itself,
#: and the one that says what is done about numerical trouble.
_COMPUTING = frozenset((".call", ".launch", ".store", ".store_where"))
_NOT_COMPUTING = ("cupy.cuda.", "cupyx.seterr")


class JoinedStreams(Streams):
    """The streams of one of several clients, which share what is current: a device ``number`` is one of theirs."""

    __slots__ = ("beside", "number")

    def __init__(self, beside: Streams, number: int) -> None:
        self.number = number
        #: Those of the first client as it was alone.
        self.beside = beside
        self._current = beside._current

    @property
    def is_here(self) -> bool:
        """Whether this thread's current device is this client's."""
        return self._current.device == self.number

    @property
    def is_used(self) -> bool:
        """Whether an op has to look where it is: not on this device's default stream while that is current."""
        current = self._current
        return current.device != self.number or current.stream is not None

    @is_used.setter
    def is_used(self, is_used: bool) -> None:
        """Do nothing: it follows from what is current."""

    def current_handle(self) -> int:
        """Return the handle of the stream that is current on this client's device; 0 for the default one."""
        stream = self.current(self.number)
        return 0 if stream is None else int(stream._handle)

    def default_handle(self) -> int:
        """Return the handle of the default stream of this client's device."""
        return 0

    def set_current(self, stream: Any, device: int = -1) -> Any:
        """Make ``stream`` this thread's current one on a device, on this client's by default; return the one before."""
        return super().set_current(stream, self.number if device == -1 else device)


class JoinedPipeline(MirroredPipeline):
    """The pipeline to the executor of one of a notebook's devices: it computes while that device is current."""

    has_several = True
    streams: JoinedStreams

    def note(self, form: Form, args: Args, depth: int, kwargs: Kwargs = None, stream: int = 0) -> int:
        """Note an op of ``form``, as `Recorder.note`; raises ValueError if another device is current."""
        __tracebackhide__ = True
        self._require_here(form.name)
        return super().note(form, args, depth + 1, kwargs, stream)

    def note_copy(self, form: Form, args: Args, depth: int, stream: int) -> None:
        """Note a copy between arrays of this device that lie alike, whichever is current."""
        super().note(form, args, depth + 1, None, stream)

    def ask(
        self, name: str, args: Args, want: wire.Want, kwargs: Kwargs = None, buffers: Buffers = None, stream: int = 0
    ) -> int:
        """Send an op with all before it, as `Pipeline.ask`; raises ValueError if another device is current."""
        __tracebackhide__ = True
        self._require_here(name)
        return super().ask(name, args, want, kwargs, buffers, stream)

    def _require_here(self, name: str) -> None:
        is_computing = name in _COMPUTING or (name[0] != "." and not name.startswith(_NOT_COMPUTING))
        if is_computing and not self.streams.is_here:
            raise out_of_reach(self.streams.number, self.streams.device)


def out_of_reach(where: int, device: int) -> ValueError:
    """Return what CuPy raises for an array on the device ``where`` while ``device`` is current, without peer access."""
    return ValueError(
        f"The device where the array resides ({where}) is different from the current device ({device}). "
        "Peer access is unavailable between these devices."
    )
