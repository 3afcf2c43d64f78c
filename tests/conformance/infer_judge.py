"""Holds what inference claims of a call against what a device does."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.laying_out import LayingOut
from gpu_backend.executor.values import Reader
from gpu_backend.opstream.layout import Layout, contiguous, strided
from gpu_backend.opstream.proof import Later, Made, Returned, Unproved, View, Warned, kernels, prove
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import dtype_to_text
from tests.conformance import infer_calls
from tests.conformance.infer_calls import Array, Call, Launch


class Judge:
    """Makes the arguments of calls on a device and compares.

    Real CuPy must agree in every word. Another device need only do what is claimed to succeed: refusals that are proved
    never reach it, its warnings are its own, views are made from the claim alone, and the executor lays a result out as
    it was claimed to lie.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.kind = device.info.kind
        self._objects = DescribedObjects(device)
        self.unproved: dict[str, list[str]] = {}
        self.proved: dict[str, int] = {}

    def verdict(self, call: Call) -> str:
        """Return "" if nothing wrong was claimed of ``call``, else what was claimed and what is true."""
        function = _outcome(lambda: self._device.resolve(call.qualname), "ignore")
        if isinstance(function, AttributeError):
            return ""  # this device says that it has nothing of that name
        args = tuple([self._made(argument) for argument in call.args])
        kwargs = {name: self._made(argument) for name, argument in call.kwargs.items()}
        claim = _outcome(lambda: prove(call.qualname, self._layouts(args), self._layouts(kwargs)))
        if not callable(function):  # a property: its getter
            function = function.__get__
        return self._verdict(call, claim, lambda: function(*args, **kwargs), args, kwargs)

    def verdict_on_launch(self, launch: Launch) -> str:
        """Return what `verdict` does, for a launch of a user kernel."""
        kernel = self._device.resolve(launch.qualname)(*launch.definition[0], **launch.definition[1])
        args = tuple([self._made(argument) for argument in launch.args])
        kwargs = {name: self._made(argument) for name, argument in launch.kwargs.items()}
        given = (launch.definition, self._layouts(args), self._layouts(kwargs))
        claim = _outcome(lambda: kernels.result(launch.qualname, *given))
        return self._verdict(launch, claim, lambda: kernel(*args, **kwargs), (kernel, *args), kwargs)

    def _verdict(self, call: Call | Launch, claim: Any, run: Any, args: Any, kwargs: Any) -> str:
        if isinstance(claim, Unproved):
            self.unproved.setdefault(call.qualname, []).append(claim.reason)
            return f"{call}: {claim.reason}" if claim.reason.startswith("the rule of") else ""
        self.proved[call.qualname] = self.proved.get(call.qualname, 0) + 1
        if isinstance(claim, Exception) and self.kind != "cuda":
            return ""
        if isinstance(claim, Warned):
            if self.kind == "cuda" and str(_outcome(run)) != claim.message:
                return f"{call}: claimed to warn of {claim.message!r}, is {_outcome(run)!r}"
            claim, warned = claim.proof, True
        else:
            warned = self.kind != "cuda"
        truth = _outcome(run, "ignore" if warned or isinstance(claim, Exception) else "error")
        wrong = self._compare(claim, truth, args, kwargs)
        return f"{call}: {wrong}" if wrong else ""

    def against(self, call: Call, claimed_as: str) -> str:
        """Return what `verdict` would if the claim were that of another function."""
        args = tuple([self._made(argument) for argument in call.args])
        claim = _outcome(lambda: prove(claimed_as, self._layouts(args), {}))
        truth = _outcome(lambda: self._device.resolve(call.qualname)(*args, **call.kwargs))
        return self._compare(claim, truth, args, {})

    def _compare(self, claim: Any, truth: Any, args: Any, kwargs: Any) -> str:
        if isinstance(claim, Exception) or isinstance(truth, BaseException):
            if type(claim) is type(truth) and str(claim) == str(truth):
                return ""
            return f"claimed {claim!r}, is {truth!r}"
        if isinstance(claim, (list, tuple)) and not isinstance(claim, (View, Returned, Made, Later)):
            if not isinstance(truth, (list, tuple)) or len(truth) != len(claim):
                return f"claimed {len(claim)} results, is {truth!r}"
            if self.kind == "cuda" and isinstance(claim, list) != isinstance(truth, list):
                return f"claimed a {type(claim).__name__}, is a {type(truth).__name__}"
            wrongs = [self._compare(one, other, args, kwargs) for one, other in zip(claim, truth, strict=True)]
            return "; ".join(wrong for wrong in wrongs if wrong)
        return self._compare_one(claim, truth, args, kwargs)

    def _compare_one(self, claim: Any, truth: Any, args: Any, kwargs: Any) -> str:
        if isinstance(claim, Later):
            found = [truth] if claim.several is None else list(truth)
            fits = len(found) == (claim.several or 1) and all(map(self._device.is_array, found))
            fits = fits and sum(one.nbytes for one in found) <= claim.nbytes
            if fits and claim.dtype is not None:
                fits = all((one.dtype, one.shape[1:]) == (claim.dtype, claim.rest) for one in found)
                fits = fits and (self.kind != "cuda" or all(one.flags.c_contiguous for one in found))
                mask = None if claim.chosen_by is None or not args else args[claim.chosen_by]
                fits = fits and (mask is None or all(len(one) == int(mask.sum()) for one in found))
            return "" if fits else f"claimed {claim}, is {truth!r}"
        if isinstance(claim, Made):
            described = self._objects.describe(truth)
            name = described.name if described is not None else str(type(truth))
            return "" if name == claim.qualname else f"claimed a {claim.qualname}, is a {name}"
        if claim is None:
            return "" if truth is None else f"claimed None, is {type(truth)}"
        if not self._device.is_array(truth):
            return f"claimed {claim}, is {type(truth)}"
        if isinstance(claim, Returned) and self.kind == "cuda":
            return "" if truth is _argument(claim.of, args, kwargs) else f"claimed argument {claim.of}, is another"
        if isinstance(claim, Returned):
            claim = View(0, self._layouts(_argument(claim.of, args, kwargs)), claim.of)
        layout = claim.layout if isinstance(claim, View) else claim
        if self.kind != "cuda":
            truth = self._as_executors_give_it(claim, truth, args, kwargs)
        elif isinstance(claim, View) and claim.layout.size:
            offset = self._device.shares_base(truth, _argument(claim.of, args, kwargs))
            if offset != claim.offset:
                return f"claimed a view at {claim.offset}, is one at {offset}"
        found = self._device.layout(truth)
        strides = layout.strides if layout.size or self.kind == "cuda" else found.strides
        if (layout.shape, strides, layout.dtype) != found:
            return f"claimed {layout}, is {found}"
        return ""

    def _as_executors_give_it(self, claim: View | Layout, truth: Any, args: Any, kwargs: Any) -> Any:
        """Return the array that a notebook meets as the claimed one, if it has the right elements; else ``truth``."""
        heap, device = Heap(), self._device
        layout, offset = (claim.layout, claim.offset) if isinstance(claim, View) else (claim, 0)
        found = device.layout(truth)
        if (found.shape, found.dtype) != (layout.shape, layout.dtype) or not layout.size:
            return truth
        if isinstance(claim, View):
            heap.objects[1] = _argument(claim.of, args, kwargs)
        else:
            heap.objects[1] = LayingOut(device, device.resolve).results(claim.orders, truth)
        order = device.memory_order(heap.objects[1])
        shown = wire.View(1, offset, layout.shape, layout.strides, dtype_to_text(layout.dtype), order)
        met = Reader(heap, device, device.resolve, DescribedObjects(device)).read(shown)
        is_same = np.array_equal(device.download(met), device.download(truth), equal_nan=layout.dtype.kind in "fc")
        return met if is_same else truth

    def _made(self, value: Any) -> Any:
        if isinstance(value, Array):
            return self._array(value)
        if isinstance(value, infer_calls.Made):
            return self._device.resolve(value.qualname)(*value.args)
        if isinstance(value, (list, tuple)):
            return type(value)([self._made(item) for item in value])
        return value

    def _array(self, spec: Array) -> Any:
        layout, offset, size = layout_of(spec)
        host = np.ones(size, np.uint8) if layout.dtype.kind == "b" else np.arange(size, dtype=np.uint8) % 4
        if layout.dtype.kind in "fc":
            host = np.arange(1, size // layout.itemsize + 2, dtype=layout.dtype).view(np.uint8)
        root = self._device.upload(host)
        return self._device.view(root, offset, layout.shape, layout.strides, layout.dtype)

    def _layouts(self, value: Any) -> Any:
        if self._device.is_array(value):
            found = self._device.layout(value)
            return strided(found.shape, found.strides, found.dtype)
        if isinstance(value, (list, tuple)):
            return type(value)([self._layouts(item) for item in value])
        if isinstance(value, dict):
            return {name: self._layouts(item) for name, item in value.items()}
        return value


def layout_of(spec: Array) -> tuple[Layout, int, int]:
    """Return how an array of the calls lies, where it starts in its buffer, and the buffer's size in bytes."""
    dtype, shape = np.dtype(spec.dtype), spec.shape
    item = dtype.itemsize
    if 0 in shape or spec.layout in "CF":
        layout = contiguous(shape, dtype, "F" if spec.layout == "F" else "C")
        return layout, 0, max(layout.nbytes, item)
    if spec.layout == "T":
        strides = contiguous(shape[::-1], dtype).strides[::-1]
        strides = strides[1:] + strides[:1] if len(set(shape)) == 1 and len(shape) > 2 else strides
        return strided(shape, strides, dtype), 0, contiguous(shape, dtype).nbytes
    if spec.layout == "B" and shape:
        rest = contiguous(shape[1:], dtype)
        return strided(shape, (0, *rest.strides), dtype), 0, rest.nbytes
    padded = tuple(2 * extent for extent in shape)
    whole = contiguous(padded, dtype)
    if spec.layout == "N" and shape:
        strides = tuple(-2 * stride for stride in whole.strides)
        offset = sum(2 * stride * (extent - 1) for stride, extent in zip(whole.strides, shape, strict=True))
        return strided(shape, strides, dtype), offset, whole.nbytes
    return strided(shape, tuple(2 * stride for stride in whole.strides), dtype), 0, whole.nbytes


def _argument(of: int | str, args: Any, kwargs: Any) -> Any:
    return kwargs[of] if isinstance(of, str) else args[of]


def _outcome(call: Any, on_warning: Literal["error", "ignore"] = "error") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter(on_warning)
        try:
            return call()
        except (Exception, AssertionError) as error:
            return error
