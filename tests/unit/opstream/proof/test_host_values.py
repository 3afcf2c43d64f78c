"""Arrays of NumPy are refused where CuPy refuses them, whatever device serves, and taken where it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import contiguous
from gpu_backend.opstream.proof import prove
from gpu_backend.opstream.surface.host_values import host_facts
from tests.conformance.host_calls import host_calls, names
from tests.conformance.infer_judge import layout_of

HOST = np.arange(6.0).reshape(2, 3)
DEVICE = contiguous((2, 3), np.dtype("f8"))


def said(qualname: str, *args: Any, **kwargs: Any) -> Exception | None:
    """Return how the call is refused, or None if it is not."""
    try:
        prove(qualname, args, kwargs)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("qualname", sorted(host_facts()))
def test_every_fact_is_about_a_public_parameter(qualname: str) -> None:
    described = surface.load()
    assert described.canonical(qualname) == qualname
    entry = described[qualname]
    if not isinstance(entry, surface.GeneralizedUfunc):
        assert isinstance(entry, (surface.Function, surface.Method))
        signature = surface.signature_of(entry)
        assert signature is not None
        assert {*host_facts()[qualname].refusals, *host_facts()[qualname].lacking} <= set(signature.parameters)


@pytest.mark.parametrize("qualname", names())
def test_calls_are_refused_in_cupys_words(qualname: str) -> None:
    for one in host_calls(qualname, 1, 4):
        args, kwargs = one.arguments(lambda spec: layout_of(spec)[0])
        error = said(qualname, *args, **kwargs)
        assert (type(error).__name__, str(error)) == (one.refusal.error, one.refusal.said_of(one.shape))


def test_what_is_refused_goes_by_what_else_is_given() -> None:
    """As CuPy on a GPU says it: with one argument, ``where`` is ``nonzero``."""
    condition = np.ones(3, bool)
    assert str(said("cupy.where", condition)) == "'a' must be a cupy.ndarray object, not <class 'numpy.ndarray'>."
    assert str(said("cupy.where", condition, 1, 2)) == "Unsupported type <class 'numpy.ndarray'>"


def test_what_is_refused_goes_by_whether_all_have_elements() -> None:
    """CuPy has answered before it looks at the arrays where one of them is empty."""
    empty = np.empty(0)
    assert str(said("cupyx.scipy.signal.fftconvolve", HOST, HOST)) == "Unsupported type <class 'numpy.ndarray'>"
    assert said("cupyx.scipy.signal.fftconvolve", HOST, empty) is None
    assert said("cupyx.scipy.signal.fftconvolve", empty, DEVICE) is None


def test_a_refusal_names_the_shape_of_what_a_kernel_cannot_have_by_value() -> None:
    sections = np.ones((2, 6))
    assert "of shape (2, 6) as a kernel parameter" in str(said("cupyx.scipy.signal.sosfilt", sections, DEVICE))
    assert said("cupyx.scipy.signal.lfilter", DEVICE, np.ones(1), DEVICE) is None


def test_what_is_refused_goes_by_axes() -> None:
    assert said("cupyx.scipy.special.logsumexp", np.array(1.0)) is None
    assert str(said("cupyx.scipy.special.logsumexp", np.ones(1))) == "Unsupported type <class 'numpy.ndarray'>"


@pytest.mark.parametrize(
    ("qualname", "args"),
    [
        ("cupy.einsum", ("ij,jk", DEVICE, HOST)),
        ("cupy.append", (DEVICE, HOST)),
        ("cupy.vstack", ([DEVICE, HOST],)),
        ("cupy.allclose", (DEVICE, HOST)),
        ("cupy.take", (DEVICE, np.array([0]))),
        ("cupy.linalg.norm", (HOST,)),
        ("cupy.copyto", (DEVICE, np.array(2.0))),
        ("cupy.linalg.det", (np.empty((0, 0)),)),
        ("cupy.array_equal", (DEVICE, HOST.T)),
        ("cupy.isin", (DEVICE, np.array([]))),
        ("cupy.add.at", (DEVICE, np.array([0]), np.array([1.0]))),
    ],
)
def test_what_cupy_takes_is_not_refused(qualname: str, args: tuple[Any, ...]) -> None:
    assert said(qualname, *args) is None


def test_keywords_lists_and_outputs_are_looked_at() -> None:
    assert "Argument 'a'" in str(said("cupy.median", a=HOST))
    assert "Unsupported type" in str(said("cupy.concatenate", [DEVICE, HOST]))
    assert "Argument 'out'" in str(said("cupy.sum", DEVICE, out=np.empty(())))
    assert "Unsupported type" in str(said("cupy.add", DEVICE, DEVICE, out=HOST))
    assert "Unsupported type" in str(said("cupy.array_equal", DEVICE, HOST))
    assert "Unsupported type" in str(said("cupy.isin", HOST, DEVICE))


@pytest.mark.parametrize("given", [[[1.0, 2.0], [3.0, 4.0]], (1.0, 2.0)], ids=type)
def test_lists_and_tuples_are_refused_by_what_they_lack(given: Any) -> None:
    kind = type(given).__name__
    for qualname, attribute in (("cupy.cov", "ndim"), ("cupy.unique", "shape"), ("cupy.transpose", "transpose")):
        error = said(qualname, given)
        assert (type(error), str(error)) == (AttributeError, f"{kind!r} object has no attribute {attribute!r}")
    assert said("cupy.where", DEVICE, DEVICE, given) is None or "has no attribute" not in str(said("cupy.where", given))
    assert said("cupy.vstack", given) is None


def test_a_call_that_fits_no_signature_is_left_to_the_executor() -> None:
    assert said("cupy.median", HOST, unknown=1) is None
