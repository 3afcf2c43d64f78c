"""Recording ops: the hot path. They are numbered, named and put into the open batch; `Pipeline` sends it.

An interrupt may strike between any two bytecodes, so every step that commits something is one append or assignment, and
doing a step twice is harmless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from gpu_backend.opstream.contents import KEEP, WRITE_KEPT, KnownContents
from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.opstream.journal import Journal
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Bytes, Complex, DType, Ellipsis, List, Ref, Scalar, Tuple, Value, View
from kernelproxy import compiled
from kernelproxy.mirror import stores
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.mirror.worth import Worth
from kernelproxy.source_lines import user_site
from kernelproxy.stream.ahead import Ahead
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.batch_size import batch_ops
from kernelproxy.stream.costs import Cost
from kernelproxy.stream.dropped import DroppedHandles
from kernelproxy.stream.forms import Form, Forms
from kernelproxy.stream.inbox import Inbox
from kernelproxy.stream.memory_model import MemoryModel
from kernelproxy.stream.temporaries import taken_over

NOTHING = Want.NOTHING
HANDLES_PER_CALL = 1 << 20  #: a call whose results are unknown gets this many to give: numbers cost nothing
BATCH_BYTES = 4 << 20  #: most bytes of buffers in a message of recorded ops

#: Types of arguments that name no array.
_NAMELESS = frozenset({bool, int, float, str, type(None), Bytes, Complex, DType, Ellipsis, Scalar})

Args = tuple[Value, ...]
Kwargs = dict[str, Value] | None
Buffers = list[Frame] | None
Made = Layout | None
Upload = Callable[[int], tuple[str, Args]]


class Recorder(ABC):
    """The ops of this process, in order. ``memory`` says which results are sure to be had: others are waited for."""

    # Slots for what each op looks at: they are found faster than entries of a dictionary, also by the compiled core.
    __slots__ = (
        "__dict__", "__weakref__", "_recording", "dropped", "forms", "memory", "mirror", "most_ops", "next_handle",
        "open_batch", "sender_sleeps",
    )  # fmt: skip

    #: What the executor has said.
    inbox: Inbox

    def __init__(self, memory: MemoryModel) -> None:
        #: So that OutOfMemoryError comes at its own line.
        self.memory = memory
        self.recording = self._recording = compiled.lock()  #: held for moments, by whoever changes the open batch
        #: The batch that ops are being recorded into.
        self.open_batch = OpenBatch(1)
        #: The handle that is given next.
        self.next_handle = 1
        self.dropped: DroppedHandles = deque()
        #: What is known of the arrays that ops deal with.
        self.mirror = HostMirror(Mode.OFF)
        #: What the executor keeps of what was uploaded.
        self.contents = KnownContents()
        #: Kernels of the user's own by their handle: they know what they are called.
        self.kernels: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.journal: Journal[OpenBatch] = Journal()
        #: What is under way, in seconds of the device.
        self.ahead = Ahead(self.journal.marks)
        self._costs = self.ahead.costs
        #: What is known of ops that were recorded before.
        self.forms = Forms(self._costs)
        self.most_ops = batch_ops(0)  #: with so many ops the open batch is sent
        #: Set while the background sender sleeps; the first op of a quiet time wakes it.
        self.sender_sleeps = False
        self.wake_sender: Callable[[], None] = lambda: None

    @abstractmethod
    def flush(self) -> None:
        """Send all that has been recorded. Waits while as much is under way as may be."""

    def record(
        self, name: str, args: Args, results: int = 1, kwargs: Kwargs = None, stream: int = 0, layout: Made = None,
        orders: tuple[str, ...] | None = None, size: int = 0, kind: object = None,
        made: Made = None) -> int:  # fmt: skip
        """Note an op whose ``results`` are proved, and return the handle of the first. Sent later, in order.

        ``size``, ``orders`` and ``made`` are as of `OpKind`, and ``kind`` is its ``what``. With ``layout``, which is
        ``made`` then, it may reuse memory.
        """
        form = self.forms[name, results, orders, size, kind, made, layout is not None]
        return self.note(form, args, 3, kwargs, stream)

    def note(self, form: Form, args: Args, depth: int, kwargs: Kwargs = None, stream: int = 0) -> int:
        """Note an op of ``form``, which is proved, and return the handle of its first result. Sent later, in order.

        The user's code is at least ``depth`` frames up.
        """
        mirror, known = self.mirror, None
        with self._recording:
            batch = self.open_batch
            out = self.next_handle | stream & OF_DEVICE if form.results else 0
            self.next_handle += form.results
            if not form.is_quiet or (mirror.worth.budget and form.is_small):
                number = batch.first + len(batch.ops)
                known = mirror.note(form.name, args, kwargs, form.results, out, form.made, number)
            gone, drop, reuse = len(self.dropped), None, 0
            if gone:
                drop, reuse = taken_over(batch, self.dropped, gone, form.reusable)
            op = Op(form.name, out, args, drop, NOTHING, kwargs, stream, reuse, form.orders)
            place = batch.add(op, user_site(depth), form.cost, form.reusable)
            if known is not None:
                mirror.publish(*known)
            if gone:
                self._take_dropped(gone)
        if place + 1 >= self.most_ops or form.cost.is_long:
            self.flush()
        elif self.sender_sleeps:
            self.wake_sender()
        return out

    note = compiled.quick("note", note)

    def record_upload(
        self, make: Upload, data: Frame, digest: bytes = b"", most_kept: int = 0, stream: int = 0, within: bool = False
    ) -> bool:
        """Note an op without result that carries ``data``; tell whether they stay here, as the executor keeps them.

        ``make`` gets the buffer's number in its message, or -1 to have them ``within`` the op. With a ``digest`` the
        executor keeps them as that, among others, of no more than ``most_kept`` bytes in all. If ``data`` are no bytes
        but lie in memory of the user's, the caller calls `kept_uploads.own` before the user can change it.
        """
        with self._recording:
            batch, site = self.open_batch, user_site(2)
            name, args = make(-1 if within else len(batch.frames))
            cost = self._costs[len(data).bit_length()][name]
            is_kept = bool(digest) and self.contents.use(digest)
            if is_kept:
                name, args = WRITE_KEPT, (*args[:-1], Bytes(digest))
            else:
                batch.bytes += len(data)  # first: an interrupt between the two must not have it travel uncounted
                if not within:
                    batch.frames.append(data)
            known = self.mirror.note_write(args[0], data)
            place = batch.add(Op(name, 0, args, stream=stream), site, cost)
            if known is not None:
                self.mirror.publish(*known)
            if digest and not is_kept:
                with self.contents.keeping(digest, len(data), most_kept) as gone:
                    left = None if gone is None else Tuple(tuple(map(Bytes, gone)))
                    place = batch.add(Op(KEEP, 0, (Bytes(digest), args[-1], left)), site, cost)
        if place + 1 >= self.most_ops or max(batch.bytes, len(data)) >= BATCH_BYTES:
            self.flush()
        elif self.sender_sleeps:
            self.wake_sender()
        return is_kept

    def _take_dropped(self, count: int) -> None:
        mirror, memory = self.mirror, self.memory
        for _ in range(count):
            handle = self.dropped.popleft()[0]
            if handle in memory.held:
                memory.forget(handle)
            if handle in mirror.known or handle in mirror.barred:
                mirror.drop(handle)

    def _seal(self) -> None:
        with self._recording:
            if self.open_batch.ops:
                self.journal.append(self.open_batch)
                self.open_batch = self.open_batch.successor()

    def skip_handles(self, first: int) -> None:
        """Give no handle below ``first`` from now on."""
        with self._recording:
            self.next_handle = max(self.next_handle, first)


compiled.learn(
    Recorder=Recorder, OpenBatch=OpenBatch, Form=Form, Forms=Forms, Cost=Cost, HostMirror=HostMirror,
    MemoryModel=MemoryModel, Worth=Worth, Op=Op, Ref=Ref, View=View, nothing=NOTHING, of_device=OF_DEVICE,
    targets=stores.TARGETS, batch_ops=batch_ops, first_ops=batch_ops(0), nameless=_NAMELESS,
    handles_per_call=HANDLES_PER_CALL, List=List, Tuple=Tuple,
)  # fmt: skip
