"""Two GPUs in one notebook: the same programs as on native CuPy, and copies from one to the other at its speed."""

from __future__ import annotations

import pytest

from gpu_backend.node.inventory import devices
from tests.gpu.conftest import Sides

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

TWO = {"GPU_WORKBENCH_DEVICES": "2"}
_HEAD = "import warnings, cupy as cp, numpy as np\n"
PROGRAMS = {
    "data parallel": """
rng = np.random.default_rng(0)
x, w = rng.random((4096, 256), "f4"), rng.random((256, 64), "f4")
parts = []
for number in range(2):
    with cp.cuda.Device(number):
        part, weights = cp.asarray(x[number * 2048 : (number + 1) * 2048]), cp.asarray(w)
        parts.append(cp.tanh(part @ weights).sum(axis=0))
results["devices"] = [one.device.id for one in parts]
results["sum"] = (cp.asarray(parts[0]) + cp.asarray(parts[1])).tolist()
""",
    "ring": """
with cp.cuda.Device(0):
    a = cp.arange(1 << 20, dtype="f8")
for turn in range(10):
    with cp.cuda.Device(turn % 2):
        a = cp.asarray(a) * 1.5 - a[::-1].copy() * 0.25 if a.device.id == turn % 2 else cp.asarray(a) + turn
results["device"], results["sum"], results["some"] = a.device.id, float(a.sum()), a[::99991].tolist()
""",
    "streams": """
streams = []
for number in range(2):
    with cp.cuda.Device(number):
        streams.append(cp.cuda.Stream(non_blocking=True))
made = []
for number in range(2):
    with cp.cuda.Device(number), streams[number] as stream:
        x = cp.full((512, 512), number + 1.0)
        for _ in range(10):
            x = x @ x / 512
        made.append(x)
        event = stream.record()
    event.synchronize()
results["streams"] = [one.device_id for one in streams]
results["sums"] = []
for one in made:
    with one.device:
        results["sums"].append(float(one.sum()))
""",
    "random": """
drawn = []
for number in (1, 0, 1):
    with cp.cuda.Device(number):
        cp.random.seed(number)
        drawn.append(cp.random.standard_normal(5).tolist())
results["drawn"] = drawn
""",
    "reaching over": """
with cp.cuda.Device(0):
    x = cp.arange(10.0)
with cp.cuda.Device(1):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            y = x * 2
            results["made"] = [y.device.id, y.tolist()]
        except ValueError as error:
            results["refused"] = str(error)
    results["warned"] = [f"{one.category.__name__}: {one.message}" for one in caught]
    z = cp.empty(10)
    z[...] = x
    cp.copyto(z[::2], x[::2])
    results["stored"], results["copied"] = z.tolist(), x.copy().tolist()
    for number in (0, 1):
        try:
            results[f"F copy {number}"] = cp.array(cp.asfortranarray(x.reshape(2, 5)) if number else x).tolist()
        except Exception as error:
            results[f"F copy {number}"] = str(error)
results["peers"] = [cp.cuda.runtime.deviceCanAccessPeer(0, 1), cp.cuda.runtime.deviceCanAccessPeer(1, 0)]
""",
    "a compiled file": r"""
import tempfile
with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
    file.write('''.version 7.0
.target sm_70
.address_size 64
.visible .entry mark(.param .u64 into) {
    .reg .b64 %at<3>;
    .reg .b32 %seven;
    ld.param.u64 %at1, [into];
    cvta.to.global.u64 %at2, %at1;
    mov.u32 %seven, 7;
    st.global.u32 [%at2], %seven;
    ret;
}
''')
    file.flush()
    module = cp.RawModule(path=file.name)
    marks = []
    for number in (0, 1, 0):
        with cp.cuda.Device(number):
            into = cp.zeros(1, "i4")
            module.get_function("mark")((1,), (1,), (into,))
            marks.append(into.tolist())
results["marks"] = marks
""",
    "memory": """
pool = cp.get_default_memory_pool()
kept = []
for number in range(2):
    with cp.cuda.Device(number):
        before = pool.used_bytes()
        kept.append(cp.zeros((number + 1) << 20, "u1"))
        results[f"used {number}"] = pool.used_bytes() - before
""",
    "linear algebra": """
for number in range(2):
    with cp.cuda.Device(number):
        rng = np.random.default_rng(number)
        a = cp.asarray(rng.random((64, 64)) + np.eye(64) * 64)
        b = cp.asarray(rng.random(64))
        solved = cp.linalg.solve(a, b)
        spectrum = cp.fft.rfft(b)
        results[str(number)] = [np.round(cp.asnumpy(solved), 12).tolist(), float(abs(spectrum).sum()), solved.device.id]
""",
    "an array over both": """
import cupyx.distributed.array as da
rng = np.random.default_rng(2)
a, b = rng.integers(0, 100, (64, 96)), rng.integers(0, 100, (96, 48))
x = da.distributed_array(a, da.make_2d_index_map([0, 32, 64], [0, 48, 96], [[{0}, {1}], [{1}, {0}]]))
y = da.distributed_array(b, da.make_2d_index_map([0, 48, 96], [0, 48], [[{0, 1}], [{0, 1}]]))
product = x @ y
results["product"], results["mode"] = product.get().tolist(), product.mode is da.SUM
rows = x.reshard({0: [slice(40)], 1: [slice(30, None)]})
results["rows"] = {number: [str(one) for one in places] for number, places in rows.index_map.items()}
results["overlap"] = [cp.asnumpy(chunk).tolist() for chunks in rows.all_chunks().values() for chunk in chunks]
squares = rows * rows
results["reduced"] = [one.get().tolist() for one in (squares.sum(axis=0), squares.max(axis=1), cp.prod(rows, axis=0))]
results["summed"] = cp.sqrt(product.change_mode(da.REPLICA)).sum(axis=0).get().tolist()
""",
}
_PASSING = """
import kernelproxy
with cp.cuda.Device(0):
    x = cp.arange(1 << 24)
with cp.cuda.Device(1):
    y = cp.empty(1 << 24, x.dtype)
    y[...] = x
    results["last"] = int(y[-1])
counters = kernelproxy.current_session().pipeline.counters
results["passed"] = sum((*counters.sent_bytes.values(), *counters.received_bytes.values()))
"""


