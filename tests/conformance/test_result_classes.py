"""Of which class results are where an argument is of a program's own, as native CuPy said of each of these calls.

`tests/cupy_oracle/test_classes.py` asks native CuPy of many more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from kernelproxy.namespace.names import make
from tests.conformance.asked_of_views import REMOTE, Names
from tests.conformance.in_process import notebook_on

#: In the class of the array `x`, `n` or `z`, and made of it as far as its `__array_finalize__` can tell.
KEPT = (
    *("cp.around(x)", "cp.round_(x, 1)", "x.round()", "cp.clip(p, x, 9)", "p.clip(0, x)", "cp.diff(x)", "cp.tril(x)"),
    *("cp.where(m, x, 0)", "cp.where(m, p, x)", "cp.kron(p, x)", "cp.outer(p, x)"),
    *("cp.ediff1d(x)", "cp.isclose(p, x)", "cp.isneginf(x)", "cp.linspace(x, p, 3)", "cp.dot(x, p[0, 0])", "z.conj()"),
    *("cp.inner(p[0, 0], x)", "cp.polynomial.polynomial.polyval(x, p)", "sp.special.softmax(x)", "cp.angle(z)"),
    *("sp.special.polygamma(n, p)", "sp.stats.zscore(x)", "sp.linalg.khatri_rao(p, x)", "cp.nan_to_num(x, copy=False)"),
    *("sp.signal.fftconvolve(x[:1, :1], p[:1])", "cp.modf(x)[1]", "cp.modf(x, p.copy())[1]", "cp.atleast_1d(p, x)[1]"),
    *("cp.real_if_close(x)", "cp.isclose(p, p, x)", "sp.signal.deconvolve(x[0], p[0])[1]"),
)  # fmt: skip
PLAIN = (
    *("cp.nan_to_num(x)", "cp.diff(x, prepend=p)", "cp.where(n, p, 0)", "cp.dot(x, p)", "cp.outer(x.T, x.T[::2])[0:0]"),
    *("cp.outer(x[:, ::2], p)", "cp.ediff1d(x, p[0])", "cp.inner(x, p)", "cp.clip(x, 0, 1, out=p.copy())"),
    *("cp.lib.stride_tricks.sliding_window_view(x, 2, 0)", "cp.add(x, p, p.copy())", "cp.modf(x, p.copy())[0]"),
    *("sp.signal.fftconvolve(x, p)", "sp.special.log_softmax(n)", "cp.angle(p, x[0, 0])", "cp.isreal(x)"),
    *("cp.compress([True], x, 0)", "cp.copy(x)", "x[[0]]"),
)  # fmt: skip


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def scope(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with notebook_on(open_device(request.param)):

        class Own(make("cupy.ndarray")):  # type: ignore[misc]
            def __array_finalize__(self, obj: Any) -> None:
                self.mark = getattr(obj, "mark", None)

        def own(host: Any) -> Any:
            made = REMOTE.asarray(host).view(Own)
            made.mark = "marked"
            return made

        plain = np.arange(1.0, 10.0).reshape(3, 3)
        yield {
            "cp": REMOTE, "sp": Names("cupyx.scipy"), "x": own(plain), "n": own(np.arange(1, 10).reshape(3, 3)),
            "z": own(plain + 1j), "p": REMOTE.asarray(plain), "m": REMOTE.asarray(plain > 2),
        }  # fmt: skip


def made(text: str, scope: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, scope)


@pytest.mark.parametrize("text", KEPT)
def test_a_class_is_kept(text: str, scope: dict[str, Any]) -> None:
    found = made(text, scope)
    assert (type(found).__name__, found.mark if hasattr(found, "mark") else "") == ("Own", "marked")


@pytest.mark.parametrize("text", PLAIN)
def test_a_result_is_plain(text: str, scope: dict[str, Any]) -> None:
    assert type(made(text, scope)) is type(scope["p"])


def test_what_is_given_for_a_result_is_that_result(scope: dict[str, Any]) -> None:
    for text in ("cp.modf(p, one, two)", "cp.divmod(x, p, one, two)"):
        one, two = REMOTE.zeros((3, 3)), REMOTE.zeros((3, 3)).view(type(scope["x"]))
        given = made(text, {**scope, "one": one, "two": two})
        assert given[0] is one
        assert given[1] is two


def test_where_nothing_is_made_of_the_array_its_class_is_finalized_of_none(scope: dict[str, Any]) -> None:
    found = made("cp.isreal(z)", scope)
    assert (type(found).__name__, found.mark) == ("Own", None)


def test_compress_is_a_method_of_its_second_argument(scope: dict[str, Any]) -> None:
    """A NumPy array stays in NumPy, and refuses a condition that would have to be brought there."""
    host = np.arange(3.0)
    for condition in ([True, False, True], np.array([True, False, True])):
        assert np.array_equal(REMOTE.compress(condition, host), [0.0, 2.0])
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        REMOTE.compress(scope["m"][0], host)
