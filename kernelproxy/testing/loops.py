"""Decorators that call a test once for each dtype, combination of dtypes, order or set of axes."""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelproxy.testing.pytest_part import skips
from kernelproxy.testing.signatures import Decorator, Test, wraps_without

Case = dict[str, Any]
Dtypes = tuple[type[Any], ...]


def _types(characters: str) -> Dtypes:
    return tuple(np.dtype(character).type for character in characters)


COMPLEX = _types("FD")
FLOATS = _types("dfe")
SIGNED = _types("bhilq")
UNSIGNED = _types("BHILQ")
INTEGERS = SIGNED + UNSIGNED


def _floats(no_float16: bool) -> Dtypes:
    return FLOATS[:-1] if no_float16 else FLOATS


def _integers(no_bool: bool) -> Dtypes:
    return INTEGERS if no_bool else (*INTEGERS, np.bool_)


def _all(no_float16: bool, no_bool: bool, no_complex: bool) -> Dtypes:
    return (*_floats(no_float16), *_integers(no_bool), *(() if no_complex else COMPLEX))


# --- the loop --------------------------------------------------------------------------------------------------------


def _subsample_source() -> random.Random | None:
    if not int(os.environ.get("CUPY_TEST_RANDOM_SUBSAMPLE", "0")):
        return None
    seed = os.environ.get("_CUPY_TEST_SUBSAMPLE_SEED")
    return random.Random(None if seed is None else int(seed))


_source = _subsample_source()


