"""Names that the client implements itself, and where: they act on the notebook's own memory, disk or threads."""

from __future__ import annotations

from kernelproxy.namespace import testing_names

_CREATION = "kernelproxy.namespace.creation"
_HOST = "kernelproxy.namespace.host_functions"
_FILES = "kernelproxy.namespace.files"
_INDEX = "kernelproxy.namespace.index_tricks"
_CUDA = "kernelproxy.namespace.cuda"
_KERNELS = "kernelproxy.namespace.kernels"
_DISTRIBUTED = "kernelproxy.namespace.distributed"

#: Public name to "module:attribute".
OWN: dict[str, str] = {
    "builtins.function": "kernelproxy.namespace.remote_routine:RemoteRoutine",  # as the executor tells of one
    "cupy.ndarray": "kernelproxy.array.remote_array:ndarray",
    "cupy.ufunc": "kernelproxy.calls.ufunc:ufunc",
    "cupy.flatiter": "kernelproxy.array.flat_iterator:flatiter",
    "cupy.poly1d": "kernelproxy.namespace.polynomial:poly1d",
    **{
        f"cupy.{name}": f"{_CREATION}:{name}"
        for name in (
            "array",
            "asarray",
            "asanyarray",
            "ascontiguousarray",
            "asfortranarray",
            "fromDlpack",
            "from_dlpack",
            "require",
            "frombuffer",
            "fromfunction",
            "fromiter",
        )
    },
    **{
        f"cupy.{name}": f"{_FILES}:{name}"
        for name in (
            "load",
            "save",
            "savez",
            "savez_compressed",
            "loadtxt",
            "savetxt",
            "genfromtxt",
            "fromfile",
            "fromstring",
        )
    },
    **{
        f"cupy.{name}": f"{_INDEX}:{name}" for name in ("diag_indices", "r_", "c_", "mgrid", "ogrid", "s_", "index_exp")
    },
    **{
        f"cupy.{name}": f"{_HOST}:{name}"
        for name in (
            "array2string",
            "array_repr",
            "array_str",
            "asnumpy",
            "base_repr",
            "binary_repr",
            "broadcast_shapes",
            "can_cast",
            "common_type",
            "format_float_positional",
            "format_float_scientific",
            "get_array_module",
            "get_printoptions",
            "isdtype",
            "iscomplexobj",
            "isfortran",
            "isrealobj",
            "isscalar",
            "issubdtype",
            "iterable",
            "may_share_memory",
            "min_scalar_type",
            "mintypecode",
            "ndim",
            "promote_types",
            "printoptions",
            "result_type",
            "set_printoptions",
            "shape",
            "shares_memory",
            "size",
            "typename",
            "clear_memo",
            "memoize",
            "is_available",
            "copyto",
            "show_config",
            "real",
            "imag",
            "split",
            "array_split",
            "vsplit",
            "hsplit",
            "dsplit",
        )
    },
    **{
        f"cupy.{name}": f"{_KERNELS}:{name}"
        for name in ("ElementwiseKernel", "ReductionKernel", "RawKernel", "RawModule")
    },
    **{
        f"cupy.cuda.{name}": f"{_CUDA}:{name}"
        for name in (
            "Stream",
            "ExternalStream",
            "Event",
            "Device",
            "get_current_stream",
            "get_elapsed_time",
            "get_device_id",
            "is_available",
        )
    },
    **{
        f"cupy.random.{name}": f"kernelproxy.namespace.random_states:{name}"
        for name in ("get_random_state", "set_random_state", "reset_states")
    },
    **{
        f"cupy.random.{name}": f"kernelproxy.namespace.bit_generators:{name}"
        for name in ("BitGenerator", "Generator", "MRG32k3a", "Philox4x3210", "XORWOW", "default_rng")
    },
    "cupy.cublas.set_batched_gesv_limit": "kernelproxy.namespace.computing_settings:set_batched_gesv_limit",
    "cupy.fuse": "kernelproxy.namespace.fusion:fuse",
    "cupy.vectorize": "kernelproxy.namespace.python_kernels:vectorize",
    **{
        f"cupy.{name}": f"kernelproxy.namespace.dtype_functions:{name}"
        for name in (
            *("disp", "find_common_type", "get_array_wrap", "safe_eval", "set_string_function"),
            *("issctype", "issubclass_", "issubsctype", "obj2sctype", "sctype2char"),
            *("make_aligned_dtype", "who"),
        )
    },
    **{
        f"cupy.{name}": f"kernelproxy.namespace.older_names:{name}"
        for name in ("apply_over_axes", "cumproduct", "msort", "product", "round_", "row_stack")
    },
    "cupy.fft.config": "kernelproxy.namespace.fft_config:config",
    "cupy.fft._cache.PlanCache": "kernelproxy.namespace.fft_config:PlanCache",
    "cupy.fft._callback.set_cufft_callbacks": "kernelproxy.namespace.fft_config:CufftCallbacks",
    **{
        f"cupy.cuda.cufft.{name}": f"kernelproxy.namespace.transforms:{name}"
        for name in ("Plan1d", "PlanNd", "XtPlanNd", "get_current_plan")
    },
    **testing_names.NAMES,
    "cupy.cuda.compiler.CompileException": "kernelproxy.namespace.compile_error:CompileException",
    "cupyx.jit.rawkernel": "kernelproxy.namespace.python_kernels:rawkernel",
    "cupyx.scipy.sparse.linalg.LinearOperator": "kernelproxy.namespace.linear_operator:LinearOperator",
    **{
        f"cupy.cuda.{name}": f"kernelproxy.namespace.memory:{name}"
        for name in (
            "MemoryAsyncPool",
            "MemoryPointer",
            "MemoryPool",
            "get_allocator",
            "set_allocator",
            "using_allocator",
            "malloc_managed",
            "ManagedMemory",
            "PythonFunctionAllocator",
            "CFunctionAllocator",
        )
    },
    "cupy.get_default_memory_pool": "kernelproxy.namespace.memory:get_default_memory_pool",
    "cupy.cuda.MemoryHook": "kernelproxy.namespace.memory:MemoryHook",
    "cupy.cuda.memory_hooks.DebugPrintHook": "kernelproxy.namespace.memory:DebugPrintHook",
    "cupy.cuda.memory_hooks.LineProfileHook": "kernelproxy.namespace.memory:LineProfileHook",
    "cupy.cuda.memory.malloc_system": "kernelproxy.namespace.memory:malloc_system",
    "cupy.cuda.memory.SystemMemory": "kernelproxy.namespace.memory:SystemMemory",
    "cupy.cuda.runtime.memGetInfo": "kernelproxy.namespace.memory:memGetInfo",
    **{f"cupy.cuda.runtime.{name}": f"{_CUDA}:{name}" for name in ("getDevice", "setDevice")},
    **{
        f"cupy.cuda.runtime.{name}": f"kernelproxy.namespace.runtime_copies:{name}"
        for name in ("memcpy", "memcpyAsync")
    },
    **{
        f"cupy.cuda.{name}": f"kernelproxy.namespace.pinned_memory:{name}"
        for name in (
            "PinnedMemory",
            "PinnedMemoryPointer",
            "PinnedMemoryPool",
            "alloc_pinned_memory",
            "set_pinned_memory_allocator",
        )
    },
    "cupy.cuda.pinned_memory.PooledPinnedMemory": "kernelproxy.namespace.pinned_memory:PooledPinnedMemory",
    "cupy.get_default_pinned_memory_pool": ("kernelproxy.namespace.pinned_memory:get_default_pinned_memory_pool"),
    "cupy.typing.NDArray": "kernelproxy.namespace.typing_names:NDArray",
    "cupyx.allow_synchronize": "kernelproxy.calls.sync_detection:allow_synchronize",
    "cupyx.distributed.array.DistributedArray": f"{_DISTRIBUTED}.distributed_array:DistributedArray",
    "cupyx.distributed.array.distributed_array": f"{_DISTRIBUTED}.distributed_array:distributed_array",
    "cupyx.distributed.array.matmul": f"{_DISTRIBUTED}.distributed_array:matmul",
    "cupyx.distributed.array.make_2d_index_map": f"{_DISTRIBUTED}.products:make_2d_index_map",
    **{
        f"cupyx.distributed.{name}": f"kernelproxy.namespace.process_group.backend:{name}"
        for name in ("NCCLBackend", "init_process_group")
    },
    **{f"cupyx.distributed.array.{name}": f"{_DISTRIBUTED}.modes:{name}" for name in ("MAX", "MIN", "PROD", "SUM")},
    "cupyx.errstate": f"{_HOST}:errstate",
    "cupyx.geterr": f"{_HOST}:geterr",
    "cupyx.seterr": f"{_HOST}:seterr",
    **{
        f"cupyx.{name}": f"kernelproxy.namespace.pinned_memory:{name}"
        for name in ("empty_pinned", "empty_like_pinned", "zeros_pinned", "zeros_like_pinned")
    },
    "cupyx.profiler.benchmark": "kernelproxy.namespace.profiler:benchmark",
    "cupyx.time.repeat": "kernelproxy.namespace.profiler:repeat",
    "cupyx.profiler.time_range": "kernelproxy.namespace.profiler:time_range",
    "cupyx.profiler.profile": "kernelproxy.namespace.profiler:profile",
    "cupyx.profiler.load_ipython_extension": "kernelproxy.namespace.gpu_timeit:load_ipython_extension",
    **{
        f"cupyx.scipy.{area}.__ua_{name}__": f"kernelproxy.namespace.scipy_backend:{ours}"
        for area in ("fft", "linalg")
        for name, ours in (
            ("domain", f"{area.upper()}_DOMAIN"),
            ("convert", "convert"),
            ("function", f"{area}_function"),
        )
    },
    "cupyx.scipy.sparse.spmatrix": "kernelproxy.namespace.sparse:spmatrix",
    "cupyx.scipy.sparse.sparray": "kernelproxy.namespace.sparse:sparray",
    **{
        f"cupyx.scipy.sparse.{name}": f"kernelproxy.namespace.sparse:{name}"
        for name in (
            *("issparse", "isspmatrix", "isspmatrix_csr", "isspmatrix_csc", "isspmatrix_coo", "isspmatrix_dia"),
        )
    },
    "cupyx.scipy.get_array_module": f"{_HOST}:get_scipy_module",
}
