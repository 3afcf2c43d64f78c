"""Where a crawl begins: values of the wire, and calls of every name that is served, with plausible arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.surface import Alias, Class, Function, Method, Module, NumpyName, Surface, load, signature_of
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import dtype_to_text
from gpu_backend.wire.values import Bytes, DType, Name, Ref, Value
from tests.attack.canaries import Canaries
from tests.attack.hostile import Hostile, Said
from tests.conformance.infer_calls import TEMPLATES, Array, Made, calls

#: What ends or blocks the process that it is called in: the crawler's own, here.
LEFT_OUT = frozenset({"cupy.cuda.runtime.deviceReset", "cupy.cuda.runtime.profilerStop"})
#: Parameters by their names: what is meant by each.
_PATHS = frozenset("file fname filename path fid fp dirname directory destpath log_stream dll library".split())
_ADDRESSES = frozenset(
    """ptr address addr src dst src_ptr dst_ptr hostptr host_ptr devptr mem pointer data_ptr symbol userdata image buf
    srcptr dstptr handle""".split()
)
_FEW = 8
_CODE = 'extern "C" __global__ void f(float* x) { x[0] = 1; }'
_WORDS: dict[str, Any] = {
    "shape": (2, 3), "dtype": np.dtype("f8"), "axis": 0, "axes": (0,), "n": 3, "k": 1, "size": 4, "num": 4, "m": 3,
    "name": "f", "code": _CODE, "source": _CODE, "operation": "y = x", "in_params": "float64 x",
    "out_params": "float64 y", "map_expr": "x", "reduce_expr": "a + b", "post_map_expr": "y = a", "identity": "0",
    "order": 2, "start": 0, "stop": 5, "window": "hann", "mode": "same", "method": "linear", "func": Name("cupy.add"),
    "func1d": Name("cupy.sum"),
    "callback": Name("cupy.sum"), "pyfunc": Name("cupy.add"), "allocator": Name("cupy.cuda.alloc"), "seed": 1,
    "subscripts": "i,i->i", "obj": 0, "indices": (0, 1), "repeats": 2, "reps": 2, "pad_width": 1, "n_workers": 1,
    "device": 0, "device_id": 0, "rank": 0, "host": "127.0.0.1", "port": 1, "command": "true",
}  # fmt: skip


class Seed(NamedTuple):
    """A call that a crawl may begin with: how it is written, and its wire values."""

    text: str
    name: str
    args: tuple[Value, ...]


class Materials:
    """Arrays and objects that calls are made of, on the device."""

    def __init__(self, hostile: Hostile, canaries: Canaries) -> None:
        self.hostile, self.canaries = hostile, canaries
        self.vector = Ref(hostile.upload(np.arange(1.0, 7.0)))
        self.matrix = Ref(hostile.upload(np.eye(3) * 2 + 1))
        self.whole = Ref(hostile.upload(np.arange(6)))
        self.path = str(canaries.file)
        self.hostile_values: tuple[Value, ...] = (self.path, canaries.word, Bytes(self.path.encode()), canaries.address)

    def roots(self) -> Iterator[tuple[str, Value]]:
        """Yield values of the wire that a client may write as an op's target, without having made any object."""
        scalar = wire.Scalar("<f8", np.float64(2).tobytes())
        yield from (
            ("an array", self.vector), ("'text'", "text"), ("7", 7), ("1.5", 1.5), ("True", True), ("None", None),
            ("b'bytes'", Bytes(b"bytes")), ("a tuple", wire.Tuple((1, 2))), ("a list", wire.List((1, 2))),
            ("a dict", wire.Dict((("a", 1),))), ("a slice", wire.Slice(0, 1, None)), ("...", wire.Ellipsis()),
            ("a dtype", DType("<f8")), ("a scalar", scalar), ("1j", wire.Complex(0.0, 1.0)),
            ("a host array", wire.Buffer(-1, "|u1", (4,), b"abcd")), ("a callback", wire.Callback(1)),
            ("a seed sequence", wire.SeedSequence(("1",), (), 4)), ("a big int", wire.BigInt("0x1" + "0" * 20)),
        )  # fmt: skip

    def wired(self, value: Any) -> Value:
        """Return what stands for ``value``, of a table of calls, on the wire."""
        if isinstance(value, Array):
            return Ref(self.hostile.upload(np.ones(value.shape, value.dtype)))
        if isinstance(value, Made):
            return Ref(self.hostile.make(value.qualname, *map(self.wired, value.args)))
        if isinstance(value, np.generic):
            return wire.Scalar(dtype_to_text(value.dtype), value.tobytes())
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, (np.generic, int, float))):
            return DType(dtype_to_text(np.dtype(value)))
        if isinstance(value, complex):
            return wire.Complex(value.real, value.imag)
        if isinstance(value, tuple):
            return wire.Tuple(tuple(map(self.wired, value)))
        if isinstance(value, list):
            return wire.List(tuple(map(self.wired, value)))
        if isinstance(value, slice):
            return wire.Slice(*map(self.wired, (value.start, value.stop, value.step)))
        if value is Ellipsis:
            return wire.Ellipsis()
        return value  # type: ignore[no-any-return]

    def argument(self, parameter: str) -> Value:
        """Return what a parameter of that name may be meant to take."""
        if parameter in _PATHS:
            return self.path
        if parameter in _ADDRESSES:
            return self.canaries.address
        if parameter in _WORDS:
            return self.wired(_WORDS[parameter])
        return self.matrix if parameter in ("A", "M", "a_matrix", "mat") else self.vector