def _sampled(cases: Sequence[Case]) -> Sequence[Case]:
    return cases if _source is None else _source.sample(cases, 1 + len(cases) // 15)


def _said(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.items())


def _looped(names: Sequence[str], cases: Callable[[Mapping[str, Any]], Iterable[Case]], skipping: bool) -> Decorator:
    """Call a test with each of ``cases`` of its keyword arguments.

    With ``skipping``, a case that does not apply is passed over; without it, it ends the test.
    The error of a case that fails says which one it was.
    """

    def decorator(test: Test) -> Test:
        @wraps_without(test, *names)
        def runner(*args: Any, **kw: Any) -> None:
            for case in cases(kw):
                try:
                    test(*args, **{**kw, **case})
                except skips() as skip:
                    if not skipping:
                        raise
                    sys.stdout.write(f"skipped: {_said(case)} ({skip})\n")
                except Exception as error:  # whatever a test raises; it goes on with a note
                    error.add_note(", ".join(f"{name} is {value}" for name, value in case.items()))
                    raise

        return runner

    return decorator


# --- dtypes ----------------------------------------------------------------------------------------------------------


def for_dtypes(dtypes: Sequence[Any], name: str = "dtype") -> Decorator:
    """Call a test with each of ``dtypes``, as a type, in the argument ``name``."""
    cases = _sampled([{name: np.dtype(dtype).type} for dtype in dtypes])
    return _looped([name], lambda kw: cases, skipping=True)


def for_all_dtypes(
    name: str = "dtype", no_float16: bool = False, no_bool: bool = False, no_complex: bool = False
) -> Decorator:
    """Call a test with each dtype of numbers, and bool."""
    return for_dtypes(_all(no_float16, no_bool, no_complex), name)


def for_float_dtypes(name: str = "dtype", no_float16: bool = False) -> Decorator:
    """Call a test with each real floating dtype."""
    return for_dtypes(_floats(no_float16), name)


def for_signed_dtypes(name: str = "dtype") -> Decorator:
    """Call a test with each dtype of signed integers."""
    return for_dtypes(SIGNED, name)


def for_unsigned_dtypes(name: str = "dtype") -> Decorator:
    """Call a test with each dtype of unsigned integers."""
    return for_dtypes(UNSIGNED, name)


def for_int_dtypes(name: str = "dtype", no_bool: bool = False) -> Decorator:
    """Call a test with each dtype of integers, and bool."""
    return for_dtypes(_integers(no_bool), name)


def for_complex_dtypes(name: str = "dtype") -> Decorator:
    """Call a test with each complex dtype."""
    return for_dtypes(COMPLEX, name)


# --- combinations of dtypes ------------------------------------------------------------------------------------------


def for_dtypes_combination(
    types: Iterable[Any], names: Sequence[str] = ("dtype",), full: bool | None = None
) -> Decorator:
    """Call a test with combinations of dtypes, one for each of ``names``.

    Parameters
    ----------
    types : iterable of dtypes
        Each of ``names`` gets each of them at least once.
    full : bool, optional
        All combinations; otherwise some, with the pairing left to chance. By default the environment variable
        ``CUPY_TEST_FULL_COMBINATION`` says it.
    """
    kinds = list(types)
    if len(kinds) == 1:
        (name,) = names
        return for_dtypes(kinds, name)
    if full is None:
        full = bool(int(os.environ.get("CUPY_TEST_FULL_COMBINATION", "0")))
    if full:
        chosen: Iterable[tuple[Any, ...]] = itertools.product(kinds, repeat=len(names))
    else:
        columns = [kinds + random.sample(kinds, len(kinds)) for _ in names]
        chosen = dict.fromkeys(zip(*columns, strict=True))
    cases = _sampled([dict(zip(names, combination, strict=True)) for combination in chosen])
    return _looped(names, lambda kw: cases, skipping=True)


def for_all_dtypes_combination(
    names: Sequence[str] = ("dtyes",), no_float16: bool = False, no_bool: bool = False, full: bool | None = None,
    no_complex: bool = False,
) -> Decorator:  # fmt: skip
    """Call a test with combinations of all dtypes of numbers, and bool. The default of ``names`` is CuPy's spelling."""
    return for_dtypes_combination(_all(no_float16, no_bool, no_complex), names, full)


def for_signed_dtypes_combination(names: Sequence[str] = ("dtype",), full: bool | None = None) -> Decorator:
    """Call a test with combinations of dtypes of signed integers."""
    return for_dtypes_combination(SIGNED, names, full)


def for_unsigned_dtypes_combination(names: Sequence[str] = ("dtype",), full: bool | None = None) -> Decorator:
    """Call a test with combinations of dtypes of unsigned integers."""
    return for_dtypes_combination(UNSIGNED, names, full)


def for_int_dtypes_combination(
    names: Sequence[str] = ("dtype",), no_bool: bool = False, full: bool | None = None
) -> Decorator:
    """Call a test with combinations of dtypes of integers, and bool."""
    return for_dtypes_combination(_integers(no_bool), names, full)


# --- memory layouts --------------------------------------------------------------------------------------------------


def for_orders(orders: Iterable[Any], name: str = "order") -> Decorator:
    """Call a test with each of ``orders`` in the argument ``name``."""
    cases = [{name: order} for order in orders]
    return _looped([name], lambda kw: cases, skipping=False)


def for_CF_orders(name: str = "order") -> Decorator:  # noqa: N802 (CuPy's spelling)
    """Call a test with each way to say the orders C and F, and with None."""
    return for_orders([None, "C", "F", "c", "f"], name)


def for_contiguous_axes(name: str = "axis") -> Decorator:
    """Call a test with each tuple of axes that lie together in memory, for its arguments ``shape`` and ``order``.

    For three axes these are (2,), (1, 2), (0, 1, 2) in C order, and (0,), (0, 1), (0, 1, 2) in F order.
    """
    return _looped([name], lambda kw: [{name: axes} for axes in _contiguous_axes(kw)], skipping=False)


def _contiguous_axes(kw: Mapping[str, Any]) -> list[tuple[int, ...]]:
    axes = range(len(kw["shape"]))
    if kw["order"] in ("c", "C"):
        return [tuple(axes[first:]) for first in axes]
    if kw["order"] in ("f", "F"):
        return [tuple(axes[: last + 1]) for last in axes]
    raise ValueError("Please specify the array order.")
