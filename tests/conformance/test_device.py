"""What every device owes an executor: the seam of `devices.base`, and CuPy's own behaviour where NumPy's differs."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import ArrayLayout, Device

MEGABYTE = 1 << 20


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Device:
    os.environ.setdefault("CUPY_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
    return open_device(request.param)


class Calls:
    """Calls functions of the device by their public names, with host arrays uploaded and results downloaded."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __call__(self, qualname: str, *args: Any, **kwargs: Any) -> Any:
        """Return the result as it is on the device."""
        made = [self.device.upload(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return self.device.resolve(qualname)(*made, **kwargs)

    def host(self, qualname: str, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        """Return the result as a host array."""
        return self.device.download(self(qualname, *args, **kwargs))


@pytest.fixture
def call(device: Device) -> Calls:
    return Calls(device)


# --- arrays and memory ------------------------------------------------------------------------------------------------


def test_it_says_what_it_is(device: Device) -> None:
    info = device.info
    assert info.kind in ("cpu", "cuda")
    assert info.name
    assert info.library.split()[0] in ("NumPy", "CuPy")
    assert info.total_bytes > 1 << 30
    assert bool(info.compute_capability) == (info.kind == "cuda")


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4), (2, 3, 4)])
def test_what_goes_up_comes_down(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    host = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    array = device.upload(host)
    assert device.is_array(array)
    assert not device.is_array(host.tolist())
    back = device.download(array)
    assert back.flags.c_contiguous
    assert (back.shape, back.dtype) == (shape, host.dtype)
    np.testing.assert_array_equal(back, host)


def test_uploads_keep_their_order_and_share_no_memory(device: Device) -> None:
    host = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    array = device.upload(host)
    host[...] = -1
    assert device.layout(array) == ArrayLayout((2, 3), (8, 16), np.dtype("f8"))
    assert device.download(array).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("shape", "axes", "order"),
    [((2, 3), (0, 1), "C"), ((2, 3), (1, 0), "F"), ((2, 3, 4), (1, 0, 2), "1,0,2"), ((5,), (0,), ""),
     ((2, 0), (0, 1), "")],
)  # fmt: skip
def test_the_word_for_how_an_array_lies(
    device: Device, shape: tuple[int, ...], axes: tuple[int, ...], order: str
) -> None:
    assert device.memory_order(device.upload(np.zeros(shape)).transpose(axes)) == order


def test_an_array_with_gaps_has_no_order_but_its_strides(device: Device) -> None:
    root = device.upload(np.zeros((4, 4)))
    assert device.memory_order(device.view(root, 0, (2, 1, 2), (64, 8, 16), np.dtype("f8"))) == "?64,16"
    assert device.memory_order(device.view(root, 24, (2, 2), (0, -8), np.dtype("f8"))) == "?0,-8"


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "dtype", "expected"),
    [
        (0, (2, 2), (24, 8), "i8", [[0, 1], [3, 4]]),
        (40, (6,), (-8,), "i8", [5, 4, 3, 2, 1, 0]),
        (8, (3,), (0,), "i8", [1, 1, 1]),
        (0, (2,), (4,), "i4", [0, 0]),
        (48, (0,), (8,), "i8", []),
        (16, (), (), "i8", 2),
    ],
)
def test_views_show_their_roots_memory(
    device: Device, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, expected: Any
) -> None:
    root = device.upload(np.arange(6).reshape(2, 3))
    view = device.view(root, offset, shape, strides, np.dtype(dtype))
    assert device.layout(view).shape == shape
    assert device.download(view).tolist() == expected
    if shape and 0 not in shape:
        assert device.shares_base(view, root) == offset


