"""Reductions of whole arrays on a GPU: the short way to CUB gives what CuPy's own way gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

NAMES = [f"{owner}.{name}" for owner in ("cupy.ndarray", "cupy") for name in ("sum", "prod", "max", "min")]
DTYPES = "?bHlQefD"


def own(qualname: str) -> Any:
    """Return CuPy's own function."""
    import cupy

    owner, _, name = qualname.rpartition(".")
    return getattr(cupy.ndarray if owner == "cupy.ndarray" else cupy, name)


def outcome(function: Any, *args: Any, **kwargs: Any) -> object:
    """Return what came of the call, comparable: dtype, shape and bytes, or the error."""
    try:
        made = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return made.dtype.char, made.shape, made.get().tobytes()


@pytest.mark.parametrize("qualname", [*NAMES, "cupy.amax", "cupy.amin"])
def test_every_array_is_reduced_as_by_cupy(qualname: str) -> None:
    import cupy

    from gpu_backend.devices import open_device

    function = open_device("cuda").resolve(qualname)
    assert function.__doc__ == own(qualname).__doc__
    random = np.random.default_rng(1)
    for char in DTYPES:
        array = cupy.asarray((random.random((30, 40)) * 3 + 0.5).astype(char))
        for one in (array, array.ravel()[:7], array[0, 0], array[:0]):
            assert outcome(function, one) == outcome(own(qualname), one), (char, one.shape)
    array = cupy.arange(1200.0).reshape(30, 40)
    for one in (array.T, array[1:, ::2]):
        assert outcome(function, one) == outcome(own(qualname), one), one.strides
    for kwargs in ({"axis": 0}, {"axis": None}, {"axis": (0, 1), "keepdims": True}, {"out": cupy.empty((), "f8")}):
        assert outcome(function, array, **kwargs) == outcome(own(qualname), array, **kwargs), kwargs
    assert outcome(function, array, 1) == outcome(own(qualname), array, 1)
    assert outcome(function, [1.0, 2.0]) == outcome(own(qualname), [1.0, 2.0])


def test_accelerators_that_a_program_chose_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy
    from cupy import _core
    from cupy.cuda import cub

    from gpu_backend.devices import cuda_reductions

    ways: list[int] = []
    device_reduce = cub.device_reduce
    monkeypatch.setattr(cub, "device_reduce", lambda *given: ways.append(len(given)) or device_reduce(*given))
    total = cuda_reductions.whole_reductions()["cupy.ndarray.sum"]
    array = cupy.arange(1000.0)
    assert float(total(array)) == 499_500
    assert ways == [4]
    chosen = _core.get_routine_accelerators()
    _core.set_routine_accelerators([])
    try:
        assert float(total(array)) == 499_500
    finally:
        _core.set_routine_accelerators(chosen)
    assert ways == [4]
