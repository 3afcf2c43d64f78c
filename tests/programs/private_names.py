"""Names that libraries take from CuPy's private modules, mostly at their import."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib

import cupy
import cupy._core.internal
import cupy_backends
import cupy_backends.cuda.libs.cublas as cublas
import cupyx.scipy.sparse
import numpy as np
from cupy import _core
from cupy._core import internal
from cupy._core._kernel import ElementwiseKernel
from cupy._util import PerformanceWarning
from cupy_backends.cuda.api import driver, runtime
from cupy_backends.cuda.api.runtime import CUDARuntimeError
from cupy_backends.cuda.libs import nvrtc
from expecting import refused

assert _core.ElementwiseKernel is ElementwiseKernel is cupy.ElementwiseKernel
assert cupy._core.core.ndarray is _core.ndarray is cupy.ndarray
assert isinstance(cupy.zeros(2), cupy._core.core.ndarray)
assert issubclass(PerformanceWarning, RuntimeWarning)
assert 12_000 <= cupy.cuda.runtime._getLocalRuntimeVersion() < 20_000
assert runtime is cupy.cuda.runtime
assert driver is cupy_backends.cuda.api.driver is cupy.cuda.driver
assert (cublas, nvrtc) == (cupy.cuda.cublas, cupy.cuda.nvrtc)
assert nvrtc.getVersion() >= (12, 0)
refused(CUDARuntimeError, lambda: cupy.cuda.Device(99).use(), "invalid device ordinal")
refused(AttributeError, lambda: cupy_backends.nothing, "no attribute 'nothing'")
refused(AttributeError, lambda: cupy._nothing, "no attribute '_nothing'")
refused(AttributeError, lambda: _core.nothing, "no attribute 'nothing'")

kept = cupy.arange(4096.0)
assert cupy._default_memory_pool.used_bytes() == cupy.get_default_memory_pool().used_bytes() >= kept.nbytes
cupy._default_memory_pool.free_all_blocks()
cupy._default_pinned_memory_pool.free_all_blocks()
assert cupy._default_pinned_memory_pool is cupy.get_default_pinned_memory_pool()

calls = []


@cupy._util.memoize(for_each_device=True)
def doubled(n: int) -> int:
    """Return twice ``n``, and note the call."""
    calls.append(n)
    return 2 * n


assert (doubled(3), doubled(3), calls) == (6, 6, [3])
cupy._util.clear_memo()
assert (doubled(3), calls) == (6, [3, 3])

assert internal._normalize_axis_index(-1, 3) == 2
assert internal._normalize_axis_indices(None, 2) == (0, 1)
assert internal._normalize_axis_indices((2, -3), 3) == (0, 2)
assert internal._normalize_axis_indices((2, 0), 3, sort_axes=False) == (2, 0)
refused(np.exceptions.AxisError, lambda: internal._normalize_axis_index(3, 2), "axis 3 is out of bounds")
refused(ValueError, lambda: internal._normalize_axis_indices((0, 0), 3), "duplicate value")
assert (internal.prod((2, 3)), internal.get_size(3), internal.get_size((3, 4))) == (6, (3,), (3, 4))
refused(TypeError, lambda: internal.get_size(None), "Use () not None")

assert cupy._core._scalar.get_typename(np.float32) == "float"
assert cupy._core._scalar.get_typename("D") == "thrust::complex<double>"
refused(ValueError, lambda: cupy._core._scalar.get_typename("V4"), "Unsupported dtype")
target = cupy.zeros((2, 3), dtype=np.int32)
_core.elementwise_copy(cupy.array([1.7, 2, 3]), target)
assert target.get().tolist() == [[1, 2, 3], [1, 2, 3]]

# --- accelerators, as programs that measure set and look for them -----------------------------------------------------

assert _core.get_routine_accelerators() == [_core._accelerator.ACCELERATOR_CUB]
before = _core.get_reduction_accelerators()
_core.set_reduction_accelerators(["cub", "cutensor"])
assert _core._accelerator.get_reduction_accelerators() == [1, 2] != before
_core.set_reduction_accelerators(before)
refused(ValueError, lambda: _core.set_routine_accelerators(["none"]), "Unknown accelerator: none")

ways = _core._routines_linalg
assert _core.get_compute_type(np.float32) == ways.COMPUTE_TYPE_DEFAULT
_core.set_compute_type(np.float32, ways.COMPUTE_TYPE_PEDANTIC)
assert ways.get_compute_type("F") == ways.COMPUTE_TYPE_PEDANTIC
assert ways.get_compute_type(float) == ways.COMPUTE_TYPE_DEFAULT
single = cupy.ones((8, 8), dtype=np.float32)
assert float((single @ single).sum()) == 512
_core.set_compute_type(np.float32, ways.COMPUTE_TYPE_DEFAULT)
refused(ValueError, lambda: _core.set_compute_type(np.float32, 8), "Unknown compute type: 8")
refused(TypeError, lambda: _core.get_compute_type(np.dtype(int)), "dtype is not supported: int64")

numbers = cupy.arange(3, dtype=np.float32)
for type_name, headers in (("float", False), ("complex<float>", True)):
    code = f'extern "C" __global__ void twice({type_name}* x) {{ x[threadIdx.x] *= 2; }}'
    module = _core.core.compile_with_cache(code, prepend_cupy_headers=headers)
    numbers = numbers.astype(np.complex64 if headers else np.float32)
    module.get_function("twice")((1,), (3,), (numbers,))
assert numbers.get().tolist() == [0, 4, 8]

# --- seeds of each piece of a computation, as dask spawns them --------------------------------------------------------

bits = cupy.random.XORWOW(5)
pieces = [type(bits)(seeds) for seeds in bits._seed_seq.spawn(2)]
drawn = [cupy.random.default_rng(piece).random(4).get() for piece in pieces]
assert drawn[0].tolist() != drawn[1].tolist()
again = cupy.random.XORWOW(np.random.SeedSequence(5, spawn_key=(1,)))
assert cupy.random.default_rng(again).random(4).get().tolist() == drawn[1].tolist()
assert cupy.random.default_rng(9).bit_generator._seed_seq.entropy == 9

# --- parts of arrays and matrices that are no documented ones ---------------------------------------------------------

table = cupy.arange(12.0).reshape(3, 4)
assert (table._c_contiguous, table._f_contiguous, table.T._f_contiguous) == (True, False, True)
window = table.view()
window._set_shape_and_strides((3, 2), (32, 24), True, True)
assert window.get().tolist() == [[0, 3], [4, 7], [8, 11]]
assert type(table.flags) is cupy._core.flags.Flags
assert cupy.linalg._util._tril(cupy.ones((2, 2))).get().tolist() == [[1, 0], [1, 1]]
matrix = cupyx.scipy.sparse.csr_matrix(cupy.eye(3))
assert isinstance(matrix, cupyx.scipy.sparse._csr.csr_matrix)
assert matrix._swap(1, 2) == (1, 2) == matrix.tocsc()._swap(2, 1)
major, minor, rows, columns = matrix._prepare_indices([0, -1], 2)
assert (major.get().tolist(), minor.get().tolist(), rows, columns) == ([0, -1], [2], 3, 3)
matrix._insert_many(cupy.array([2]), cupy.array([0]), cupy.array([5.0]))
assert (float(matrix[2, 0]), matrix.nnz) == (5, 4)

# --- where it is said to lie, as programs look for headers and for what is installed ---------------------------------

for module in (cupy, cupy.linalg, cupyx, cupyx.scipy.sparse):
    assert pathlib.Path(module.__file__).is_file()
    assert pathlib.Path(module.__path__[0]) == pathlib.Path(module.__file__).parent
    assert module.__spec__.origin == module.__file__
    assert importlib.util.find_spec(module.__name__) is not None
assert importlib.util.find_spec("cupy.nothing") is None
refused(ModuleNotFoundError, lambda: importlib.import_module("cupy.finder"), "No module named 'cupy.finder'")

# --- versions, which programs ask before they choose ------------------------------------------------------------------

assert cupy.cuda.driver.get_build_version() // 1000 == cupy.cuda.nvrtc.getVersion()[0] >= 12
