"""``workbench.function``: a Python function whose calls have a session of the pool only while they run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, update_wrapper
from numbers import Integral, Real
from typing import Any, Generic, ParamSpec, overload

import kernelproxy
from gpu_backend.wire.bounds import MOST_BYTES
from kernelproxy.calls.common_client import common
from kernelproxy.client import clients
from kernelproxy.session.amounts import bytes_from_words, bytes_in_words
from kernelproxy.session.leaving import leave_at_end
from workbench.call_client import CallClient, Terms
from workbench.calls import Call, Crew
from workbench.passing import client_of

P = ParamSpec("P")


class Function(Generic[P]):
    """A function whose calls run on the pool; made by `function`. The plain one is its ``__wrapped__``."""

    __wrapped__: Callable[P, Any]

    def __init__(self, wrapped: Callable[P, Any], terms: Terms, client: CallClient | None = None) -> None:
        update_wrapper(self, wrapped)
        self._terms = terms
        self._client = client
        self._name = getattr(wrapped, "__name__", type(wrapped).__name__)
        self._crew = Crew(self._name, terms)

    def __repr__(self) -> str:
        return f"<workbench.function {self._name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Future[Any]:
        """Have the function called, and return its future at once.

        Raises
        ------
        MixedClients
            If the arguments hold remote arrays of two sessions.
        """
        (future,) = self._submitted([self._call(*args, **kwargs)])
        return future

    def map(self, *iterables: Iterable[Any]) -> list[Future[Any]]:
        """Have the function called for each item, as by ``map``, and return the futures in the order of the items.

        The calls share at most ``max_workers`` sessions, each of which runs one call after another until all have
        begun: what CuPy keeps for a session, as the state of ``cupy.random``, goes from one to the next.
        """
        return self._submitted([self._call(*args) for args in zip(*iterables, strict=False)])

    def options(
        self,
        *,
        gpu: float | None = None,
        memory: str | int | None = None,
        timeout: float | None = None,
        max_workers: int | None = None,
    ) -> Function[P]:
        """Return the same function on other terms; what is not said stays as it is. Raises as `function` does."""
        return Function(self.__wrapped__, _changed(self._terms, gpu, memory, timeout, max_workers))

    @contextmanager
    def kept(self) -> Iterator[Function[P]]:
        """Have one session for all calls inside of the ``with`` block, and their results stay there as remote arrays.

        Gives the function to call. Its calls run one after another. The session is taken by the first of them and given
        back at the end of the block, after the last of them; its arrays are gone then. Calls of other functions that
        are given its arrays run in it too.
        """
        client = CallClient(self._name, self._terms)
        bound = Function(self.__wrapped__, replace(self._terms, max_workers=1), client)
        try:
            yield bound
        except BaseException:
            bound._crew.cancel()  # nobody is there to take the results
            raise
        else:
            bound._crew.join()
            if client.opened is not None:
                client.opened.synchronize()  # what fails on the device only now is heard here
        finally:
            client.close()

    def _call(self, *args: Any, **kwargs: Any) -> Call:
        client = common(self._client, client_of(args, kwargs))
        return Call(partial(self.__wrapped__, *args, **kwargs), client)

    def _submitted(self, calls: list[Call]) -> list[Future[Any]]:
        leave_at_end(clients)
        self._crew.submit(calls)
        return [call.future for call in calls]


@overload
def function(wrapped: Callable[P, Any], /) -> Function[P]: ...


@overload
def function(
    *,
    gpu: float | None = None,
    memory: str | int | None = None,
    timeout: float | None = None,
    max_workers: int = 4,
) -> Callable[[Callable[P, Any]], Function[P]]: ...


def function(
    wrapped: Callable[..., Any] | None = None,
    /,
    *,
    gpu: float | None = None,
    memory: str | int | None = None,
    timeout: float | None = None,
    max_workers: int = 4,
) -> Any:
    """Make of a Python function one whose calls run on the pool, and have a part of a GPU only while they run.

    ::

        @workbench.function(gpu=0.5, memory="4 GiB")
        def energy(seed):
            import cupy as cp

            return cp.random.default_rng(seed).random(1_000_000).sum()


        energy(1).result()
        [future.result() for future in energy.map(range(100))]

    A call returns a `concurrent.futures.Future` at once. It takes a session of its own from the pool, which keeps
    executors warm for that, runs, and gives the session back before the future has its result: between calls nothing
    is held. If the pool is full the call waits in its queue, pending, and can be cancelled.

    The function's Python runs in a thread of this process, in the caller's own environment, and each CuPy operation in
    it on the executor of the call's session: executors run no Python of users. So anything may be called, captured and
    returned; what computes by itself in Python competes for this process's interpreter.

    Remote arrays that the function returns, in lists, tuples and dictionaries too, come as NumPy arrays (sparse
    matrices as SciPy's). A call that is **given** remote arrays runs in the session where they lie, on the terms of
    that one, and what it returns stays there; so does all inside of `Function.kept`. `import cupy` is the remote CuPy
    in this process from the first `function` on.

    The idea is that of DGSF (Fingler et al., "DGSF: Disaggregated GPUs for Serverless Functions", IPDPS 2022) and of
    the same authors' "Disaggregated GPU Acceleration for Serverless Applications" (SIGOPS OSR, 2023): functions declare
    the GPU memory that they need, wait for a GPU server that has it, and find it warm. There functions run in sandboxes
    of a serverless platform, and workers are cleaned and used again; here they run with their caller, and an executor
    serves one session. Sessions are not moved to another GPU while a function runs.

    Parameters
    ----------
    gpu
        Largest part of a device's time for a call, above 0 and up to 1; by default that of the user's other sessions.
        It is kept where the device's policy looks at limits (``gemini``, ``kubeshare``, ``gaiagpu``). Under the others,
        ``fair_share`` among them, it is no more than a word; there a user's calls and notebooks share their part.
    memory
        Device memory that a call may hold: "4 GiB", "500 MB" or a number of bytes. It is set aside: a call waits for a
        device that has it left. By default what the user's other sessions ask for.
    timeout
        How long a call may wait in the queue of a full pool, seconds; by default as long as it takes.
    max_workers
        Most calls of this function that run, or wait for a place, at the same time; others wait for them here. Fewer do
        if the user's quota of sessions allows no more.

    Raises
    ------
    ValueError
        If one of the above is no such amount.
    TypeError
        If ``wrapped`` cannot be called, or is a coroutine or a generator: its body would run when the call is over.
    ImportError
        If another CuPy has been imported in this process already.

    The future raises what the function raised, with the traceback of the function's lines; of what failed in the
    executor ``remote_traceback`` has the lines there. Besides, of the pool's own errors,

    PoolFull
        If a place was waited for until ``timeout``.
    PoolRefusal
        If more is asked for than the user may have, or than any device has.
    PoolUnreachable, NotAuthorized
        If there is no pool, or none for us.
    SessionLost
        If the executor ended in the middle of the call. The function is not called again: it may have done something.
    TypeError
        If the function returns an object of CuPy's that is no array.
    """
    terms = _changed(Terms(), gpu, memory, timeout, max_workers)
    return partial(_made, terms) if wrapped is None else _made(terms, wrapped)


def _made(terms: Terms, wrapped: Callable[P, Any]) -> Function[P]:
    if not callable(wrapped):
        raise TypeError(
            f"workbench.function makes a function that runs on the pool of one, and {wrapped!r:.60} cannot be called. "
            'What it asks for is said by name: workbench.function(gpu=0.5, memory="4 GiB").'
        )
    for kind, is_one in (("coroutine", inspect.iscoroutinefunction), ("generator", inspect.isgeneratorfunction)):
        if is_one(wrapped):
            raise TypeError(
                f"{getattr(wrapped, '__name__', wrapped)} is a {kind} function: calling it runs nothing of it, so "
                "nothing of it would run on the pool. Make it a plain function."
            )
    kernelproxy.activate()
    return Function(wrapped, terms)


def _changed(
    terms: Terms, gpu: float | None, memory: str | int | None, timeout: float | None, max_workers: int | None
) -> Terms:
    """Return ``terms`` with what was said in its place.

    Raises
    ------
    ValueError
        If something is no such amount.
    """
    if gpu is not None and not (_is_a(Real, gpu) and 0 < gpu <= 1):
        raise ValueError(f"gpu is to be a part of one device, above 0 and up to 1, not {gpu!r:.60}.")
    if timeout is not None and not (_is_a(Real, timeout) and timeout >= 0):
        raise ValueError(f"timeout is to be a number of seconds from 0 on, not {timeout!r:.60}.")
    if max_workers is not None and not (_is_a(Integral, max_workers) and max_workers >= 1):
        raise ValueError(f"max_workers is to be a whole number from 1 on, not {max_workers!r:.60}.")
    return replace(
        terms,
        gpu=terms.gpu if gpu is None else float(gpu),
        memory_bytes=terms.memory_bytes if memory is None else _bytes(memory),
        timeout_seconds=terms.timeout_seconds if timeout is None else float(timeout),
        max_workers=terms.max_workers if max_workers is None else int(max_workers),
    )


def _bytes(memory: str | int) -> int:
    if isinstance(memory, str):
        return bytes_from_words(memory)
    if not _is_a(Integral, memory):
        raise ValueError(f'memory is to be an amount like "4 GiB", or a whole number of bytes, not {memory!r:.60}.')
    if not 0 <= memory <= MOST_BYTES:
        raise ValueError(f"memory is to be a number of bytes from 0 to {MOST_BYTES} ({bytes_in_words(MOST_BYTES)}).")
    return int(memory)


def _is_a(kind: type, given: object) -> bool:
    """Tell whether ``given`` is such a number, NumPy's among them; to Python, True and False are numbers too."""
    return isinstance(given, kind) and not isinstance(given, bool)