@pytest.mark.parametrize(
    ("offset", "shape", "strides"), [(8, (6,), (8,)), (0, (2,), (48,)), (0, (2,), (-8,)), (-8, (1,), (8,))]
)
def test_no_view_reaches_beyond_its_root(
    device: Device, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    root = device.upload(np.arange(6.0))
    with pytest.raises(ValueError, match="reaches beyond"):
        device.view(root, offset, shape, strides, np.dtype("f8"))


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (2,), ((1 << 63) - 1,)),
        (8, (2,), ((1 << 63) - 8,)),
        (0, (2, 2), ((1 << 63) - 1, 1)),
        (0, (2,), (-(1 << 63),)),
        (0, (1 << 62, 4), (0, 0)),
        (0, (0, 1 << 62, 1 << 62), (0, 0, 0)),
        (1 << 63, (1,), (8,)),
        (0, (-1,), (8,)),
        (0, (1, 1), (8,)),
    ],
)
def test_no_view_overflows(device: Device, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    root = device.upload(np.arange(6.0))
    with pytest.raises(ValueError, match=r"reaches beyond|overflows|negative|extents"):
        device.view(root, offset, shape, strides, np.dtype("f8"))


@pytest.mark.parametrize("dtype", ["O", "V0", ("f8", (2,))], ids=str)
def test_no_view_has_elements_that_no_array_has(device: Device, dtype: Any) -> None:
    with pytest.raises(ValueError, match="no array can have elements"):
        device.view(device.upload(np.arange(6.0)), 0, (1,), (8,), np.dtype(dtype))


def test_no_write_leaves_the_memory_of_its_array(device: Device, call: Calls) -> None:
    root = device.upload(np.arange(6.0))
    turned = device.view(root, 40, (6,), (-8,), np.dtype("f8"))
    with pytest.raises(ValueError, match="do not fit"):
        device.write(turned, 0, memoryview(bytes(48)))
    with pytest.raises(ValueError, match="do not fit"):
        device.write(call("cupy.broadcast_to", np.arange(1.0), (6,)), 0, memoryview(bytes(48)))
    assert device.download(root).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_write_through_a_view_is_seen_in_its_root(device: Device) -> None:
    root = device.upload(np.arange(6.0))
    device.write(root, 16, memoryview(np.array([7.0, 8.0]).tobytes()))
    device.resolve("cupy.ndarray.fill")(device.view(root, 0, (2,), (8,), np.dtype("f8")), -1)
    assert device.download(root).tolist() == [-1, -1, 7, 8, 4, 5]
    with pytest.raises(ValueError, match="do not fit"):
        device.write(root, 40, memoryview(bytes(16)))


@pytest.mark.parametrize("how", ["view", "slice", "reshape", "transposed"])
def test_memory_that_a_window_lies_in_is_told(device: Device, call: Calls, how: str) -> None:
    """So nobody computes into the memory of an array that was dropped while a window on it is in use."""
    array = call("cupy.ones", (2, 4))
    assert device.owns_memory(array)
    windows = {
        "view": lambda: device.view(array, 8, (3,), (8,), np.dtype("f8")),
        "slice": lambda: array[1:],
        "reshape": lambda: array.reshape(8),
        "transposed": lambda: array.T,
    }
    window = windows[how]()
    assert device.shares_base(window, array) is not None
    assert how == "view" or not device.owns_memory(window)
    assert device.owns_memory(array)
    assert device.shares_base(call("cupy.ones", (2, 4)), array) is None


def test_copies_share_nothing(device: Device) -> None:
    root = device.upload(np.arange(6.0))
    assert device.shares_base(device.resolve("cupy.ndarray.copy")(root), root) is None
    assert device.shares_base(device.resolve("cupy.ndarray.reshape")(root, (2, 3)), root) == 0


@pytest.fixture
def limited(device: Device) -> Iterator[Device]:
    gc.collect()  # what other tests left in cycles would be freed, and counted, in the middle of one
    device.free_unused()
    device.set_memory_limit(device.memory().used_bytes + 64 * MEGABYTE)
    yield device
    device.set_memory_limit(0)
    device.free_unused()


def test_memory_is_limited_and_counted(limited: Device, call: Calls) -> None:
    before = limited.memory().used_bytes
    held = call("cupy.zeros", 4 * MEGABYTE, "f8")
    assert limited.memory().used_bytes - before == 32 * MEGABYTE
    with pytest.raises(MemoryError) as refused:
        call("cupy.zeros", 5 * MEGABYTE, "f8")
    assert limited.error_name(refused.value) == "cupy.cuda.memory.OutOfMemoryError"
    assert not limited.is_fatal(refused.value)
    assert "41,943,040 bytes" in str(refused.value)
    del held, refused
    assert limited.memory().used_bytes == before
    assert call("cupy.zeros", 5 * MEGABYTE, "f8").size == 5 * MEGABYTE


def test_a_marker_is_passed_when_all_is_done(device: Device, call: Calls) -> None:
    start, result = device.marker(), call("cupy.ones", (1000, 1000))
    for _ in range(20):
        result = call("cupy.matmul", result, result)
    end = device.marker()
    device.synchronize()
    assert end.is_done()
    assert 0 < end.seconds_since(start) < 60


def test_work_goes_to_a_stream(device: Device, call: Calls) -> None:
    stream = device.resolve("cupy.cuda.Stream")(non_blocking=True)
    with device.on_stream(stream):
        total = call("cupy.sum", call("cupy.arange", 1000))
        assert int(device.download(total)) == 499500


# --- names and errors -------------------------------------------------------------------------------------------------


def test_a_name_that_is_not_there_is_named(device: Device) -> None:
    with pytest.raises(AttributeError, match="nowhere_to_be_found"):
        device.resolve("cupy.nowhere_to_be_found")


VECTOR, MATRIX = np.arange(3.0), np.arange(6.0).reshape(2, 3)
REFUSED: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("cupy.add", (VECTOR, np.arange(4.0)), "ValueError", "operands could not be broadcast together"),
    ("cupy.matmul", (MATRIX, MATRIX), "ValueError", "Axis dimension mismatch"),
    ("cupy.ndarray.reshape", (MATRIX, 7), "ValueError", "cannot reshape array of size 6 into shape (7,)"),
    ("cupy.concatenate", ([],), "ValueError", "Cannot concatenate from empty tuple"),
    ("cupy.sum", (MATRIX, 5), "AxisError", "axis 5 is out of bounds for array of dimension 2"),
    ("cupy.max", (np.zeros(0),), "ValueError", "zero-size array to reduction operation"),
    ("cupy.ndarray.__getitem__", (VECTOR, 3), "IndexError", "Index 3 is out of bounds for axis 0 with size 3"),
    ("cupy.ndarray.__getitem__", (VECTOR, (0, 0)), "IndexError", "too many indices"),
    ("cupy.linalg.inv", (MATRIX,), "LinAlgError", "Last 2 dimensions of the array must be square"),
    ("cupy.invert", (VECTOR,), "TypeError", "Wrong type"),
    ("cupy.zeros", ((-1,),), "ValueError", "Negative dimensions are not allowed"),
    ("cupy.array", (["a"],), "ValueError", "Unsupported dtype"),
]


