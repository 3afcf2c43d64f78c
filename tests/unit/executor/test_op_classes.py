"""Which class an op belongs to, and how a run of ops is counted."""

from __future__ import annotations

import pytest

from gpu_backend.executor.op_classes import _CLASS_OF, HOST, OpClasses
from gpu_backend.opstream.surface import load
from gpu_backend.wire.messages import Op
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cupy.add", OpClass.ELEMENTWISE),
        ("cupy.ndarray.__add__", OpClass.ELEMENTWISE),
        ("cupyx.scipy.special.erf", OpClass.ELEMENTWISE),
        ("cupy.ndarray.sum", OpClass.REDUCTION),
        ("cupy.add.reduce", OpClass.REDUCTION),
        ("cupy.matmul", OpClass.LINALG),
        ("cupy.linalg.svd", OpClass.LINALG),
        ("cupyx.scipy.fft.rfft2", OpClass.LINALG),
        (".call", OpClass.KERNEL),
        (".launch", OpClass.KERNEL),
        (".same", OpClass.MEMORY),
        ("cupy.ndarray.__getitem__", OpClass.MEMORY),
        ("cupy.sort", OpClass.OTHER),
        ("cupy.random.rand", OpClass.OTHER),
        ("nobody.knows.this", OpClass.OTHER),
    ],
)
def test_each_op_has_a_class(name: str, kind: OpClass) -> None:
    assert OP_CLASSES[OpClasses()[name]] is kind


@pytest.mark.parametrize("name", [".nothing", "cupy.RawKernel", "cupy.cuda.Stream"])
def test_what_gives_the_device_nothing_to_do_has_none(name: str) -> None:
    assert OpClasses()[name] == HOST


def test_every_name_that_is_sorted_is_one_of_cupys() -> None:
    public = {name.rpartition(".")[2] for name in load()}
    unknown = {name for name in _CLASS_OF if not name.startswith((".", "__"))} - public
    assert not unknown


def test_of_a_long_run_some_stand_for_all_and_in_the_long_run_each_class_has_its_part() -> None:
    classes, counts = OpClasses(), [0] * (HOST + 1)
    ops = tuple(Op(name, 0, ()) for name in ("cupy.add", "cupy.sin", "cupy.ndarray.sum", "cupy.matmul") * 16)
    for _ in range(64):
        classes.count(ops, 0, len(ops), counts)
    assert sum(counts) == 64 * 64
    found = {kind: counts[place] / sum(counts) for place, kind in enumerate(OP_CLASSES) if counts[place]}
    expected = {OpClass.ELEMENTWISE: 0.5, OpClass.REDUCTION: 0.25, OpClass.LINALG: 0.25}
    assert found == pytest.approx(expected, abs=0.01)


def test_a_short_run_is_counted_op_by_op() -> None:
    classes, counts = OpClasses(), [0] * (HOST + 1)
    classes.count((Op("cupy.add", 0, ()), Op("cupy.matmul", 0, ()), Op(".nothing", 0, ())), 1, 3, counts)
    assert counts[OP_CLASSES.index(OpClass.LINALG)] == counts[HOST] == 1
    assert sum(counts) == 2


def test_a_question_by_itself_is_told_apart_and_nothing_else() -> None:
    classes, counts = OpClasses(), [0] * (HOST + 1)
    ops = [Op(name, 0, ()) for name in (".ways", ".layout", "cupy.cuda.runtime.memset", ".setattr", "cupy.add")]
    assert [classes.count(ops, place, place + 1, counts) for place in range(5)] == [True, True, False, False, False]
    assert not classes.count([Op(".getattr", 0, ()), Op("cupy.matmul", 0, ())] * 16, 0, 32, counts)
    assert not classes.count(ops, 0, 2, counts)
