"""CuPy's filters, cepstra and LAPACK on the CPU device, against what they are by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

from gpu_backend.devices import open_device

RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(name)(*args, **kwargs)


@pytest.mark.parametrize("shape", [(50,), (3, 50)])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 0), (3, 2), (2, 3), (4, 1)])
def test_a_filter_in_two_parts_is_the_filter_in_one(cp: Any, shape: Any, inputs: int, outputs: int) -> None:
    b, a, x = RANDOM.random(inputs), np.r_[1, RANDOM.random(outputs) / 4], RANDOM.random(shape)
    whole = cp("cupyx.scipy.signal.lfilter", b, a, x)
    state = np.zeros((*shape[:-1], b.size + a.size - 2))
    first, state = cp("cupyx.scipy.signal.lfilter", b, a, x[..., :20], zi=state)
    second, _ = cp("cupyx.scipy.signal.lfilter", b, a, x[..., 20:], zi=state)
    assert np.allclose(np.concatenate([first, second], axis=-1), whole)


def test_a_state_does_not_widen_what_is_filtered(cp: Any) -> None:
    b, a, x = np.float32([0.5, 0.5]), np.float32([1, 0.25]), np.ones(9, np.float32)
    assert [part.dtype for part in cp("cupyx.scipy.signal.lfilter", b, a, x, zi=np.zeros(2))] == [np.float32] * 2
    assert cp("cupyx.scipy.signal.lfilter", np.array([2]), np.array([1]), x, zi=np.zeros(0))[0].dtype == np.float64


def test_sections_in_two_parts_are_the_filter_in_one(cp: Any) -> None:
    sos, x = scipy.signal.butter(5, 0.3, output="sos"), RANDOM.random(60)
    first, state = cp("cupyx.scipy.signal.sosfilt", sos, x[:25], zi=np.zeros((len(sos), 4)))
    second, _ = cp("cupyx.scipy.signal.sosfilt", sos, x[25:], zi=state)
    assert np.allclose(np.concatenate([first, second]), scipy.signal.sosfilt(sos, x))


def test_a_steady_state_stays(cp: Any) -> None:
    b, a = scipy.signal.butter(3, 0.4)
    made, _ = cp("cupyx.scipy.signal.lfilter", b, a, np.ones(30), zi=cp("cupyx.scipy.signal.lfilter_zi", b, a))
    assert np.allclose(made, made[0])
    sos = scipy.signal.butter(4, 0.4, output="sos")
    made, _ = cp("cupyx.scipy.signal.sosfilt", sos, np.ones(30), zi=cp("cupyx.scipy.signal.sosfilt_zi", sos))
    assert np.allclose(made, made[0])
    state = cp("cupyx.scipy.signal.lfiltic", b, a, np.array([4.0, 3, 2]), np.array([8.0, 7, 6]))
    assert state.tolist() == [6, 7, 8, 2, 3, 4]


def test_a_complex_cepstrum_comes_back(cp: Any) -> None:
    x = RANDOM.random(64)
    cepstrum, delay = cp("cupyx.signal.complex_cepstrum", x)
    assert np.allclose(cp("cupyx.signal.inverse_complex_cepstrum", cepstrum, delay), x)
    least = cp("cupyx.signal.minimum_phase", x)
    assert np.allclose(np.abs(np.fft.fft(least)), np.abs(np.fft.fft(x)))


def test_a_target_stands_out(cp: Any) -> None:
    echo = np.ones(100, np.float32)
    echo[40] = 500
    _, found = cp("cupyx.signal.ca_cfar", echo, 2, 8)
    assert np.flatnonzero(found[10:-10]).tolist() == [30]


def test_real_to_real_transforms_are_those_that_cupy_has(cp: Any) -> None:
    with pytest.raises(NotImplementedError, match="DCT-II and DCT-III"):
        cp("cupyx.scipy.fft.dct", np.ones(4), type=1)
    assert cp("cupyx.scipy.fft.idst", np.ones(4), 3).shape == (4,)


def test_lapack_solves(cp: Any) -> None:
    a, b = RANDOM.random((4, 4)) + 4 * np.eye(4), RANDOM.random(4)
    x = b.copy()
    cp("cupyx.lapack.gesv", a, x)
    assert np.allclose(a @ x, b)
    with pytest.raises(ValueError, match="F-contiguous"):
        cp("cupyx.lapack.gesv", a, np.ones((4, 2)))
    positive = a @ a.T
    assert np.allclose(cp("cupyx.linalg.invh", positive), np.linalg.inv(positive))
    factor = np.linalg.cholesky(positive)
    for triangle, lower in ((factor, True), (factor.T, False)):
        assert np.allclose(positive @ cp("cupyx.linalg.cho_solve", (triangle, lower), b), b)
    tall = RANDOM.random((6, 3))
    assert np.allclose(cp("cupyx.lapack.gels", tall, np.ones(6)), np.linalg.lstsq(tall, np.ones(6), rcond=None)[0])


@pytest.mark.parametrize("pivots", [[0, 1, 3], [0, -1, 2], [0, 1 << 30, 0], [0, 1], [0, 1, 2, 2]])
def test_pivots_that_lead_out_of_the_matrix_are_refused(pivots: list[int]) -> None:
    device = open_device("cpu")
    factors, side = device.upload(np.eye(3)), device.upload(np.ones(3))
    with pytest.raises(ValueError, match="no places of 3 rows"):
        device.resolve("cupyx.scipy.linalg.lu_solve")(  # type: ignore[operator]
            (factors, device.upload(np.array(pivots, "i"))), side, check_finite=False
        )


def test_a_generator_that_is_seeded_anew_begins_anew(cp: Any) -> None:
    generator = cp("cupy.random.default_rng", 3)
    before = generator.random(5)
    generator.bit_generator = cp("cupy.random.XORWOW", 3)
    assert np.array_equal(generator.random(5), before)
    assert generator.dirichlet(np.array([2.0, 3, 4]), 7).shape == (7, 3)
    assert generator.hypergeometric(5, 10, 16, size=4).tolist() == [5, 5, 5, 5]