@pytest.mark.parametrize(
    ("qualname", "args", "kind", "words"), REFUSED, ids=[f"{r[0]}-{n}" for n, r in enumerate(REFUSED)]
)
def test_errors_are_cupys(call: Calls, qualname: str, args: tuple[Any, ...], kind: str, words: str) -> None:
    with pytest.raises(Exception, match=re.escape(words)) as refused:
        call(qualname, *args)
    assert call.device.error_name(refused.value).rpartition(".")[2] == kind
    assert not call.device.is_fatal(refused.value)


# --- where CuPy is not NumPy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qualname", "args"),
    [
        ("cupy.sum", (MATRIX,)),
        ("cupy.ndarray.max", (MATRIX,)),
        ("cupy.dot", (VECTOR, VECTOR)),
        ("cupy.linalg.norm", (VECTOR,)),
        ("cupy.ndarray.__getitem__", (VECTOR, 1)),
        ("cupy.sin", (np.float64(1.0),)),
        ("cupy.median", (MATRIX,)),
        ("cupy.argmax", (MATRIX,)),
        ("cupy.all", (MATRIX,)),
    ],
)
def test_zero_dimensional_results_are_arrays(call: Calls, qualname: str, args: tuple[Any, ...]) -> None:
    result = call(qualname, *args)
    assert call.device.is_array(result)
    assert call.device.layout(result).shape == ()


BEHAVIOUR: list[tuple[str, tuple[Any, ...], dict[str, Any], Any, str]] = [
    ("cupy.floor_divide", (np.array([7, -7, 0]), np.array([0, 0, 0])), {}, [0, 0, 0], "int64"),
    ("cupy.remainder", (np.array([7, -7]), np.array([0, 3])), {}, [0, 2], "int64"),
    ("cupy.take", (np.arange(5), np.array([7, -6])), {}, [2, 4], "int64"),
    ("cupy.add", (np.array([250], "u1"), 5), {}, [255], "uint8"),
    ("cupy.add", (np.array([250], "u1"), np.int64(5)), {}, [255], "int64"),
    ("cupy.add", (np.array([1], "f4"), 1.5), {}, [2.5], "float32"),
    ("cupy.add", (np.array([1], "f4"), np.float64(1.5)), {}, [2.5], "float64"),
    ("cupy.sum", (np.array([200, 100], "u1"),), {}, 300, "uint64"),
    ("cupy.true_divide", (np.array([1, 0], "i4"), np.array([0, 1], "i4")), {}, [np.inf, 0.0], "float64"),
    ("cupy.unique", (np.array([3, 1, 3]),), {}, [1, 3], "int64"),
    ("cupy.arange", (3,), {"dtype": "f2"}, [0, 1, 2], "float16"),
    ("cupy.cumsum", (np.array([1, 2, 3], "i1"),), {}, [1, 3, 6], "int64"),
    ("cupy.linalg.solve", (np.array([[2.0, 0], [0, 4]]), np.array([2.0, 4])), {}, [1, 1], "float64"),
    ("cupy.fft.fft", (np.array([1, 0, 0, 0], "f4"),), {}, [1, 1, 1, 1], "complex64"),
    ("cupyx.scipy.ndimage.gaussian_filter", (np.ones((3, 3)), 1.0), {}, np.ones((3, 3)).tolist(), "float64"),
    ("cupyx.scipy.special.erf", (np.array([0.0]),), {}, [0.0], "float64"),
]


