"""Where the notebook refuses an array of NumPy, CuPy on a GPU does so too, and in the same words."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import pytest

from gpu_backend.opstream import surface
from tests.conformance.host_calls import host_calls, names, other_host_calls
from tests.conformance.infer_calls import TEMPLATES, Array, Made

pytestmark = [pytest.mark.gpu_long, pytest.mark.timeout(300)]


#: Where the notebook knows otherwise: the argument's own methods, rules of inference, what is taken with its like only.
_ELSEWHERE = {
    "cupy.argmax": "a", "cupy.choose": "a", "cupy.compress": "a", "cupy.dot": "a", "cupy.ptp": "a",
    "cupy.in1d": "ar1 ar2", "cupyx.scipy.linalg.khatri_rao": "a b", "cupyx.scipy.ndimage.percentile_filter": "input",
    "cupy.random.normal": "loc", "cupy.meshgrid": "kwargs",
}  # fmt: skip
#: Sizes of which CuPy passes one element on by value: its kernel takes that for an address, and the device is lost.
_BY_VALUE = {("cupyx.scipy.signal.lfilter", "x"): 1, ("cupyx.scipy.signal.lfilter", "a"): 2}
FUNCTIONS = sorted(name for name in TEMPLATES if isinstance(surface.load().get(name), surface.Function))


def on_device(spec: Array) -> Any:
    import cupy

    return cupy.zeros(spec.shape, spec.dtype)


def resolved(qualname: str) -> Any:
    from gpu_backend.devices import open_device

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's of what is experimental, as it imports a module
        return open_device("cuda").resolve(qualname)


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    error: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as raised:
            error = raised
    _end_if_lost(function)
    return error


def _end_if_lost(function: Any) -> None:
    """End the session if a kernel of ``function`` has faulted: no call could succeed after it, nor say why.

    A worker of several ends without a word: the test counts as failed, and another worker goes on with the next.
    """
    from cupy.cuda import runtime

    try:
        runtime.deviceSynchronize()
    except runtime.CUDARuntimeError as error:
        if "PYTEST_XDIST_WORKER" in os.environ:
            os._exit(1)
        pytest.exit(f"{function.__module__}.{function.__name__} has lost the device: {error}", 1)


@pytest.mark.parametrize("qualname", names())
def test_cupy_refuses_it_in_these_words(qualname: str) -> None:
    function = resolved(qualname)
    for one in host_calls(qualname, 1, 4):
        if outcome(function, *one.arguments(on_device, on_host=False)) is not None:
            continue  # another error may come first
        if _BY_VALUE.get((qualname, one.parameter)) == math.prod(one.shape):
            continue
        error = outcome(function, *one.arguments(on_device))
        assert error is not None, one
        if not one.refusal.varies:
            assert (type(error).__name__, str(error)) == (one.refusal.error, one.refusal.said_of(one.shape)), one


@pytest.mark.parametrize("qualname", FUNCTIONS)
def test_there_is_a_fact_about_each_that_is_always_refused(qualname: str) -> None:
    """With another version of CuPy, this names what `host_values.toml` lacks."""
    function = resolved(qualname)
    seen: dict[str, list[Exception | None]] = {}
    for one in other_host_calls(qualname, 1, 12):
        has_objects = any(isinstance(argument, Made) for argument in one.call.args)
        if not has_objects and outcome(function, *one.arguments(on_device, on_host=False)) is None:
            seen.setdefault(one.parameter, []).append(outcome(function, *one.arguments(on_device)))
    always = {parameter: errors[0] for parameter, errors in seen.items() if all(errors)}
    assert always.keys() <= {"out", *_ELSEWHERE.get(qualname, "").split()}, always
