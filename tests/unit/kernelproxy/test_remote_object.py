from __future__ import annotations

import copy
import inspect
import pickle
import types
from collections.abc import Callable

import pytest

from gpu_backend.wire.values import ObjectInfo
from kernelproxy.calls.remote_function import RemoteFunction
from kernelproxy.calls.remote_object import RemoteObject, remote_class
from kernelproxy.calls.stand_ins import object_from_description
from kernelproxy.client import Client
from kernelproxy.namespace import cuda, kernels
from kernelproxy.namespace.names import make


@pytest.mark.parametrize(
    ("type_name", "written"),
    [
        ("cupy.ElementwiseKernel", kernels.ElementwiseKernel),
        ("cupy.ReductionKernel", kernels.ReductionKernel),
        ("cupy.RawKernel", kernels.RawKernel),
        ("cupy.cuda.Event", cuda.Event),
    ],
)
def test_an_object_of_the_executor_gets_the_class_that_we_wrote(type_name: str, written: type[RemoteObject]) -> None:
    assert type(object_from_description(Client(), ObjectInfo(handle=0, type_name=type_name))) is written


def test_other_classes_are_built_from_the_surface() -> None:
    built = remote_class("cupy.random.RandomState")
    assert built.__bases__ == (RemoteObject,)
    assert built._qualname == "cupy.random.RandomState"


def test_methods_of_classes_are_remote_functions() -> None:
    spline = remote_class("cupyx.scipy.interpolate.CubicSpline")
    assert isinstance(spline.from_spline, RemoteFunction)
    assert list(inspect.signature(spline.from_spline).parameters) == ["tck", "extrapolate"]
    assert make("cupyx.scipy.interpolate.CubicSpline.from_spline") is spline.from_spline
    assert not isinstance(spline.derivative, RemoteFunction)  # that is for its instances


def test_classes_can_be_subscribed_where_cupys_can() -> None:
    assert isinstance(remote_class("cupyx.scipy.sparse.csr_array")[float], types.GenericAlias)
    with pytest.raises(TypeError):
        remote_class("cupy.random.RandomState")[float]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_cannot_be_duplicated_says_so(duplicate: Callable[[object], object]) -> None:
    state = object_from_description(Client(), ObjectInfo(handle=0, type_name="cupy.random.RandomState"))
    with pytest.raises(TypeError, match="held by the remote GPU"):
        duplicate(state)


@pytest.mark.parametrize("name", ["null", "ptds"])
def test_a_default_stream_has_what_stands_here_and_asks_nobody(name: str) -> None:
    stream = getattr(cuda.Stream, name)
    assert not hasattr(stream, "no_such_attribute")
    with pytest.raises(AttributeError, match=r"^'Stream' object has no attribute 'no_such_attribute'$"):
        _ = stream.no_such_attribute


@pytest.mark.parametrize("name", ["null", "ptds"])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_default_stream_is_that_stream(duplicate: Callable[[object], object], name: str) -> None:
    stream = getattr(cuda.Stream, name)
    with stream:
        made = duplicate(stream)
    assert made == stream
    assert made is not stream
    assert made._before == {}


def test_a_copy_of_an_external_default_stream_is_that_stream() -> None:
    stream = cuda.ExternalStream(0)
    assert copy.copy(stream) == stream == copy.deepcopy(stream)