@pytest.mark.parametrize(
    ("qualname", "args", "kwargs", "expected", "dtype"), BEHAVIOUR, ids=[f"{b[0]}-{n}" for n, b in enumerate(BEHAVIOUR)]
)
def test_results_are_cupys(
    call: Calls, qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any, dtype: str
) -> None:
    result = call.host(qualname, *args, **kwargs)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12)


def test_a_mask_that_selects_nothing_takes_any_value(call: Calls) -> None:
    store, vector, matrix = (
        call.device.resolve("cupy.ndarray.__setitem__"),
        call("cupy.array", VECTOR),
        call("cupy.array", MATRIX),
    )
    nothing, column = call("cupy.zeros", 3, "?"), call("cupy.ones", 2, "?")
    for array, index in ((vector, nothing), (matrix, (slice(None), nothing)), (matrix, (column, slice(0, 0)))):
        for value in (call("cupy.arange", 5.0), [1, 2], "not looked at"):
            store(array, index, value)
    with pytest.raises(ValueError, match=r"broadcast|shape|size"):
        store(vector, call("cupy.asarray", [True, False, False]), call("cupy.arange", 5.0))
    np.testing.assert_array_equal(call.device.download(vector), VECTOR)
    np.testing.assert_array_equal(call.device.download(matrix), MATRIX)


def test_a_seed_gives_the_same_numbers_again(call: Calls) -> None:
    call("cupy.random.seed", 7)
    first = call.host("cupy.random.random", 5)
    call("cupy.random.seed", 7)
    np.testing.assert_array_equal(call.host("cupy.random.random", 5), first)
    assert len(set(first.tolist())) == 5


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_an_elementwise_kernel(call: Calls) -> None:
    kernel = call.device.resolve("cupy.ElementwiseKernel")(
        "T x, float64 y", "T z", "z = x * y + i", "scaled_and_counted"
    )
    result = kernel(call.device.upload(np.arange(4, dtype="f4")), 2.0)
    assert call.device.layout(result).dtype == np.float32
    assert call.device.download(result).tolist() == [0, 3, 6, 9]


def test_a_reduction_kernel(call: Calls) -> None:
    kernel = call.device.resolve("cupy.ReductionKernel")("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    assert call.device.download(kernel(call.device.upload(MATRIX), axis=1)).tolist() == pytest.approx([5**0.5, 50**0.5])


RAW = r"""
extern "C" __global__ void reversed_in_blocks(const float* x, float* y, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = tile[blockDim.x - 1 - threadIdx.x];
}
"""


def test_a_raw_kernel_with_shared_memory(call: Calls) -> None:
    kernel = call.device.resolve("cupy.RawKernel")(RAW, "reversed_in_blocks")
    x, y = call.device.upload(np.arange(128, dtype="f4")), call("cupy.zeros", 128, "f4")
    kernel((2,), (64,), (x, y, np.int32(128)))
    blocks = np.arange(128, dtype="f4").reshape(2, 64)
    np.testing.assert_array_equal(call.device.download(y), blocks[:, ::-1].ravel())


def test_a_kernel_that_does_not_compile_says_why(call: Calls) -> None:
    kernel = call.device.resolve("cupy.RawKernel")('extern "C" __global__ void broken() { undeclared = 1; }', "broken")
    with pytest.raises(Exception, match="undeclared") as refused:
        kernel((1,), (1,), ())
    assert call.device.error_name(refused.value).endswith("CompileException")
    assert not call.device.is_fatal(refused.value)
