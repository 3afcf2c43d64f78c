"""The pipeline of a session, and what the notebook knows of what its ops have made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Any

from gpu_backend.opstream.contents import LEAST_BYTES
from gpu_backend.opstream.layout import Layout
from gpu_backend.transport.reaching import TLS_SCHEME
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import WorkbenchError
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Buffer, Ref, Value, View
from kernelproxy.mirror.effects import Effect, effect_of
from kernelproxy.stream.counters import Way
from kernelproxy.stream.forms import Form
from kernelproxy.stream.inbox import Answer
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.recorder import Args, Buffers, Kwargs, Upload

_INLINE = Way.INLINE
#: Who only reads what is known hears of failures no later than so, seconds.
_LOOK_SECONDS = 0.01


class MirroredPipeline(Pipeline):
    """A pipeline that answers reads of what is known, and counts why trips were taken."""

    #: Whether the session has several devices.
    has_several = False
    #: When it was last looked whether the executor has said something.
    _looked_at = 0.0

    def known(self, reference: Ref | View, layout: Layout, as_number: bool = False) -> Any:
        """Return a copy of what an array of ``layout`` holds, if it is known and no failure may be on its way.

        ``as_number`` gives the one element of an array without axes as Python's number.

        Raises
        ------
        Exception
            A failure of an op that nobody waited for, if one has been heard of.
        """
        __tracebackhide__ = True
        mirror = self.mirror
        handle = reference.handle if type(reference) is Ref else reference.root  # type: ignore[union-attr]
        if handle not in mirror.known:  # whoever takes a trip hears of failures there
            return None
        if monotonic() - self._looked_at > _LOOK_SECONDS:
            self._look()
        if mirror.uncertain > self.journal.marks.done or self.connection.is_cut:
            return None  # the trip finds out what became of them
        self.inbox.raise_deferred()
        with self._recording:
            return mirror.number(reference, layout) if as_number else mirror.read(reference, layout)

    def note_copy(self, form: Form, args: Args, depth: int, stream: int) -> None:
        """Note a copy between arrays without gaps that lie alike, as `Recorder.note`; there is one device."""
        self.note(form, args, depth + 1, None, stream)

    def reaches_over(self, args: Args, kwargs: Kwargs, stream: int) -> bool:
        """Tell whether an op for ``stream`` is given anything on another device; there is one."""
        return False

    def _look(self) -> None:
        """Take in what has come, unless another thread is at it: a failure, or that the executor is gone."""
        self._looked_at = monotonic()
        if self._io.acquire(blocking=False):
            try:
                self._read_all()
            finally:
                self._io.release()

    def ask(
        self, name: str, args: Args, want: wire.Want, kwargs: Kwargs = None, buffers: Buffers = None, stream: int = 0
    ) -> int:
        """Send an op with all before it, as `Pipeline.ask`."""
        number = Pipeline.ask(self, name, args, want, kwargs, buffers, stream)
        self.counters.note_trip(name)  # it is on its way by now
        return number

    def ask_for_more(self, name: str, args: Args, want: wire.Want, stream: int) -> int:
        """Send an op that only looks, as `ask`, on the trip that another was counted for."""
        return Pipeline.ask(self, name, args, want, None, None, stream)

    def answer(self, seq: int) -> Answer:
        """Return the answer of an op, as `Pipeline.answer`."""
        __tracebackhide__ = True
        answer = Pipeline.answer(self, seq)
        value = answer.value
        if type(value) is Buffer and value.frame < 0:
            self.counters.note_received(_INLINE, len(value.data))
        elif answer.buffers:
            self.counters.note_received(self._way, sum(map(len, answer.buffers)))
        return answer

    def record_with_buffer(self, make: Upload, data: Frame, offset: int = 0, stream: int = 0) -> None:
        """Note an op that carries ``data``, as `record_upload`; they are not sent again over a slow link.

        They are at ``offset`` of all that is uploaded. Of more than the executor keeps only the beginning is kept: it
        would push out itself before it came again.
        """
        way, size, most_kept = self._way, len(data), self.connection.welcome.kept_bytes
        if way is Way.NETWORK and size >= LEAST_BYTES and offset + size <= most_kept and self.link_speed.is_slow:
            own, digest = self.link_speed.name(data)
            if self.record_upload(make, own, digest, most_kept, stream):
                self.counters.kept_bytes += size
                return
        else:
            self.record_upload(make, data, stream=stream)
        self.counters.note_sent(way, size)

    def record_within(self, make: Upload, data: Frame, stream: int = 0) -> None:
        """Note an op that carries ``data`` in itself, as `record_upload`."""
        self.record_upload(make, data, stream=stream, within=True)
        self.counters.note_sent(_INLINE, len(data))

    @contextmanager
    def uploading(self, size: int) -> Iterator[None]:
        """Return a context in which ``size`` bytes are uploaded, and have arrived: it shows how fast the link is."""
        speed, kept = self.link_speed, self.counters.kept_bytes
        begun = perf_counter() - speed.hashing_seconds
        yield
        if self._way is Way.NETWORK and self.counters.kept_bytes == kept:
            speed.note_sent(size, perf_counter() - speed.hashing_seconds - begun)

    @property
    def _way(self) -> Way:
        return Way.NETWORK if self.connection.endpoint.startswith(TLS_SCHEME) else Way.HOST

    def note_described(self, name: str, described: Value) -> None:
        """Take in how the executor has described the results of the op ``name``."""
        if effect_of(name) is Effect.READS:
            self.mirror.trust(described)

    def cancel_pending(self) -> list[tuple[int, Op]]:
        """Drop every op that has not started, as `Pipeline.cancel_pending`: what they would have made is not known."""
        with self.mirror.suspended(self._recording):
            return super().cancel_pending()

    def abandon(self) -> None:
        """Forget every op under way, as `Pipeline.abandon`, and all that is known: the arrays are gone."""
        with self._recording:
            self.mirror.clear()
        super().abandon()

    def end(self, why: WorkbenchError) -> None:
        """Let every use from now on raise ``why``; reads as well."""
        self.mirror.end()
        super().end(why)
