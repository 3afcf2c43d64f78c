"""Where the notebook refuses an array of NumPy, CuPy on a GPU does so too, and in the same words."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.host_calls import host_calls, names
from tests.conformance.infer_calls import Array

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def on_device(spec: Array) -> Any:
    import cupy

    return cupy.zeros(spec.shape, spec.dtype)


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return error
    return None


@pytest.mark.parametrize("qualname", names())
def test_cupy_refuses_it_in_these_words(qualname: str) -> None:
    from gpu_backend.executor.devices import open_device

    function = open_device("cuda").resolve(qualname)
    for one in host_calls(qualname, 1, 4):
        if outcome(function, *one.arguments(on_device, on_host=False)) is not None:
            continue  # another error may come first
        error = outcome(function, *one.arguments(on_device))
        assert error is not None, one
        if not one.refusal.varies:
            assert (type(error).__name__, str(error)) == (one.refusal.error, one.refusal.message), one
