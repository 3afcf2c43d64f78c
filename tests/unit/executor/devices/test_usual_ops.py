"""The ops that are compiled beforehand are public ones, with as many operands as they take."""

from __future__ import annotations

import numpy as np

from gpu_backend.devices.usual_ops import usual_ops
from gpu_backend.opstream.surface import Ufunc, load


def test_each_is_a_ufunc_of_one_result_or_a_choice_or_a_copy() -> None:
    for name, kinds in usual_ops():
        described = load().resolved(name) if name else None
        takes = described.nin if isinstance(described, Ufunc) and described.nout == 1 else 3
        takes = takes if name else 2 + (kinds[2:] == (np.bool_,))
        assert (len(kinds), name in ("", "cupy.where") or isinstance(described, Ufunc)) == (takes, True), name


def test_they_come_once_and_always_in_one_order() -> None:
    assert list(usual_ops()) == list(usual_ops())
    assert len(set(usual_ops())) == len(list(usual_ops()))
