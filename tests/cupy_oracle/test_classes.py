"""Results of calls with arrays of a program's own class are of the class that native CuPy gives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.devices import open_device
from gpu_backend.opstream import surface
from kernelproxy.calls import array_core, dispatch, result_classes
from kernelproxy.namespace.names import make
from tests.conformance.in_process import notebook_on
from tests.conformance.infer_calls import TEMPLATES, Array
from tests.conformance.subclass_calls import Library, asked, host_memory, told
from tests.cupy_suite.sources import CannotFetch

pytestmark = [pytest.mark.cupy_suite, pytest.mark.timeout(900)]

_REPOSITORY = Path(__file__).parents[2]
_SEED, _COUNT = 7, int(os.environ.get("CLASS_CALLS", "2"))
#: Where it goes by what no table tells.
KNOWN = {
    "cupy.einsum": "the class is kept if the last of its products contracts nothing",
    "cupy.polyval": "of booleans it is computed otherwise",
    "cupyx.scipy.signal.convolve": "it goes by the way that CuPy chooses",
    "cupyx.scipy.signal.correlate": "it goes by the way that CuPy chooses",
    "cupyx.scipy.linalg.fiedler_companion": "of two coefficients it is a quotient",
}


def _resolve(qualname: str) -> Any:
    owner, _, name = qualname.rpartition(".")
    is_member = isinstance(surface.load().get(owner), (surface.Class, surface.Ufunc))
    return getattr(make(owner), name) if is_member else make(qualname)


def _array(spec: Array) -> Any:
    host, layout, offset = host_memory(spec)
    return array_core.view_of(dispatch.upload(host), offset, layout)


def _names() -> list[str]:
    """Return functions of which calls are drawn, and those that the table tells of."""
    return sorted({*TEMPLATES, *result_classes.told_of()})


def test_results_are_of_the_class_that_cupy_gives_them() -> None:
    native = _native()
    wrong, counts = [], Counter[str]()
    with notebook_on(open_device("cpu")):
        library = Library(_resolve, make("cupy.ndarray"), _array)
        for one in asked(_names(), _SEED, _COUNT):
            found, said = told(library, one), native[repr(one)]
            is_told = "!" not in f"{found}{said}" and "own" in f"{found}{said}"
            counts["told"] += is_told
            if is_told and found != said and one.call.qualname not in KNOWN:
                wrong.append((one, found, said))
    assert wrong == []
    assert counts["told"] > 600


def _native() -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.cupy_oracle", "--run", "-m", "tests.cupy_oracle.classes"]
    path = os.pathsep.join([str(_REPOSITORY), *sys.path])
    ended = subprocess.run(
        [*command, str(_SEED), str(_COUNT), *_names()],
        cwd=_REPOSITORY, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode and CannotFetch.__name__ in ended.stderr and not os.environ.get("CI"):
        pytest.skip(ended.stderr.strip().splitlines()[-1])
    assert ended.returncode == 0, ended.stderr
    return {asked: said for asked, said, _ in map(json.loads, ended.stdout.splitlines())}
