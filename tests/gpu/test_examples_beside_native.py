"""Every example gives through the pool what it gives on native CuPy, bit for bit where it is deterministic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Sides

pytestmark = [pytest.mark.gpu_long, pytest.mark.timeout(600)]

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9]*.ipynb"))

#: Puts the digest of every array and the text of every number that the example leaves behind into ``results``.
COLLECT = """
import hashlib as _hashlib, numbers as _numbers
import numpy as _np, cupy as _cp
for _name, _value in sorted(list(globals().items())):
    if _name.startswith("_") or _name == "results":
        continue
    if isinstance(_value, _cp.ndarray):
        _value = _value.get()
    if isinstance(_value, _np.ndarray) and _value.dtype.kind in "biufc":
        results[_name] = [str(_value.dtype), list(_value.shape), _hashlib.sha256(_value.tobytes()).hexdigest()]
    elif isinstance(_value, (bool, int, float, complex)) and "second" not in _name and "time" not in _name:
        results[_name] = repr(_value)
"""


def code_of(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code") + COLLECT


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_gives_the_same(sides: Sides, path: Path) -> None:
    program = code_of(path)
    native, again, remote = sides.native(program), sides.native(program), sides.remote(program)
    assert native
    deterministic = {name: value for name, value in native.items() if again[name] == value}
    assert len(deterministic) > len(native) // 2
    different = {name: (value, remote[name]) for name, value in deterministic.items() if remote[name] != value}
    assert different == {}
