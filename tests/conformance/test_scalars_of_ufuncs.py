"""What was worked out for one scalar is not taken for another: at the limits of dtypes, whatever was asked before."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.cpu.ufunc import Ufunc
from gpu_backend.devices.cpu.ufunc_types import UFUNC_TYPES
from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import contiguous
from gpu_backend.opstream.proof.outcome import Unproved
from gpu_backend.opstream.proof.ufuncs import UfuncRule
from tests.conformance.asked_of_views import REMOTE
from tests.conformance.in_process import InProcess

_CALLS = int(os.environ.get("SCALAR_CALLS", "120"))
_SEED = int(os.environ.get("SCALAR_SEED", "1"))
_DTYPES = "?bBhHiIlLefdFD"
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_LIMITS = [int(limit(np.iinfo(char))) for char in "bBhHiIlL" for limit in (lambda i: i.min, lambda i: i.max)]
_SCALARS: list[Any] = [
    *(limit + step for limit in _LIMITS for step in (-1, 0, 1)),
    *(0, 1, -1, 5, 2**63 + 12_345, True, False, -0.0, 0.0, 1.5, 65_520.0, 1e39, 1e308, float("nan"), -float("inf")),
    *(1j, complex("nan"), np.int64(5), np.uint64(2**63 + 5), np.float32(1.5), np.float64("nan"), np.bool_(True)),
]


class Asked(NamedTuple):
    """One call of a ufunc of the CPU device; ``out`` is a dtype, ``how`` the way in which it is asked for."""

    args: tuple[Any, ...]
    how: str
    out: np.dtype[Any]

    def of(self, function: Any) -> Any:
        """Return what ``function`` makes of it: dtypes and contents, or the error."""
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in self.args]
        into = np.zeros(np.broadcast_shapes(*(np.shape(arg) for arg in args)), self.out)
        calls: dict[str, Callable[[], Any]] = {
            "plain": lambda: function(*args),
            "dtype": lambda: function(*args, dtype=self.out),
            "out": lambda: function(*args, out=into),
            "reused": lambda: function(*args, into),
        }
        made = _outcome(calls[self.how if function.nout == 1 else "plain"])
        return made if isinstance(made, Exception) else [_told(one) for one in (made if function.nout > 1 else [made])]

    def __str__(self) -> str:
        return f"{self.how} {[arg.dtype.char if isinstance(arg, np.ndarray) else arg for arg in self.args]} {self.out}"


def drawn(chance: random.Random, operands: int) -> Asked:
    """Return a call; most have an array."""
    args = [_array(chance) if chance.random() < 0.5 else chance.choice(_SCALARS) for _ in range(operands)]
    if chance.random() < 0.8:
        args[chance.randrange(operands)] = _array(chance)
    how = chance.choice(("plain", "plain", "out", "reused", "dtype"))
    return Asked(tuple(args), how, np.dtype(chance.choice("??" + _DTYPES)))


def _array(chance: random.Random) -> Any:
    dtype = np.dtype(chance.choice(_DTYPES + "?lLLL"))
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return np.array([0, 1, high, low, high - 5, 5, high // 2 + 1], dtype)
    return np.array([0, 1, 1, 0, 1, 0, 1] if dtype.kind == "b" else [0, -0.0, 1, -1.5, np.inf, np.nan, 5], dtype)


def _outcome(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            return error


def _told(made: Any) -> tuple[str, tuple[int, ...], str]:
    return made.dtype.char, made.shape, repr(made.tolist())


def _are_same(one: Any, other: Any) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return (type(one), str(one)) == (type(other), str(other))
    return bool(one == other)


def _new(used: Ufunc) -> Ufunc:
    """Return the ufunc as it was before anything was asked of it."""
    return Ufunc(used.name, used._compute, used._special, used.types)


def _calls(name: str, operands: int) -> Iterator[Asked]:
    chance = random.Random(f"{name} {_SEED}")
    for _ in range(_CALLS):
        yield drawn(chance, operands)


@pytest.mark.parametrize("name", sorted(UFUNC_TYPES))
def test_the_cpu_device_remembers_nothing_that_hangs_on_values(name: str) -> None:
    used = _new(open_device("cpu").resolve(f"cupy.{name}"))
    wrong = [
        f"{asked}: after others {after}, alone {alone}"
        for asked in _calls(name, used.nin)
        if not _are_same(after := asked.of(used), alone := asked.of(_new(used)))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(UFUNC_TYPES))
def test_inference_remembers_nothing_that_hangs_on_values_and_claims_what_is_so(name: str) -> None:
    described, function = surface.load().resolved(f"cupy.{name}"), open_device("cpu").resolve(f"cupy.{name}")
    assert isinstance(described, surface.Ufunc)
    used, wrong = UfuncRule(described), []
    for asked in _calls(name, function.nin):
        layouts = [contiguous(arg.shape, arg.dtype) if isinstance(arg, np.ndarray) else arg for arg in asked.args]
        after, alone = _claimed(used, layouts), _claimed(UfuncRule(described), layouts)
        truth = asked._replace(how="plain").of(function)
        if not _are_same(after, alone):
            wrong.append(f"{asked}: after others {after}, alone {alone}")
        elif isinstance(alone, list) and (isinstance(truth, Exception) or alone != [one[:2] for one in truth]):
            wrong.append(f"{asked}: claimed {alone}, is {truth}")
    assert wrong == []


def _claimed(rule: UfuncRule, operands: list[Any]) -> Any:
    made = _outcome(lambda: rule.result(*operands) if len(operands) == 2 else rule.results(*operands))
    if isinstance(made, (Exception, Unproved)):
        return made if isinstance(made, Exception) else "unproved"
    return [(one.dtype.char, one.shape) for one in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", _COMPARISONS)
@pytest.mark.parametrize("dtype", "bBhHiIlL")
def test_integers_compare_exactly(name: str, dtype: str) -> None:
    """With any Python int of 64 bits, in any sequence, as NumPy 2 does."""
    function, chance = open_device("cpu").resolve(f"cupy.{name}"), random.Random(f"{name} {dtype} {_SEED}")
    info = np.iinfo(dtype)
    array = np.array([info.min, 0, 5, info.max], dtype)
    numbers = [one for one in _SCALARS if type(one) is int and -(1 << 63) <= one < 1 << 64]
    for number in chance.sample(numbers, len(numbers)):
        expected = getattr(np, name)(array, number).tolist()
        assert function(array, number).tolist() == expected
        assert function(array, number, out=np.zeros(4, bool)).tolist() == expected
        assert function(array, number, np.zeros(4, bool)).tolist() == expected


def test_large_and_small_numbers_in_turn_in_memory_that_is_reused(executor: InProcess) -> None:
    host = np.array([5, 2**63 + 7, 2**64 - 1, 0], "u8")
    array, into = REMOTE.asarray(host), REMOTE.zeros(4, bool)
    for number in (5, 2**63 + 7, 2**64 - 1, -1, 0):
        made = array == number
        made = array == number  # computes into the memory of the one before
        assert made.get().tolist() == (host == number).tolist()
        assert REMOTE.equal(array, number, out=into).get().tolist() == (host == number).tolist()
        if not executor.device.lays_out_as_cupy or 0 <= number < 2**63:  # beyond, CuPy has an opinion of its own
            assert REMOTE.logical_and(array, number).get().tolist() == np.logical_and(host, number != 0).tolist()
    flags = REMOTE.asarray(np.array([True, False]))
    for number in (2**63 + 7, 1, 2**63 + 7):
        made = flags * number
        assert made.dtype == ("u8" if number > 1 else "i8")
        assert made.get().tolist() == [number, 0]


@pytest.mark.parametrize("pair", [(7, 2), (2.5, 2), (True, 2), (7, np.float32(2)), (np.int8(7), np.int8(2))])
@pytest.mark.parametrize("name", ["add", "true_divide", "remainder"])
def test_ufuncs_take_numbers_alone(executor: InProcess, name: str, pair: tuple[Any, Any]) -> None:
    made, expected = getattr(REMOTE, name)(*pair), getattr(np, name)(*pair)
    assert (made.dtype, made.shape, made.item()) == (expected.dtype, (), expected.item())


@pytest.mark.parametrize("how", ["new", "out", "in place"])
def test_beside_no_element_a_number_need_not_fit_and_chooses_the_loop_even_so(how: str) -> None:
    """CuPy chooses the loop by the number, and asks whether it fits when it launches, which it does not here."""
    device: Any = open_device("cpu")
    add = device.resolve("cupy.add")
    for dtype, number, expected in (("u1", 300, "u1"), ("u8", -1, "u8"), ("?", 2**63, "u8"), ("?", -5, "i8")):
        empty = device.upload(np.zeros((0, 3), dtype))
        if how == "new":
            found = add(empty, number)
        else:
            out = device.upload(np.zeros((0, 3), expected))
            found = add(empty if how == "out" else out, number, out=out)
        assert found.dtype == np.dtype(expected)
        assert found.shape == (0, 3)