def names() -> list[str]:
    """Return every name that an executor serves and that can be called, objects and classes first."""
    surface = load()
    first = {"Class": 0, "Instance": 0, "Constant": 1, "Function": 2, "Ufunc": 2, "GeneralizedUfunc": 2, "Method": 3}
    served = [name for name, entry in surface.items() if surface.is_remote(name) and type(entry).__name__ in first]
    return sorted(set(served) - LEFT_OUT, key=lambda name: (first[type(surface[name]).__name__], name))


def seeds(name: str, materials: Materials, self_of: Callable[[str], Value]) -> Iterator[Seed]:
    """Yield calls of ``name``: as the tables of calls draw it, by its parameters' names, and with canaries only.

    ``self_of`` returns an object of the class of that name, or raises `Said`.
    """
    surface = load()
    entry = surface[name]
    yield Seed(f"the name {name}", ".same", (Name(name),))
    if isinstance(entry, (Alias, Module, NumpyName)) or type(entry).__name__ in ("Constant", "Instance"):
        return
    try:
        own = (self_of(name.rpartition(".")[0]),) if isinstance(entry, Method) and not entry.binding else ()
    except Said:
        return
    for call in calls(1, 2, [name]) if name in TEMPLATES else ():
        try:
            yield Seed(f"{name}(as drawn)", name, tuple(map(materials.wired, call.args)))
        except (Said, TypeError):
            continue
    yield from _guessed(name, surface, own, materials)


def _guessed(name: str, surface: Surface, own: tuple[Value, ...], materials: Materials) -> Iterator[Seed]:
    entry = surface[name]
    described = isinstance(entry, (Function, Method, Class))
    signature = signature_of(entry) if described else None  # type: ignore[arg-type]
    if signature is None:
        for count in range(4):
            yield Seed(f"{name}(...)", name, (*own, *(materials.vector,) * count))
        needed, every, positional = 1, 2, []
    else:
        positional = [one for one in signature.parameters.values() if one.kind < one.VAR_POSITIONAL][len(own) :]
        needed = sum(one.default is one.empty for one in positional)
        every = len(positional)
        args = [materials.argument(one.name) for one in positional]
        for count in sorted({needed, every}):
            yield Seed(f"{name}({', '.join(one.name for one in positional[:count])})", name, (*own, *args[:count]))
    if ".cuda." in name:
        yield from _addressed(name, own, [one.name for one in positional], materials)
    for value in materials.hostile_values[:3]:
        for count in sorted({max(needed, 1), every} - {0}):
            yield Seed(f"{name}({'..., ' * (count > 1)}{_short(value)})", name, (*own, *(value,) * count))
            if count > 1:
                rest = (materials.vector,) * (count - 1)
                yield Seed(f"{name}(array, {_short(value)})", name, (*own, *rest, value))


def _addressed(name: str, own: tuple[Value, ...], parameters: list[str], materials: Materials) -> Iterator[Seed]:
    """Yield calls with an address in the places of addresses: few bytes of it, or the process would die of it."""
    address = materials.canaries.address
    if parameters:
        args = tuple(address if one.lower() in _ADDRESSES else _FEW for one in parameters)
        yield Seed(f"{name}({', '.join(parameters)}: addresses)", name, (*own, *args))
        return
    for args in ((address,), (address, _FEW, _FEW), (address, address, _FEW, 0), (address, _FEW, materials.vector)):
        yield Seed(f"{name}(addresses)", name, (*own, *args))


def _short(value: Value) -> str:
    return "an address" if isinstance(value, int) else "a path" if "secret" in str(value) else "a word"
