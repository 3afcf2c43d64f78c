"""Calls of a function, and the threads that carry them out: each has a session only while it has a call to run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any

from gpu_backend.wire.errors import PoolRefusal, TooManyAtOnce
from kernelproxy.client import Client, current, enclosing
from kernelproxy.session.leaving import is_ending
from workbench.call_client import CallClient, Terms, Withdrawn
from workbench.held import Held
from workbench.passing import brought_home


class Call:
    """One call of a function.

    Parameters
    ----------
    run
        Calls the function with its arguments.
    client
        In whose session it runs and its results stay; None for one of its own, from which they come home.
    """

    def __init__(self, run: Callable[[], Any], client: Client | None) -> None:
        self.future: Future[Any] = Future()
        self.client = client
        #: What the caller's own context variables say counts in the function too.
        self.context = copy_context()
        #: The clients of the calls that made this one, which are not over before it is.
        self.callers = enclosing()
        self._run = run

    def outcome(self, client: Client) -> Callable[[], None]:
        """Run the function in the session of ``client``; return what tells the future how it went."""
        try:
            result = self.context.run(self._run_in, client)
        except BaseException as error:  # as `concurrent.futures` does: whatever it is, it is the caller's
            return partial(self.future.set_exception, error.with_traceback(_from_function(error.__traceback__)))
        return partial(self.future.set_result, result)

    def _run_in(self, client: Client) -> Any:
        with client:
            result = self._run()
            if self.client is None:
                result = brought_home(result)
                client.session.synchronize()  # what fails on the device only now is this call's failure
            return result


class Crew:
    """The threads of one function: as many as it has calls, up to what its ``terms`` allow; none while it has none."""

    def __init__(self, function: str, terms: Terms) -> None:
        self._function = function
        self._terms = terms
        self._lock = threading.Lock()
        #: Calls that were made together: one thread runs them in one session after the other, or several share them.
        self._waiting: deque[deque[Call]] = deque()
        self._threads: set[threading.Thread] = set()

    def submit(self, calls: Iterable[Call]) -> None:
        """Have ``calls`` carried out, begun in their order."""
        batch = deque(calls)
        with self._lock:
            free = self._terms.max_workers - len(self._threads)
            fresh = [
                threading.Thread(target=self._work, name=f"function-{self._function}", daemon=True)
                for _ in range(min(free, len(batch)))
            ]
            self._threads.update(fresh)
            self._waiting.append(batch)
        for thread in fresh:
            thread.start()

    def cancel(self) -> None:
        """Cancel every call that has not begun."""
        with self._lock:
            waiting = [call for batch in self._waiting for call in batch]
        for call in waiting:
            call.future.cancel()

    def join(self) -> None:
        """Wait until all calls are over."""
        for thread in [*self._threads]:
            thread.join()

    # --- in a thread --------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            self._work_off(batch)

    def _next(self) -> deque[Call] | None:
        """Return calls to carry out; where there are none, this thread is over."""
        with self._lock:
            self._waiting = deque(batch for batch in self._waiting if batch)
            if self._waiting and not is_ending():
                return self._waiting[0]
            self._threads.discard(threading.current_thread())
            return None

    def _work_off(self, batch: deque[Call]) -> None:
        """Carry out calls of ``batch`` until there are none left, those with a session of their own all in one."""
        own: CallClient | None = None
        while (call := _popped(batch)) is not None:
            try:
                client = call.client
                if client is None:
                    client = own = own or call.context.run(CallClient, self._function, self._terms)
                is_wanted = self._take(client, call)
            except BaseException as error:
                own = None  # it has no session, and the next call tries anew
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(error)
                continue
            tell = call.outcome(client) if is_wanted else None
            if own is not None and not batch:
                _held().give_back(own)  # first: who has the last result holds nothing any more
                own = None
            if tell is not None:
                tell()
        if own is not None:
            _held().give_back(own)

    def _take(self, client: Client, call: Call) -> bool:
        """Have a session for ``call``, waited for if need be; False if it was cancelled meanwhile."""
        try:
            if isinstance(client, CallClient) and not call.future.cancelled():
                self._ask(client, call)
        except Withdrawn:
            call.future.cancel()
        return call.future.set_running_or_notify_cancel()

    def _ask(self, client: CallClient, call: Call) -> None:
        """Take a session. One that a quota refuses is asked for again when another call has given back its own."""

        def is_wanted() -> bool:
            return not (call.future.cancelled() or is_ending())

        held = _held()
        while True:
            given_back, is_own = held.ask(client), False
            try:
                client.take(is_wanted)
                is_own = call.client is None
                return
            except PoolRefusal as error:
                if type(error) not in (PoolRefusal, TooManyAtOnce):
                    raise
                refused = error
            finally:
                held.settle(client, is_own)
            if not held.wait_for_another(given_back, call.callers, is_wanted):
                raise refused


def _held() -> Held:
    """Return the sessions that calls have; for threads of ours, in which no client was chosen."""
    return current().first.part(Held)


def _popped(batch: deque[Call]) -> Call | None:
    try:
        return batch.popleft()
    except IndexError:  # another thread had the last one
        return None


def _from_function(trace: TracebackType | None) -> TracebackType | None:
    """Return ``trace`` from the function's own frame on; all of it if it never got there."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename == __file__:
        found = found.tb_next
    return found or trace
