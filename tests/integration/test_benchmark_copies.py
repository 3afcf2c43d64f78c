"""The benchmark of copies runs as its documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.benchmark_run import run_benchmark

pytestmark = pytest.mark.timeout(240)


def test_it_copies_by_every_way_and_beside_native(tmp_path: Path) -> None:
    told = run_benchmark(tmp_path, "benchmarks/copies.py", "--most", "1")
    for name in ("up 4 KiB", "up 1 MiB", "down 1 MiB"):
        (line,) = [one for one in told.splitlines() if name in one]
        assert line.count("GB/s") == 3
    assert "8 MiB" not in told
    assert "the same 1 MiB again, over TLS, 10 ms away, 1 Gb/s" in told
