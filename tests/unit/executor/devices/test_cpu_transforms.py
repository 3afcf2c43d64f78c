"""Fourier transforms of the CPU device: SciPy's values, CuPy's memory order, and plans that are obeyed or refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
from hypothesis import given, settings

from gpu_backend.devices import open_device
from gpu_backend.devices.cpu.fft_plans import CuFFTError
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import prove

RANDOM = np.random.default_rng(3)
_device = open_device("cpu")
_config = _device.resolve("cupy.fft.config")
KINDS = {"fft": "C2C", "ifft": "C2C", "rfft": "R2C", "irfft": "C2R"}


def cp(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of ``cupy.fft``."""
    return _device.resolve(f"cupy.fft.{name}")(*args, **kwargs)


def planned(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of ``cupyx.scipy.fft``."""
    return _device.resolve(f"cupyx.scipy.fft.{name}")(*args, **kwargs)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    _config.clear_plan_cache()
    yield
    _config.set_plan_cache_size(16)
    _config.set_plan_cache_max_memsize(-1)
    _config.use_multi_gpus = False
    with pytest.warns(DeprecationWarning, match="deprecated"):
        _config.enable_nd_planning = True


def _array(shape: tuple[int, ...], dtype: str, order: str = "C") -> Any:
    made = RANDOM.random(shape) * 9 + (1j * RANDOM.random(shape) if dtype in "FD" else 0)
    return np.asarray(made, dtype, order=order)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)), arrays.array_shapes(min_dims=1, max_dims=4, min_side=2, max_side=5),
    st.sampled_from("efdFDi"), st.sampled_from("CF"), st.data(),
)  # fmt: skip
def test_values_are_scipys_and_lie_as_the_notebook_believes(
    name: str, shape: tuple[int, ...], dtype: str, order: str, data: st.DataObject
) -> None:
    dtype = dtype.lower() if name == "rfft" else dtype
    a = _array(shape, dtype, order)
    count = data.draw(st.integers(1, len(shape)))
    axes = tuple(data.draw(st.permutations(range(len(shape))))[:count])
    s = data.draw(st.none() | st.tuples(*[st.integers(2, 6)] * count))
    norm = data.draw(st.sampled_from((None, "ortho", "forward")))
    if s == a.shape:
        axes = tuple(sorted(axes))  # for CuPy these lengths ask for nothing, whichever axes they are for
    made = cp(f"{name}n", a, s, axes, norm)
    wanted = getattr(scipy.fft, f"{name}n")(a.astype("f") if dtype == "e" else a, s, axes, norm)
    assert np.allclose(made, wanted, rtol=1e-2 if dtype == "e" else 1e-3, atol=1e-3)
    claim = prove(f"cupy.fft.{name}n", (Layout(a.shape, a.strides, a.dtype), s, axes, norm))
    assert isinstance(claim, Layout)
    assert (claim.shape, claim.strides, claim.dtype) == tuple(_device.layout(made))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["C2C", "R2C", "C2R"])
@pytest.mark.parametrize("axes", [None, (0, 1), (-2, -1), (-3, -2, -1)])
@pytest.mark.parametrize("shape", [(3, 4, 6), (2, 3, 4, 6)])
def test_a_plan_carried_out_is_the_transform_without_a_factor(shape: Any, axes: Any, kind: str, order: str) -> None:
    if axes is None and len(shape) > 3:
        with pytest.raises(ValueError, match="could not be created"):
            planned("get_fft_plan", _array(shape, "F"), None, axes, kind)
        return
    a = _array(shape, "d" if kind == "R2C" else "D", order)
    if order == "F" and kind != "C2C":
        with pytest.raises(ValueError, match="F-order"):
            planned("get_fft_plan", a, None, axes, kind)
        return
    plan = planned("get_fft_plan", a, None, axes, kind)
    out = plan.get_output_array(a, order)
    plan.check_output_array(a, out)
    plan.fft(a, out, -1)
    all_axes = tuple(range(len(shape))) if axes is None else axes
    wanted = {"C2C": scipy.fft.fftn, "R2C": scipy.fft.rfftn, "C2R": scipy.fft.irfftn}[kind]
    assert np.allclose(out, wanted(a, axes=all_axes, norm="forward" if kind == "C2R" else None))


def test_a_plan_along_one_axis_is_carried_out_too() -> None:
    a = _array((5, 8), "D")
    plan = planned("get_fft_plan", a, axes=1)
    out = plan.get_output_array(a)
    plan.fft(a, out, 1)
    assert (plan.nx, plan.batch) == (8, 5)
    assert np.allclose(out, scipy.fft.ifft(a, norm="forward"))
    with pytest.raises(ValueError, match=r"out must have shape \(5, 8\)"):
        plan.check_output_array(a, a[:1])
    with pytest.raises(CuFFTError, match="INVALID_VALUE"):
        plan.fft(a[:2].copy(), out, 1)


#: A transform, what its plan was made of, and of what the transform is then.
WRONG = [
    ("fft", ((4, 6), "D", {"axes": 1}), ((4, 6), "F"), "dtype mismatch"),
    ("fft", ((4, 6), "D", {"axes": 0}), ((4, 6), "D"), "size does not match"),
    ("fft", ((4, 6), "D", {"axes": 1}), ((3, 6), "D"), "Batch size"),
    ("fft", ((4, 6), "D", {}), ((4, 6), "D"), "expected plan to have type cufft.Plan1d"),
    ("fftn", ((4, 6), "D", {"axes": 1}), ((4, 6), "D"), "expected plan to have type cufft.PlanNd"),
    ("fftn", ((4, 6), "D", {}), ((4, 5), "D"), "cuFFT plan and a.shape do not match"),
    ("fftn", ((4, 6), "D", {}), ((4, 6), "F"), "dtype mismatch"),
    ("irfftn", ((4, 5), "D", {"shape": (4, 9), "value_type": "C2R"}), ((4, 5), "D"), "do not match"),
]


@pytest.mark.parametrize(("name", "of", "given_to", "words"), WRONG)
def test_a_plan_that_does_not_fit_is_refused(name: str, of: Any, given_to: Any, words: str) -> None:
    shape, dtype, options = of
    plan = planned("get_fft_plan", _array(shape, dtype), **options)
    with pytest.raises(ValueError, match=words):
        planned(name, _array(*given_to), plan=plan)


def test_a_plan_from_reals_is_for_its_last_axis() -> None:
    a = _array((4, 4, 4), "d")
    plan = planned("get_fft_plan", a, axes=(0, 1), value_type="R2C")
    assert planned("rfftn", a, axes=(0, 1), plan=plan).shape == (4, 3, 4)
    with pytest.raises(ValueError, match="last axis"):
        planned("rfftn", a, axes=(1, 2), plan=plan)


def test_a_plan_in_force_counts_and_may_not_be_given_as_well() -> None:
    a = _array((4, 6), "D")
    current = _device.resolve("cupy.cuda.cufft.get_current_plan")
    with planned("get_fft_plan", a, axes=1) as plan:
        assert current() is plan
        assert np.allclose(cp("fft", a), scipy.fft.fft(a))
        with pytest.raises(ValueError, match="Batch size"):
            cp("fft", a[:2])
        with pytest.raises(RuntimeError, match="either as a context manager or as an argument"):
            planned("fft", a, plan=plan)
    assert current() is None
    assert cp("fft", a[:2]).shape == (2, 6)


def test_a_plan_turns_the_choice_of_the_way() -> None:
    a = _array((4, 6), "D", "F")
    with planned("get_fft_plan", a):
        assert cp("fftn", a).flags.f_contiguous
    assert cp("fftn", a).flags.f_contiguous
    with pytest.warns(DeprecationWarning, match="always be True"):
        _config.enable_nd_planning = False
    made = cp("fftn", a)
    assert not made.flags.f_contiguous
    assert np.allclose(made, scipy.fft.fftn(a))


def test_overwriting_gives_the_array_itself() -> None:
    a = _array((4, 6), "D")
    for name in ("fft", "ifft", "fftn", "ifftn"):
        given = a.copy()
        made = planned(name, given, overwrite_x=True)
        assert made is given
        assert np.allclose(made, getattr(scipy.fft, name)(a))


@pytest.mark.parametrize("name", ["hfft", "ihfft", "hfft2", "ihfft2", "hfftn", "ihfftn"])
def test_mirrored_transforms_take_no_plan(name: str) -> None:
    a = _array((4, 6), "d" if name.startswith("i") else "D")
    assert np.allclose(planned(name, a), getattr(scipy.fft, name)(a))
    with pytest.raises(NotImplementedError, match=f"{name} plan is currently not yet supported"):
        planned(name, a, plan=planned("get_fft_plan", a))


def test_plans_are_kept_as_long_as_there_is_room() -> None:
    cache = _config.get_plan_cache()
    for length in (4, 6, 4, 8):
        cp("fft", _array((length,), "D"))
    assert cache.get_curr_size() == 3
    assert "hits / misses: 1 / 3" in repr(cache)
    cache.set_size(2)  # the one of length 6 was used longest ago
    assert [f"key: ({length}," in repr(cache) for length in (4, 6, 8)] == [True, False, True]
    _config.set_plan_cache_max_memsize(0)
    cp("fft", _array((10,), "D"))
    assert (cache.get_curr_size(), "cache enabled? False" in repr(cache)) == (0, True)
    with pytest.raises(ValueError, match="invalid input"):
        cache.set_size(-2)


def test_several_gpus_are_not_there() -> None:
    DEVICES.open(1)
    _config.use_multi_gpus = True
    with pytest.warns(FutureWarning, match="experimental"), pytest.raises(ValueError, match="at least 2"):
        _config.set_cufft_gpus(1)
    with pytest.warns(FutureWarning, match="experimental"):
        _config.set_cufft_gpus(2)
    assert _config.devices == (0, 1)
    with pytest.raises(CuFFTError, match="INVALID_DEVICE"):
        cp("fft", _array((64,), "D"))
    for shape, told in (((4,), "must be at least 64"), ((96,), "must be a power of 2")):
        with pytest.raises(ValueError, match=told):
            cp("fft", _array(shape, "D"))
    with pytest.raises(ValueError, match="only C2C and Z2Z"):
        cp("rfft", _array((64,), "d"))


def test_no_plan_reaches_beyond_its_arrays() -> None:
    a = _array((4, 6), "D")
    plan = _device.resolve("cupy.cuda.cufft.PlanNd")((4, 6), (4, 60), 1, 1, None, 1, 1, 105, 1, "C", 1, None)
    with pytest.raises(CuFFTError, match="INVALID_VALUE"):
        plan.fft(a, a, -1)
    with pytest.raises(CuFFTError, match="INVALID_SIZE"):
        cp("irfft", a[:, :1])
    with pytest.raises(CuFFTError, match="INVALID_TYPE"):
        _device.resolve("cupy.cuda.cufft.Plan1d")(4, 7, 1)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("n", [None, 4, 9])
def test_packed_transforms_of_reals(axis: int, n: int | None) -> None:
    a = _array((5, 6), "d")
    for name in ("rfft", "irfft"):
        made = _device.resolve(f"cupyx.scipy.fftpack.{name}")(a, n, axis)
        assert np.allclose(made, getattr(scipy.fftpack, name)(a, n, axis))
