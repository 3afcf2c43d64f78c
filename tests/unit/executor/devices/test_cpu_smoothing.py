"""Smoothing forth and back on the CPU device, as CuPy's own sources compute it when they run there.

The figures are of ``cupyx/scipy/signal/_splines.py`` of CuPy 14.2, run as a program on the CPU device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device

SIGNAL = (np.arange(16) * 7 % 5).astype(float)
NOT_CONVERGED = "Sum to find symmetric boundary conditions did not converge"
PLACES = [0, 1, 7, -2, -1]


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args: device.resolve(f"cupyx.scipy.signal.{name}")(*args)


@pytest.mark.parametrize(
    ("omega", "figures"),
    [
        (0.0, [0.713374811465, 1.80291104853, 2.70778811263, 0.0, 0.72]),
        (np.pi, [-0.287474366897, 1.18624707492, 7.57169854392, 7.2648, 1.188]),
        (0.7, [0.46609698059, 1.91198587599, 2.97587900146, 0.0, 0.610045167109]),
    ],
)
def test_sums_end_at_the_first_term_that_is_small(cp: Any, omega: float, figures: list[float]) -> None:
    assert np.allclose(cp("symiirorder2", SIGNAL, 0.2, omega, 0.25)[PLACES], figures, rtol=1e-11)


def test_long_sums_are_taken_up_by_blocks(cp: Any) -> None:
    figures = [1.20422399645, 4.75260487643, -1.04541779598, -7.18895613286e-06, -1.26822542361e-05]
    assert np.allclose(cp("symiirorder2", np.tile(SIGNAL, 20), 0.9, 0.7)[PLACES], figures, rtol=1e-10)


def test_single_precision_gives_double_of_the_second_order_and_single_of_the_first(cp: Any) -> None:
    single = SIGNAL.astype(np.float32)
    second, first = cp("symiirorder2", single, 0.2, 0.7), cp("symiirorder1", single, 2.0, 0.3, 0.01)
    assert (second.dtype, first.dtype) == (np.float64, np.float32)
    assert np.allclose(second[PLACES], [0.532212872907, 1.91356825214, 2.97585429702, 2.07243867735, 0.646061377583],
                       rtol=1e-5)  # fmt: skip
    assert np.allclose(first[PLACES], [2.87882089615, 7.62206935883, 11.6432304382, 8.40344905853, 3.19118332863])


@pytest.mark.parametrize(
    ("pole", "precision", "figures"),
    [
        (0.05, -1.0, [0.23188165141, 4.41734545937, 8.33663418391, 6.13660849664, 0.322131679614]),
        (0.5, 0.25, [7.69883022271, 13.3976604454, 19.044018507, 14.7093200684, 9.80621337891]),
    ],
)
def test_the_filter_of_first_order(cp: Any, pole: float, precision: float, figures: list[float]) -> None:
    assert np.allclose(cp("symiirorder1", SIGNAL, 2.0, pole, precision)[PLACES], figures, rtol=1e-11)


def test_rows_are_filtered_each(cp: Any) -> None:
    rows = np.stack([SIGNAL, SIGNAL[::-1]])
    assert np.allclose(cp("symiirorder2", rows, 0.2, 0.7, 0.25)[1], cp("symiirorder2", rows[1], 0.2, 0.7, 0.25))


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("symiirorder2", (0.2, 0.7, -1.0), NOT_CONVERGED),
        ("symiirorder2", (0.9, 0.7, -1.0), NOT_CONVERGED),
        ("symiirorder2", (1.0, 0.7, 0.5), "r must be less than 1"),
        ("symiirorder1", (2.0, 0.9, -1.0), NOT_CONVERGED),
        ("symiirorder1", (2.0, -1.5, 0.5), r"\|z1\| must be less than 1"),
    ],
)
def test_what_does_not_converge_is_refused(cp: Any, name: str, args: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cp(name, SIGNAL, *args)
