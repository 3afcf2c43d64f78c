"""What every remote array is: a layout, the way ops name it, and the root whose memory it shows.

`remote_array.ndarray` puts operators, indexing, views, methods and conversions on top; this file stands below them so
that they can make arrays without knowing the class.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_backend.opstream import devices
from gpu_backend.opstream.layout import Layout, SomeRows
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls.decoding import described_layout
from kernelproxy.calls.later_layout import LaterLayout, Rows
from kernelproxy.client import Client

Array = TypeVar("Array")


class ArrayCore:
    """Base of ``cupy.ndarray``.

    Attributes
    ----------
    _layout
        Shape, strides and dtype; known without asking anybody.
    _ref
        How ops name it: `Ref` for an array of its own, `View` for a window on its root.
    _root
        The array that owns the memory, for a view; None for an owner.
    _client
        Whose it is: what is computed with it is computed there.
    _dropped
        Where the handle goes when this object ends; None for views.
    """

    __slots__ = ("__weakref__", "_client", "_dropped", "_layout", "_ref", "_root")

    _client: Client
    _layout: Layout
    _ref: wire.Ref | wire.View
    _root: ArrayCore | None
    _dropped: deque[tuple[int, Layout | None]] | None

    def __del__(self, ref: type[wire.Ref] = wire.Ref) -> None:
        # Runs in whatever thread the collector chose, so it takes no lock: a deque's append is atomic. It may run when
        # the interpreter has taken this module's names away, so it brings along what it needs.
        try:
            dropped = self._dropped
        except AttributeError:  # an interrupt struck while it was made
            return
        if dropped is not None:
            reference = self._ref
            if isinstance(reference, ref):
                dropped.append((reference.handle, self._layout))
            else:  # its shape was changed in place: the memory lies otherwise than the layout says
                dropped.append((reference.root, None))  # type: ignore[union-attr]

    __del__ = compiled.quick("end", __del__)

    def _wire_value(self) -> wire.Ref | wire.View:
        return self._ref

    if TYPE_CHECKING:  # what the classes on top bring, for those who import only this one

        def __getattr__(self, name: str) -> Any: ...


compiled.learn(ArrayCore=ArrayCore, Layout=Layout)

#: The class of new arrays: the one on top, once there is one.
array_class: type[Any] = ArrayCore
#: Whether a program has made a class of its own below `array_class`: only then do ufuncs look for one.
is_subclassed = False

_new = object.__new__
_Ref = wire.Ref


def for_new_arrays(kind: type[Array]) -> type[Array]:
    """Have new arrays be of the class ``kind``; for use as a decorator of it."""
    global array_class
    array_class = kind
    compiled.learn(array_class=kind)
    return kind


def note_subclass() -> None:
    """Note that there is a class below `array_class`."""
    global is_subclassed
    is_subclassed = True


def handle_of(reference: wire.Ref | wire.View) -> int:
    """Return the handle of the memory that ``reference`` shows."""
    return reference.handle if isinstance(reference, wire.Ref) else reference.root


def window_of_bytes(array: ArrayCore, offset: int, length: int) -> wire.View:
    """Return the window on ``length`` bytes of the contiguous ``array``."""
    shown = array._ref
    if isinstance(shown, wire.View):
        return wire.View(shown.root, shown.offset + offset, (length,), (1,), "|u1", shown.order)
    return wire.View(shown.handle, offset, (length,), (1,), "|u1", array._layout.memory_order)


def device_of(array: ArrayCore) -> int:
    """Return the number of the device that ``array`` is on."""
    return array._client.number + devices.device_of(handle_of(array._ref))


def fresh(client: Client, layout: Layout, handle: int) -> Any:
    """Return the array that owns ``handle``, which ``client`` has."""
    array = small(client, layout, handle)
    if layout.held_bytes > client.memory.small_bytes:
        client.memory.note(handle, layout.held_bytes)
    return array


def small(client: Client, layout: Layout, handle: int) -> Any:
    """Return the array that owns ``handle``, of which the caller knows that it is too small to be counted."""
    array = _new(array_class)
    array._layout = layout
    array._ref = _Ref(handle)
    array._root = None
    array._client = client
    array._dropped = client.dropped
    return array


small = compiled.quick("small", small)


def pending(
    client: Client, handle: int, most_bytes: int, kind: SomeRows | None = None, rows: Rows | None = None
) -> Any:
    """Return the array that owns ``handle``, of a layout that nobody knows yet and at most so many bytes.

    ``kind`` and ``rows`` are as of `LaterLayout`.
    """
    array = _new(array_class)
    array._client = client
    array._layout = LaterLayout(array, handle, most_bytes, kind, rows)
    array._ref = _Ref(handle)
    array._root = None
    array._dropped = client.dropped
    if most_bytes > client.memory.small_bytes:
        client.memory.note(handle, most_bytes)
    return array


def disown(array: ArrayCore) -> None:
    """Let go of ``array``, which may lie otherwise than is believed: nothing is to be computed into its memory."""
    dropped, array._dropped = array._dropped, None
    if dropped is not None and type(array._ref) is _Ref:
        dropped.append((array._ref.handle, None))


def view_of(array: ArrayCore, offset: int, layout: Layout, of: type | None = None) -> Any:
    """Return the window on ``array`` that starts ``offset`` bytes behind its first element. Nothing is sent.

    It is of the class of ``array``, or of class ``of``.
    """
    reference = array._ref
    if type(reference) is wire.View:
        offset += reference.offset
        handle, order = reference.root, reference.order
    else:
        handle, order = reference.handle, array._layout.memory_order  # type: ignore[union-attr]
    if not layout.size:
        offset = 0  # no element is anywhere
    kind = type(array) if of is None else of
    view: Any = _new(kind)
    view._layout = layout
    view._ref = wire.View(handle, offset, layout.shape, layout.strides, layout.dtype_text, order)
    view._root = array if array._root is None else array._root  # `or` would ask the root for its truth, a value
    view._client = array._client
    view._dropped = None
    if kind is not array_class:
        view.__array_finalize__(array)  # of a user's subclass
    return view


view_of = compiled.quick("view_of", view_of)


def is_window(view: ArrayCore, array: ArrayCore, offset: int, layout: Layout) -> bool:
    """Tell whether ``view`` is the window on ``array`` that `view_of` would return."""
    root = array if array._root is None else array._root  # `or` would ask it for its truth
    if view._layout is not layout or view._root is not root:
        return False
    start = array._ref.offset if isinstance(array._ref, wire.View) else 0
    return isinstance(view._ref, wire.View) and view._ref.offset == start + offset


def relayout(array: ArrayCore, layout: Layout) -> None:
    """Give ``array`` another shape or dtype in place, as ``array.shape = ...`` does."""
    changed = view_of(array, 0, layout)
    array._layout, array._ref = layout, changed._ref


def as_subclass(array: ArrayCore, cls: type[Any]) -> Any:
    """Return ``array`` as an instance of the user's subclass ``cls``, which takes over its memory."""
    made = _new(cls)
    made._layout, made._ref, made._root, made._client = array._layout, array._ref, array._root, array._client
    made._dropped, array._dropped = array._dropped, None
    return made


def in_class_of(result: Any, operands: tuple[object, ...]) -> Any:
    """Return a ufunc's new result as CuPy makes it: of the class of the first operand that is of a user's subclass."""
    of = next((one for one in operands if isinstance(one, ArrayCore) and type(one) is not array_class), None)
    if of is None:
        return result
    if isinstance(result, tuple):
        return tuple(in_class_of(one, (of,)) for one in result)
    made = as_subclass(result, type(of))
    made.__array_finalize__(of)
    return made


def window_held(client: Client, layout: Layout, handle: int) -> Any:
    """Return the array under ``handle`` that is a window on memory which is counted already."""
    array = fresh(client, layout, handle)
    client.memory.forget(handle)
    return array


def from_description(client: Client, info: wire.ArrayInfo) -> Any:
    """Return the array that the executor of ``client`` described."""
    layout = described_layout(info)
    if client.opened is not None:  # else nothing is known that others may hold too
        client.pipeline.mirror.barred.add(info.handle)
    return (window_held if info.base else fresh)(client, layout, info.handle)
