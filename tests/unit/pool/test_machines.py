"""Invitations: for how long they can be good, said before anything is recorded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.pool import machines, setup, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolRefusal
from workbench import cli


@pytest.mark.parametrize("hours", [float("inf"), float("nan"), 0.0, -1.0, 1e9, 8_760.5])
def test_an_invitation_for_what_is_no_time_is_refused_and_the_one_before_stays(tmp_path: Path, hours: float) -> None:
    pool = state.at(tmp_path / "pool")
    setup.prepare(pool, PoolSettings(nodes_host="127.0.0.1"))
    earlier = curve.generate().public.decode()
    with closing(Directory(pool.directory_file)) as records:
        records.invite("m", earlier, 1e10)
        with pytest.raises(PoolRefusal, match=r"--hours: .* more than 0 hours and up to 8,760, not "):
            machines.invite(pool, "m", hours)
        assert records.invited(earlier, 0.0) == "m"


@pytest.mark.parametrize("said", ["inf", "nan", "0", "-2", "1e9", "soon"])
def test_the_command_line_refuses_it_as_wrong_usage(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.parsed(("node", "invite", "m", f"--hours={said}"))
    assert ended.value.code == 2
    assert "hours" in capsys.readouterr().err.splitlines()[-1]


def test_a_year_is_the_most(tmp_path: Path) -> None:
    pool = state.at(tmp_path / "pool")
    setup.prepare(pool, PoolSettings(nodes_host="127.0.0.1"))
    assert machines.invite(pool, "m", 8_760.0).node == "m"