_REACHING = """
with cp.cuda.Device(1):
    x, h, m = cp.arange(1000.0), cp.ones(1000, "e"), cp.ones((64, 64))
results["whole"], results["largest"], results["place"] = float(x.sum()), float(x.max()), int(x.argmax())
results["halves"], results["parts"] = float(h.sum()), cp.histogram(x, 4)[0].tolist()
results["product"] = float((m @ m)[3, 5])
"""


@pytest.fixture(scope="module", autouse=True)
def _two_gpus() -> None:
    if len(devices("auto", 0)) < 2:
        pytest.skip("needs two GPUs")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_same(sides: Sides, name: str) -> None:
    program = _HEAD + PROGRAMS[name]
    assert sides.remote(program, **TWO) == sides.native(program)


def test_what_is_no_kernel_of_cupys_own_reaches_over_too(sides: Sides) -> None:
    """Natively these end in an illegal access: CuPy lets a device read another's memory for its own kernels only."""
    program = _HEAD + _REACHING
    assert sides.remote(program, **TWO) == {
        "whole": 499500.0, "largest": 999.0, "place": 999, "halves": 1000.0, "parts": [250, 250, 250, 250],
        "product": 64.0,
    }  # fmt: skip


def test_copies_do_not_pass_the_notebook(sides: Sides) -> None:
    """How fast they are `benchmarks/peers.py` shows."""
    assert sides.remote(_HEAD + _PASSING, **TWO) == {"last": (1 << 24) - 1, "passed": 8}


def test_there_are_two_and_no_more(sides: Sides) -> None:
    asked = _HEAD + "results['count'] = cp.cuda.runtime.getDeviceCount()\nresults['one'] = cp.zeros(1).device.id\n"
    assert sides.remote(asked, **TWO) == {"count": 2, "one": 0}
    assert sides.remote(asked) == {"count": 1, "one": 0}
