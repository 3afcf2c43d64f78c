"""The benchmark of copies from device to device runs as its documentation says, and says what passed the notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.benchmark_run import run_benchmark

pytestmark = pytest.mark.timeout(240)


def test_what_is_copied_from_device_to_device_does_not_pass_the_notebook(tmp_path: Path) -> None:
    told = run_benchmark(tmp_path, "benchmarks/peers.py")
    assert re.search(r"1,024 KiB  remote +[\d.]+ µs", told), told
    passed = re.search(r"^([\d,]+) bytes of arrays passed", told, re.MULTILINE)
    assert passed is not None, told
    assert int(passed[1].replace(",", "")) < 1_000
