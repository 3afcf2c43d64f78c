"""Arrays over several devices: whatever becomes of their chunks, they hold what NumPy's hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.asked_of_views import Names
from tests.conformance.in_process import InProcess, notebook_on_two

#: Where a device can, it reads another's memory, and CuPy says so each time.
pytestmark = pytest.mark.filterwarnings("ignore:.*Peer access has been activated")
#: Looked up when it is used: from then on there is a class below `ndarray` in this process.
da = Names("cupyx.distributed.array")
MODES = {"replica": "REPLICA", "max": "MAX", "min": "MIN", "prod": "PROD", "sum": "SUM"}


def mode_of(name: str) -> Any:
    return getattr(da, MODES[name])


HALVES = {0: [slice(4)], 1: [slice(4, None)]}
#: Which overlap, with a chunk that has gaps.
OVERLAPPING = {0: [(slice(None), slice(3)), slice(None, None, 2)], 1: [(slice(None), slice(2, None))]}


@pytest.fixture(scope="module", params=["cpu", "apart", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True)
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


@st.composite
def index_maps(draw: st.DrawFn, shape: tuple[int, ...]) -> dict[int, Any]:
    """Chunks that have all of an array between them, and some of it more than once."""
    axis = draw(st.integers(0, len(shape) - 1))
    cuts = sorted(draw(st.sets(st.integers(1, shape[axis] - 1), max_size=2))) if shape[axis] > 1 else []
    found: dict[int, list[Any]] = {}
    for start, stop in zip([0, *cuts], [*cuts, shape[axis]], strict=True):
        place = (*[slice(None)] * axis, slice(start, stop))
        for device in draw(st.sets(st.integers(0, 1), min_size=1)):
            found.setdefault(device, []).append(place)
    for _ in range(draw(st.integers(0, 2))):
        part = tuple(slice(draw(st.integers(0, length - 1)), None, draw(st.integers(1, 3))) for length in shape)
        found.setdefault(draw(st.integers(0, 1)), []).append(part)
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_they_hold_what_numpys_hold(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    modes = st.sampled_from(list(MODES)).map(mode_of)
    known = [rng.integers(-9, 9, shape) for _ in range(2)]
    ours = [da.distributed_array(one, data.draw(index_maps(shape)), data.draw(modes)) for one in known]
    before = list(zip(known, ours, strict=True))
    for _ in range(data.draw(st.integers(1, 5))):
        which, does = (
            data.draw(st.integers(0, 1)),
            data.draw(st.sampled_from("reshard mode binary unary reduce".split())),
        )
        if does == "reshard":
            ours[which] = ours[which].reshard(data.draw(index_maps(shape)))
        elif does == "mode":
            ours[which] = ours[which].change_mode(data.draw(modes))
        elif does == "binary":
            name = data.draw(st.sampled_from(["add", "maximum", "subtract"]))
            known[which], ours[which] = getattr(np, name)(*known), getattr(cp, name)(*ours)
        elif does == "unary":
            known[which], ours[which] = -known[which], -ours[which]
        elif len(shape) > 1:
            name, axis = (
                data.draw(st.sampled_from(["sum", "max", "min", "prod"])),
                data.draw(st.integers(0, len(shape) - 1)),
            )
            known = [getattr(np, name)(one, axis) for one in known]
            ours = [getattr(cp, name)(one, axis) for one in ours]
            shape = known[0].shape
        before.append((known[which], ours[which]))
    for expected, found in before:  # of those that others were made of nothing has changed
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index_map", [HALVES, OVERLAPPING], ids=["halves", "overlapping"])
@pytest.mark.parametrize("of", ["numpy", "device 0", "device 1", "list"])
def test_chunks_lie_where_they_are_wanted(of: str, index_map: dict[int, Any], mode: str) -> None:
    known = np.arange(48.0).reshape(8, 6)
    given: Any = known.tolist() if of == "list" else known
    if of.startswith("device"):
        with cp.cuda.Device(int(of[-1])):
            given = cp.asarray(known)
    made = da.distributed_array(given, index_map, mode_of(mode))
    assert isinstance(made, cp.ndarray)
    assert made.mode is mode_of(mode)
    assert list(made.devices) == [0, 1]
    for device, chunks in made.all_chunks().items():
        assert [one.device.id for one in chunks] == [device] * len(chunks)
        for chunk, index in zip(chunks, made.index_map[device], strict=True):
            assert chunk.shape == known[index].shape
            if mode_of(mode) is da.REPLICA:
                np.testing.assert_array_equal(cp.asnumpy(chunk), known[index])
    np.testing.assert_array_equal(cp.asnumpy(made), known)
    if of.startswith("device"):
        np.testing.assert_array_equal(cp.asnumpy(given), known)  # what it was made of is as it was


def test_the_words_of_one() -> None:
    made = da.distributed_array(np.arange(6.0).reshape(2, 3), {0: [0], 1: [1]})
    assert (made.shape, made.dtype, made.ndim, made.size, made.itemsize, made.nbytes) == (
        (2, 3),
        np.float64,
        2,
        6,
        8,
        48,
    )
    assert repr(made) == "array([[0., 1., 2.],\n       [3., 4., 5.]])"
    assert made.index_map == {
        0: [(slice(0, 1, 1), slice(0, 3, 1))], 1: [(slice(1, 2, 1), slice(0, 3, 1))]
    }  # fmt: skip
    assert made.reshard({0: [0], 1: [1]}) is made
    assert made.change_mode(da.REPLICA) is made
    made.note = "mine"
    assert made.note == "mine"


def test_kernels_and_numpys_ufuncs() -> None:
    known = np.arange(48, dtype="f4").reshape(8, 6)
    kernel = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "of_parts")
    for other in (HALVES, OVERLAPPING):
        x, y = da.distributed_array(known, HALVES), da.distributed_array(known * 2, other, da.SUM)
        for made, expected in (
            (kernel(x, y), known**2), (np.add(x, y), known * 3), (x + y, known * 3), (x == y, known == known * 2),
            (cp.sqrt(y), np.sqrt(known * 2)), (np.sqrt(y), np.sqrt(known * 2)),
        ):  # fmt: skip
            assert isinstance(made, da.DistributedArray)
            assert made.dtype == expected.dtype
            np.testing.assert_allclose(made.get(), expected)


def test_in_place_it_is_the_same_chunks() -> None:
    known = np.arange(48.0).reshape(8, 6)
    x, y = (da.distributed_array(known, OVERLAPPING) for _ in range(2))
    same, chunk = x, x.all_chunks()[1][0]
    x += y
    np.testing.assert_array_equal(x.get(), known * 2)
    np.testing.assert_array_equal(same.get(), known * 2)
    assert x.all_chunks()[1][0] is chunk


def test_the_dtype_of_sums() -> None:
    made = da.distributed_array(np.ones((4, 6), "i1"), OVERLAPPING, da.SUM)
    assert made.sum(axis=0).dtype == np.ones((4, 6), "i1").sum(axis=0).dtype
    assert made.sum(axis=-1, dtype="f4").dtype == np.float32
    np.testing.assert_array_equal(cp.sum(made, axis=1).get(), [6] * 4)
    assert made.sum(axis=0).mode is da.SUM
    assert made.max(axis=0).mode is da.MAX


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f4"])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_what_changes_no_maximum(mode: str, dtype: str) -> None:
    known = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    made = da.distributed_array(known, {0: [slice(None)], 1: [slice(None)]}).change_mode(mode_of(mode))
    np.testing.assert_array_equal(made.get(), known)
    np.testing.assert_array_equal(made.max(axis=0).get(), known.max(axis=0))


@pytest.mark.parametrize(
    "shapes", [((4, 6), (6, 5)), ((6,), (6, 5)), ((4, 6), (6,)), ((6,), (6,)), ((2, 4, 6), (2, 6, 5))], ids=str
)
def test_products_of_blocks(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    known = [rng.integers(-9, 9, shape) for shape in shapes]
    inner = [slice(0, 2), slice(2, 6)]
    left = {number: [(*[slice(None)] * (known[0].ndim - 1), part)] for number, part in enumerate(inner)}
    right = {number: [(*[slice(None)] * (known[1].ndim - 2), part)] for number, part in enumerate(inner)}
    a, b = (da.distributed_array(*one) for one in zip(known, (left, right), strict=True))
    for product in (a @ b, da.matmul(a, b), np.matmul(a, b), a.change_mode(da.SUM) @ b.change_mode(da.PROD)):
        assert product.mode is da.SUM
        assert product.shape == (known[0] @ known[1]).shape
        np.testing.assert_array_equal(product.get(), known[0] @ known[1])


def test_blocks_that_several_devices_have_are_shared_between_them() -> None:
    known = np.arange(16.0).reshape(4, 4)
    everywhere = da.make_2d_index_map([0, 2, 4], [0, 2, 4], [[{0, 1}] * 2] * 2)
    product = da.distributed_array(known, everywhere) @ da.distributed_array(known, everywhere)
    assert {device: len(chunks) for device, chunks in product.all_chunks().items()} == {0: 4, 1: 4}
    np.testing.assert_array_equal(product.get(), known @ known)


def test_streams_of_the_users() -> None:
    known = np.arange(1 << 16, dtype="f8")
    streams = []
    for number in range(2):
        with cp.cuda.Device(number):
            streams.append(cp.cuda.Stream(non_blocking=True))
    try:
        made = da.distributed_array(known, {0: [slice(40_000)], 1: [slice(30_000, None)]})
        for number, stream in enumerate(streams):
            with cp.cuda.Device(number):
                stream.use()
        for _ in range(3):
            made = (made + made).reshard({0: [slice(None, None, 2)], 1: [slice(1, None, 2)]}).change_mode(da.SUM)
            made = made.reshard({1: [slice(40_000)], 0: [slice(20_000, None)]})
        np.testing.assert_array_equal(made.get(), known * 8)
    finally:
        for number in range(2):
            with cp.cuda.Device(number):
                cp.cuda.Stream.null.use()
        cp.cuda.Device(0).use()


_MIXED = RuntimeError("Mixing a distributed array with a non-distributed one is not supported")
_OF_ONE = RuntimeError("A distributed array is on several devices, and this function takes arrays of one.")
_RAW = 'extern "C" __global__ void f(double* x) {}'


def _lacks(name: str) -> Exception:
    return NotImplementedError(f"DistributedArray currently does not support {name}.")


#: What is tried, and how the error begins.
REFUSED: dict[str, tuple[Callable[[Any], object], Exception]] = {
    "x * array": (lambda x: x * cp.ones((8, 6)), _MIXED),
    "array * x": (lambda x: cp.ones((8, 6)) * x, _MIXED),
    "x * 2": (lambda x: x * 2, _MIXED),
    "cos of dtype": (lambda x: cp.cos(x, dtype="f4"), _MIXED),
    "x += 1": (lambda x: x.__iadd__(1), _MIXED),
    "fft": (lambda x: cp.fft.fft(x), _OF_ONE),
    "asarray": (lambda x: cp.asarray(x), _OF_ONE),
    "concatenate": (lambda x: cp.concatenate([x, x]), _OF_ONE),
    "float": (lambda x: float(x), _OF_ONE),
    "add.reduce": (lambda x: cp.add.reduce(x), _OF_ONE),
    "store": (lambda x: cp.ones((8, 6)).__setitem__(slice(None), x), _OF_ONE),
    "RawKernel": (lambda x: cp.RawKernel(_RAW, "f")((1,), (1,), (x,)), _OF_ONE),
    "ReductionKernel": (lambda x: cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "f")(x), _OF_ONE),
    "argmax": (lambda x: cp.argmax(x, axis=0), _lacks("argmax")),
    "x[0]": (lambda x: x[0], _lacks("__getitem__")),
    "flags": (lambda x: x.flags, _lacks("flags")),
    "sum of all": (lambda x: x.sum(), RuntimeError("axis must be specified")),
    "out": (lambda x: x.max(axis=0, out=x), RuntimeError("Argument `out` is not supported")),
    "keepdims": (lambda x: x.min(axis=0, keepdims=True), RuntimeError("Argument `keepdims` is not supported")),
    "axis": (lambda x: x.sum(axis=2), np.exceptions.AxisError("axis 2 is out of bounds for array of dimension 2")),
    "order": (lambda x: x.get(order="F"), RuntimeError("Argument `order` not supported")),
    "matmul out": (lambda x: da.matmul(x, x, out=x), RuntimeError("Argument `out` is not supported")),
    "matmul mixed": (lambda x: da.matmul(x, cp.ones((6, 8))), RuntimeError("Mixing a distributed array with")),
    "matmul shapes": (lambda x: x @ x, ValueError("Shapes are incompatible")),
    "shapes": (
        lambda x: x * da.distributed_array(np.ones((1, 6)), {0: [slice(None)]}),
        ValueError("Distributed arrays are not broadcast, and these have different shapes: (8, 6), (1, 6)"),
    ),
    "dimensions": (
        lambda x: da.distributed_array(np.ones(6), {0: [slice(None)]}) + x,
        ValueError("Distributed arrays are not broadcast, and these have different shapes: (6,), (8, 6)"),
    ),
    "several results": (lambda x: cp.modf(x), RuntimeError("Kernels returning other than single array are not")),
    "three and other chunks": (
        lambda x: cp.ElementwiseKernel("T x, T y, T z", "T w", "w = x + y + z", "three")(
            x, x, x.reshard({0: [slice(None)]})
        ),
        RuntimeError("Element-wise operation over more than two distributed arrays"),
    ),
    "no device has both": (
        lambda x: x @ da.distributed_array(np.ones((6, 8)), {1: [slice(None)]}),
        RuntimeError("There is no device that can perform multiplication"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    known = np.arange(48.0).reshape(8, 6)
    made = da.distributed_array(known, HALVES)
    does, expected = REFUSED[what]
    with pytest.raises(type(expected)) as raised:
        does(made)
    assert str(raised.value).startswith(str(expected))
    np.testing.assert_array_equal(made.get(), known)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidDevice"):
        da.distributed_array(np.ones(4), {2: [slice(None)]})


def test_arrays_that_are_no_distributed_ones_are_as_before() -> None:
    class Mine(cp.ndarray):  # type: ignore[misc, name-defined]
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine = cp.arange(3).view(Mine)
        assert type(mine + 1) is Mine
        assert (mine + cp.arange(3)).tolist() == [0, 2, 4]
