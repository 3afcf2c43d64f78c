"""Where the names of ``cupy.testing`` are, the public ones and the private ones that test suites have come to use."""

from __future__ import annotations

_MADE = {
    "arrays": (
        *("generate_matrix", "shaped_arange", "shaped_linspace", "shaped_random", "shaped_reverse_arange"),
        "shaped_sparse_random",
    ),
    "assertions": (
        *("assert_allclose", "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_equal"),
        *("assert_array_less", "assert_array_list_equal", "assert_array_max_ulp", "assert_warns"),
    ),
    "bases": ("AssertFunctionIsCalled", "NumpyAliasBasicTestBase", "NumpyAliasValuesTestBase"),
    "comparisons": (
        *("numpy_cupy_allclose", "numpy_cupy_array_almost_equal", "numpy_cupy_array_almost_equal_nulp"),
        *("numpy_cupy_array_equal", "numpy_cupy_array_less", "numpy_cupy_array_list_equal"),
        *("numpy_cupy_array_max_ulp", "numpy_cupy_equal", "numpy_cupy_raises"),
    ),
    "loops": (
        *("for_CF_orders", "for_all_dtypes", "for_all_dtypes_combination", "for_complex_dtypes"),
        *("for_contiguous_axes", "for_dtypes", "for_dtypes_combination", "for_float_dtypes", "for_int_dtypes"),
        *("for_int_dtypes_combination", "for_orders", "for_signed_dtypes", "for_signed_dtypes_combination"),
        *("for_unsigned_dtypes", "for_unsigned_dtypes_combination"),
    ),
    "parameters": ("parameterize", "product", "product_dict"),
    "randomness": ("fix_random", "generate_seed"),
    "requirements": ("installed", "multi_gpu", "numpy_satisfies", "slow", "with_requires"),
}

_PRIVATE: dict[str, dict[str, tuple[str, ...]]] = {
    "_array": {"assertions": _MADE["assertions"][:-1]},
    "_attr": {"requirements": ("multi_gpu", "slow")},
    "_condition": {"trials": ("repeat", "repeat_with_success_at_least", "retry")},
    "_helper": {
        "arrays": _MADE["arrays"],
        "assertions": ("assert_warns",),
        "bases": ("NumpyAliasTestBase", "assert_function_is_called", *_MADE["bases"]),
        "requirements": (
            *("installed", "is_after_baseline", "numpy_satisfies", "skip_if_after_baseline", "with_requires"),
        ),
    },
    "_loops": {
        "comparisons": ("_contains_signed_and_unsigned", *_MADE["comparisons"]),
        "loops": _MADE["loops"],
        "signatures": ("_wraps_partial", "_wraps_partial_xp"),
    },
    "_parameterized": {"parameters": _MADE["parameters"]},
    "_random": {"randomness": ("_setup_random", "_teardown_random", "fix_random", "generate_seed")},
}

#: Public name to "module:attribute".
NAMES: dict[str, str] = {
    f"cupy.testing.{name}": f"kernelproxy.testing.{module}:{name}" for module, names in _MADE.items() for name in names
}

#: The same for names in private modules.
PRIVATE_NAMES: dict[str, str] = {
    f"cupy.testing.{private}.{name}": f"kernelproxy.testing.{module}:{name}"
    for private, made in _PRIVATE.items()
    for module, names in made.items()
    for name in names
}

#: The private modules.
PRIVATE_MODULES = frozenset(f"cupy.testing.{private}" for private in _PRIVATE)
