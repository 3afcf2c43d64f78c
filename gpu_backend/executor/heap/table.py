"""The handle table: every remote object of a session, and why the missing ones are missing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any

from gpu_backend.executor.heap.entries import Failure, Kind
from gpu_backend.executor.heap.holders import Ownership
from gpu_backend.executor.heap.places import Places
from gpu_backend.wire.values import View

__all__ = ["Heap"]

#: Views of one array that are remembered: a loop's body has few.
_MOST_VIEWS = 32


class Heap:
    """Every object of a session by its handle, and what is known of those that are not there."""

    def __init__(self) -> None:
        #: Handle to object: a plain dictionary, which the interpreter looks up faster than one with a class of its own.
        self.objects: dict[int, Any] = {}
        #: The kinds of those that are no arrays.
        self._kinds: dict[int, Kind] = {}
        #: Who holds the memory of the arrays.
        self.ownership = Ownership()
        self._alone = self.ownership.alone
        self._failures: dict[int, Failure] = {}
        self._failed_handles: list[int] = []
        #: The arrays that were made for views, by root.
        self.views: dict[int, dict[View, Any]] = {}
        #: Where arrays lie, and arrays that are not made: these are in no other book here.
        self.places = Places()
        self._known_places = self.places.known

    def put(self, handle: int, value: Any, kind: Kind = Kind.ARRAY) -> None:
        """Keep ``value`` under ``handle``. Its memory counts as held until `Ownership` is told better."""
        self.ownership.forget(handle)
        self.forget_views(handle)
        self.objects[handle] = value
        if kind is not Kind.ARRAY:
            self._kinds[handle] = kind
        elif self._kinds:
            self._kinds.pop(handle, None)

    def kind(self, handle: int) -> Kind | None:
        """Return what kind of entry ``handle`` is; None if nothing is there."""
        return self._kinds.get(handle, Kind.ARRAY) if handle in self.objects else None

    def view(self, view: View) -> Any:
        """Return the array that was made for ``view`` before, or None."""
        views = self.views.get(view.root)
        return views.get(view) if views is not None else None

    def keep_view(self, view: View, array: Any) -> None:
        """Remember ``array`` as long as the root of ``view`` stays as it is.

        What is done in a loop is done to the same views each time, and an array costs a good part of an op to make. One
        view is one array, too: CuPy copies an operand that shares memory with the output and is not that very object.
        """
        views = self.views.setdefault(view.root, {})
        if len(views) >= _MOST_VIEWS:
            views.clear()
        views[view] = array

    def take(self, handle: int) -> Any:
        """Forget ``handle`` and return what it held, or None; of an array that is not made, its place."""
        if self.views:  # looked at first, as all here: nearly every op drops something
            self.views.pop(handle, None)
        if handle in self._known_places and (unmade := self.places.forget(handle)) is not None:
            return unmade
        if handle in self._alone:
            del self._alone[handle]
        else:
            self.ownership.forget(handle)
            self._kinds.pop(handle, None)
        return self.objects.pop(handle, None)

    def forget_views(self, root: int) -> None:
        """Forget the arrays that were made for views of ``root``, and where it lies."""
        if self.views:
            self.views.pop(root, None)
        if root in self._known_places:
            self.places.forget(root)

    def fail(self, handle: int, failure: Failure) -> None:
        """Note that ``handle`` and those that would have followed it will never hold anything."""
        if handle not in self._failures:
            insort(self._failed_handles, handle)
        self._failures[handle] = failure

    def drop(self, handle: int) -> None:
        """Forget ``handle``. Unknown handles are ignored: their op may have failed."""
        if self.take(handle) is None and self._failures and self._failures.pop(handle, None) is not None:
            del self._failed_handles[bisect_left(self._failed_handles, handle)]

    def why_missing(self, handle: int) -> Failure | None:
        """Return the failure of the op that should have made ``handle``, or None if no such op is known."""
        # An op with several results fails under the first of their handles, so look for the nearest one below.
        place = bisect_right(self._failed_handles, handle)
        return self._failures[self._failed_handles[place - 1]] if place else None

    def clear(self) -> None:
        """Forget everything."""
        self.objects.clear()
        self._kinds.clear()
        self.ownership.clear()
        self.views.clear()
        self.places.clear()
        self._failures.clear()
        self._failed_handles.clear()
