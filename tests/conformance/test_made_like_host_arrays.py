"""Arrays made after one of NumPy lie as CuPy makes them, and its contents stay in the notebook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.asked_of_views import REMOTE
from tests.conformance.in_process import InProcess

#: Far less than any of the prototypes.
_FEW_BYTES = 4_000
_BLOCK = np.arange(48_000.0).reshape(30, 40, 40)
PROTOTYPES = {
    "rows": _BLOCK, "columns": np.asfortranarray(_BLOCK), "permuted": _BLOCK.transpose(1, 0, 2),
    "backwards": _BLOCK[::2, ::-1], "subclass": np.ma.masked_array(_BLOCK),
}  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"order": "A"}, {"order": "C"}, {"order": "f"}, {"dtype": "f4"}, {"shape": (5, 2)}, {"shape": 7},
    {"shape": (4, 3, 2)}, {"dtype": np.int8, "shape": (2, 3, 4), "order": "K"},
]  # fmt: skip


@pytest.mark.parametrize("prototype", PROTOTYPES)
@pytest.mark.parametrize(("name", "value"), [("empty", ()), ("zeros", ()), ("ones", ()), ("full", (7,))])
def test_they_are_made_without_the_contents(
    executor: InProcess, name: str, value: tuple[int, ...], prototype: str
) -> None:
    host = PROTOTYPES[prototype]
    for options in OPTIONS:
        before = executor.talk.received_bytes
        made = getattr(REMOTE, f"{name}_like")(host, *value, **options)
        contents = made.get()
        assert executor.talk.received_bytes - before < _FEW_BYTES
        known = getattr(np, f"{name}_like")(np.asarray(host), *value, **options)
        assert (made.shape, made.dtype, made.strides) == (known.shape, known.dtype, known.strides)
        if name != "empty":
            assert (contents == known).all()


def test_what_fills_may_be_an_array_of_ours_by_name(executor: InProcess) -> None:
    made = REMOTE.full_like(PROTOTYPES["columns"], fill_value=REMOTE.asarray(5.0), dtype=np.int16)
    assert made.flags.fnc
    assert made.dtype == np.int16
    assert (made.get() == 5).all()


def test_what_cupy_refuses_it_refuses(executor: InProcess) -> None:
    with pytest.raises(TypeError, match="subok is not supported yet"):
        REMOTE.zeros_like(np.ones(3), subok=True)
    with pytest.raises(ValueError, match="order"):
        REMOTE.empty_like(np.ones((3, 2)), order="x")
    with pytest.raises(TypeError):
        REMOTE.full_like(np.ones(3))
    with pytest.raises(ValueError, match="Unsupported dtype"):
        REMOTE.zeros_like(np.array([None]))
