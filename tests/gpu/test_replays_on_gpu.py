"""Ops that are replayed on a GPU give CuPy's own bits, wherever their operands lie and whatever is in them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.replays import Lying, Unrepeatable
from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import DType, List, Ref, Slice, Tuple, Value, View
from tests.gpu.test_segments_on_gpu import await_compiler
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROWS, COLUMNS = 37, 50
#: Arrays that are there: doubles, floats, ints, a mask, places in a row, a long one: its length beside a count of 32
#: bits, as CUB has it, makes a word that looks like an address of a capture.
DOUBLES, FLOATS, INTS, MASK, PLACES, LONG, SQUARE = range(1, 8)
ROUNDS = 40
LONGEST = 10_000
_OFF = ("store", "reuse")

Asked = tuple[str, tuple[Value, ...], dict[str, Value] | None]


def _reduced(name: str) -> list[Asked]:
    found: list[Asked] = []
    for handle in (DOUBLES, FLOATS, INTS):
        found += [
            (name, (Ref(handle),), None),
            (name, (Ref(handle),), {"axis": 0}),
            (name, (Ref(handle),), {"axis": 1}),
        ]
    return [*found, (name, (_rows(DOUBLES, 3, 8),), {"axis": 0}), (name, (_rows(FLOATS, 1, 8, backwards=True),), None)]


def _rows(handle: int, first: int, itemsize: int, backwards: bool = False) -> View:
    """Return some columns of an array of rows, from ``first`` on; from the last row up."""
    itemsize = 4 if handle == FLOATS else itemsize
    row = COLUMNS * itemsize
    start = (ROWS - 1) * row if backwards else 0
    return View(
        handle, start + first * itemsize, (ROWS, 20), (-row if backwards else row, itemsize), _DTYPES[handle], "C"
    )


def _of_long(shape: tuple[int, ...]) -> View:
    """Return the first numbers of the long array."""
    return View(LONG, 24, shape, contiguous(shape, np.dtype("f8")).strides, "<f8", "C")


_DTYPES = {DOUBLES: "<f8", FLOATS: "<f4", INTS: "<i8", MASK: "|b1", PLACES: "<i8", LONG: "<f8", SQUARE: "<f8"}
_REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"]
ASKED: list[Asked] = [
    *(one for name in _REDUCTIONS for one in _reduced(f"cupy.ndarray.{name}")),
    ("cupy.sum", (Ref(DOUBLES),), {"axis": Tuple((0, 1)), "keepdims": True}),
    ("cupy.ndarray.astype", (Ref(DOUBLES), "f4"), None),
    ("cupy.ndarray.astype", (_rows(FLOATS, 5, 4), DType("<i4")), None),
    ("cupy.ndarray.copy", (_rows(DOUBLES, 5, 8),), None),
    ("cupy.concatenate", (List((Ref(DOUBLES), Ref(DOUBLES))),), {"axis": 0}),
    ("cupy.stack", (Tuple((Ref(LONG), Ref(LONG))),), None),
    ("cupy.cumsum", (Ref(LONG),), None),
    ("cupy.cumsum", (Ref(DOUBLES),), {"axis": 1}),
    ("cupy.sort", (Ref(LONG),), None),
    ("cupy.argsort", (Ref(FLOATS),), {"axis": 1}),
    ("cupy.ndarray.__getitem__", (Ref(DOUBLES), Ref(PLACES)), None),
    ("cupy.take", (Ref(LONG), Ref(PLACES)), None),
    ("cupy.clip", (Ref(DOUBLES), -0.5, 0.5), None),
    ("cupy.ndarray.__pow__", (Ref(DOUBLES), 2), None),
    ("cupy.ndarray.__pow__", (Ref(DOUBLES), 3), None),
    ("cupy.diff", (Ref(LONG),), None),
    ("cupy.roll", (Ref(LONG), 3), None),
    ("cupy.linalg.norm", (Ref(LONG),), None),
    *((f"cupy.ndarray.{name}", (Ref(LONG),), None) for name in ("sum", "max", "mean")),
    ("cupy.outer", (Ref(PLACES), Ref(LONG)), None),
    ("cupy.tril", (Ref(SQUARE),), None),
    ("cupy.trace", (Ref(SQUARE),), None),
    ("cupy.matmul", (Ref(SQUARE), Ref(SQUARE)), None),
    ("cupy.zeros", (Tuple((5, 6)),), None),
    ("cupy.ones", (Tuple((5, 6)), "f4"), None),
    ("cupy.full", (3, 2.5), None),
    ("cupy.arange", (7,), None),
    ("cupy.arange", (7.0,), None),
    ("cupy.linspace", (0, 1, 11), None),
    ("cupy.searchsorted", (Ref(LONG), Ref(PLACES)), None),
    ("cupy.count_nonzero", (Ref(MASK),), None),
    ("cupy.isclose", (Ref(DOUBLES), Ref(DOUBLES)), None),
    ("cupy.logaddexp", (Ref(DOUBLES), Ref(FLOATS)), None),
    *((f"cupy.fft.{name}", (Ref(LONG),), None) for name in ("fft", "ifft", "rfft", "irfft", "hfft")),
    *((f"cupy.fft.{name}", (Ref(SQUARE),), None) for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "rfft")),
    *((f"cupy.fft.{name}", (Ref(FLOATS),), {"axis": 0, "norm": "ortho"}) for name in ("fft", "rfft", "irfft")),
    ("cupy.fft.fft", (_rows(DOUBLES, 3, 8),), {"n": 32}),
    ("cupy.fft.irfft", (Ref(LONG), 1000), None),
    ("cupy.fft.irfft2", (Ref(SQUARE),), {"s": Tuple((40, 39))}),
    ("cupy.add", (Ref(DOUBLES), 2.5), None),
]  # fmt: skip
WRITES: list[Asked] = [
    ("cupy.ndarray.fill", (Ref(DOUBLES), 3), None),
    ("cupy.ndarray.__setitem__", (Ref(DOUBLES), Ref(PLACES), 1.5), None),
    ("cupy.ndarray.__setitem__", (Ref(LONG), Ref(PLACES), Ref(PLACES)), None),
    ("cupy.ndarray.__setitem__", (Ref(DOUBLES), Ref(MASK), 0), None),
    ("cupy.copyto", (Ref(DOUBLES), Ref(FLOATS)), None),
    ("cupy.ndarray.sort", (Ref(LONG),), None),
    (".store", (_rows(DOUBLES, 2, 8), 2.5), None),
    (".store", (_rows(DOUBLES, 2, 8), _rows(FLOATS, 2, 4)), None),
    ("cupy.exp", (Ref(DOUBLES), Ref(DOUBLES)), None),
    ("cupy.subtract", (_rows(DOUBLES, 2, 8), _rows(DOUBLES, 3, 8), _rows(DOUBLES, 2, 8)), None),
]


def _given(seed: int) -> list[np.ndarray[Any, Any]]:
    numbers = np.random.default_rng(seed)
    return [
        numbers.normal(size=(ROWS, COLUMNS)),
        numbers.normal(size=(ROWS, COLUMNS)).astype("f4"),
        numbers.integers(-50, 50, (ROWS, COLUMNS)),
        numbers.random((ROWS, COLUMNS)) < 0.5,
        numbers.permutation(ROWS)[:20],
        numbers.normal(size=LONGEST),
        numbers.normal(size=(40, 40)),
    ]


@pytest.fixture(scope="module")
def cuda() -> Any:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice()


def _played(
    device: Any, passes: tuple[str, ...], op: Op, rounds: int, results: int = 1
) -> tuple[list[object], PlayedNotebook]:
    """Return what came out of ``op`` each time, with ever new operands elsewhere in memory."""
    made = tuple(range(op.out, op.out + results)) if op.out else ()
    on = PlayedNotebook(passes, device)
    drawn = random.Random(5)
    found: list[object] = []
    held = []
    for seed in range(rounds):
        for handle, array in enumerate(_given(seed), 1):
            on.stream.heap.put(handle, device.upload(array))
            on.stream.heap.ownership.own(handle)
        if drawn.random() < 0.3:
            held.append(device.upload(np.zeros(drawn.randint(1, 5000))))  # so that what comes next lies elsewhere
        errors = [(one.error.kind, one.error.message) for one in on.run(op) if one.error is not None]
        read = [Ref(one) for one in made] or [op.args[0]]
        found.append(errors or [on.contents(one).tobytes() for one in read])
        on.run(Op(".nothing", 0, (), made))
    return found, on


@pytest.mark.parametrize("asked", [*ASKED, *WRITES], ids=lambda asked: f"{asked[0]}-{str(asked[1:])[:40]}")
def test_a_replayed_op_gives_cupys_bits(cuda: Any, asked: Asked) -> None:
    name, args, kwargs = asked
    op = Op(name, 0 if asked in WRITES else 100, args, kwargs=kwargs)
    found, _ = _played(cuda, ("store", "reuse", "replay", "segments"), op, ROUNDS)
    assert found == _played(cuda, _OFF, op, ROUNDS)[0]


@pytest.mark.parametrize("name", ["sum", "max", "mean"])
def test_a_length_that_looks_like_an_address_is_none(cuda: Any, name: str) -> None:
    _, on = _played(cuda, ("store", "reuse", "replay"), Op(f"cupy.ndarray.{name}", 100, (Ref(LONG),)), 24)
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    assert on.stream._direct.replayer.replayed, on.stream._direct.replayer.refused


def test_most_are_replayed(cuda: Any) -> None:
    """Of what is asked above all but what waits for the device, or goes through a library of its own."""
    missed = {}
    for asked in [*ASKED, *WRITES]:
        name, args, kwargs = asked
        op = Op(name, 0 if asked in WRITES else 100, args, kwargs=kwargs)
        _, on = _played(cuda, ("store", "reuse", "replay"), op, 24)
        assert on.stream._direct is not None
        replayer = on.stream._direct.replayer
        assert replayer is not None
        if not replayer.replayed:
            missed[str(asked)[:100]] = dict(replayer.refused)
    assert len(missed) < 0.2 * len([*ASKED, *WRITES]), missed
    aligned = [one for one in missed if "cupy.fft." in one and "View" not in one]
    assert not aligned, missed


#: Transforms, with the shapes of what they are given: complex numbers, but for `rfft2`.
TRANSFORMS = [
    ("irfft2", (512, 257)), ("irfft2", (100, 51)), ("irfft2", (256, 129)), ("fft2", (512, 512)), ("rfft2", (512, 512)),
    ("irfftn", (32, 32, 17)), ("ifft2", (64, 96)), ("fft", (40, 1000)), ("irfft", (64, 129)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape"), TRANSFORMS, ids=str)
def test_a_transform_is_captured_whatever_its_library_leaves_unset(
    cuda: Any, name: str, shape: tuple[int, ...]
) -> None:
    """What stood on the stack stands in words of its parameters, and is another each time; the bits are CuPy's."""
    import cupy

    transform, dtype = getattr(cupy.fft, name), np.dtype("f8" if name == "rfft2" else "c16")
    transform(cupy.zeros(shape, dtype))
    for _ in range(6):
        cuda.replays.capture(transform, [Lying(0, contiguous(shape, dtype))], {})
    found = []
    for passes in (("store", "reuse", "replay"), _OFF):
        on, numbers = PlayedNotebook(passes, cuda), np.random.default_rng(8)
        results = []
        for _ in range(14):
            given = numbers.normal(size=(*shape, dtype.itemsize // 8)).view(dtype)[..., 0]
            on.stream.heap.put(1, cuda.upload(np.ascontiguousarray(given)))
            on.stream.heap.ownership.own(1)
            assert not on.run(Op(f"cupy.fft.{name}", 100, (Ref(1),)))
            results.append(on.contents(Ref(100)).tobytes())
            on.run(Op(".nothing", 0, (), (1, 100)))
        found.append(results)
        assert passes is _OFF or (
            on.stream._direct and on.stream._direct.replayer and on.stream._direct.replayer.replayed
        )
    assert found[0] == found[1]


def test_what_counts_its_calls_is_not_captured(cuda: Any) -> None:
    """It differs where all else is the same, as what nobody has set does; and it is read."""
    import cupy

    numbers = itertools.count(5)
    add = cupy.ElementwiseKernel("int64 x, int64 n", "int64 y", "y = x + n", "counted_calls")
    add(cupy.zeros(8, int), 1)
    with pytest.raises(Unrepeatable, match="parameters that differ"):
        cuda.replays.capture(lambda x: add(x, next(numbers)), [Lying(0, contiguous((8,), np.dtype("i8")))], {})


#: What makes several arrays, and how many.
SEVERAL: list[tuple[Asked, int]] = [
    (("cupy.histogram", (Ref(LONG),), {"bins": 16, "range": Tuple((-2.0, 3.0))}), 2),
    (("cupy.histogram", (_of_long((40, 7)), 9, Tuple((-1, 1))), None), 2),
    (("cupy.histogram", (Ref(INTS),), {"bins": 5, "range": Tuple((0, 20)), "density": True}), 2),
    (("cupy.gradient", (Ref(SQUARE),), None), 2),
    (("cupy.modf", (Ref(DOUBLES),), None), 2),
    (("cupy.divmod", (Ref(INTS), Ref(INTS)), None), 2),
    (("cupy.frexp", (Ref(FLOATS),), None), 2),
]


@pytest.mark.parametrize("asked", SEVERAL, ids=lambda asked: f"{asked[0][0]}-{str(asked[0][1:])[:40]}")
def test_each_of_several_results_has_cupys_bits(cuda: Any, asked: tuple[Asked, int]) -> None:
    (name, args, kwargs), results = asked
    op = Op(name, 100, args, kwargs=kwargs)
    found, on = _played(cuda, ("store", "reuse", "replay", "segments"), op, ROUNDS, results)
    assert found == _played(cuda, _OFF, op, ROUNDS, results)[0]
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    assert on.stream._direct.replayer.replayed, on.stream._direct.replayer.refused


#: What copies and does nothing else, with how many copies that counts as; the last two write into what is there.
COPYING: list[tuple[Asked, int]] = [
    (("cupy.roll", (Ref(LONG), 3), None), 2),
    (("cupy.roll", (Ref(DOUBLES), -7), {"axis": 1}), 2),
    (("cupy.roll", (Ref(MASK), Tuple((2, 3)), Tuple((0, 1))), None), 4),
    (("cupy.roll", (_rows(FLOATS, 1, 4, backwards=True), 5), {"axis": 0}), 2),
    (("cupy.concatenate", (List((Ref(DOUBLES), Ref(DOUBLES))),), {"axis": 1}), 1),
    (("cupy.stack", (List((Ref(MASK), Ref(MASK))),), {"axis": 2}), 1),
    (("cupy.stack", (List((Ref(LONG),) * 70),), None), 1),
    (
        (
            "cupy.concatenate",
            (List((Ref(FLOATS), _rows(FLOATS, 1, 4), _rows(FLOATS, 2, 4, backwards=True)) * 3),),
            {"axis": 1},
        ),
        1,
    ),
    (("cupy.tile", (Ref(INTS), 3), None), 1),
    (("cupy.repeat", (Ref(FLOATS), 2), {"axis": 0}), 1),
    (("cupy.pad", (Ref(SQUARE), 2), None), 2),
    (("cupy.zeros", (Tuple((5, 6)), "f4"), None), 1),
    (("cupy.zeros", (7, "?"), None), 1),
    (("cupy.ndarray.__setitem__", (Ref(DOUBLES), Tuple((Slice(None, None, None), 3)), _of_long((ROWS,))), None), 1),
    (("cupy.ndarray.__setitem__", (Ref(DOUBLES), Slice(2, 9, 2), _of_long((4, COLUMNS))), None), 1),
]


@pytest.mark.parametrize("asked", COPYING, ids=lambda asked: f"{asked[0][0]}-{str(asked[0][1:])[:40]}")
def test_what_copies_alone_is_gathered(cuda: Any, asked: tuple[Asked, int]) -> None:
    (name, args, kwargs), copies = asked
    op = Op(name, 0 if name.endswith("setitem__") else 100, args, kwargs=kwargs)
    for _ in range(1 + copies):  # a copy is asked for when those before it are compiled, which may be late in a turn
        _played(cuda, ("store", "reuse", "replay", "segments"), op, ROUNDS)
        await_compiler(cuda)
    found, on = _played(cuda, ("store", "reuse", "replay", "segments"), op, ROUNDS)
    assert found == _played(cuda, _OFF, op, ROUNDS)[0]
    direct = on.stream._direct
    assert direct is not None
    assert direct.segment is not None
    assert direct.replayer is not None
    gathered = direct.segment.table.gathered
    assert gathered, (direct.ways(), direct.replayer.refused)
    assert gathered % copies == 0
