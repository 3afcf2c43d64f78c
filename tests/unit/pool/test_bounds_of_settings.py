"""Numbers that nothing can hold, and values of another kind: refused by name when ``pool.toml`` is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.settings import PoolSettings, SharedByMps
from gpu_backend.wire.errors import PoolRefusal

#: What stands for any number that is beyond 64 bits, or beyond what clocks can wait for.
HUGE = {int: "99999999999999999999", float: "1e300"}


def numbers(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        if field.annotation in (int, float):
            yield name, field.annotation


EVERY = [(name, kind, "{} = {}") for name, kind in numbers(PoolSettings)] + [
    (name, kind, "devices_shared_by_mps = {{ 0 = {{ group = 'a', {} = {} }} }}") for name, kind in numbers(SharedByMps)
]


def refusal(path: Path, text: str) -> str:
    (path / "pool.toml").write_text(text)
    with pytest.raises(PoolRefusal) as told:
        pool_settings.read(path / "pool.toml")
    return str(told.value)


def test_all_numbers_are_looked_at() -> None:
    assert {"lease_seconds", "sessions_per_device", "max_gpu_seconds_per_group_and_month"} <= {
        name for name, *_ in EVERY
    }


@pytest.mark.parametrize(("name", "kind", "line"), EVERY)
def test_every_number_has_bounds_and_is_taken_for_nothing_else(
    name: str, kind: type[float], line: str, tmp_path: Path
) -> None:
    for value in ("inf", "-inf", "nan", HUGE[kind], "true", "'8'"):
        assert f"{name}: it is to be " in refusal(tmp_path, line.format(name, value)), value


def test_a_whole_number_will_do_where_a_fraction_may_stand(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text("lease_seconds = 60")
    assert pool_settings.read(tmp_path / "pool.toml").lease_seconds == 60.0


def test_a_number_of_thousands_of_digits_is_refused_with_the_file(tmp_path: Path) -> None:
    assert "pool.toml cannot be read: " in refusal(tmp_path, f"sessions_per_device = {5000 * '9'}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lease_secnds = 5", "there is no setting 'lease_secnds' (did you mean lease_seconds?)."),
        ("zzz = 5", "there is no setting 'zzz'."),
        (
            "devices_shared_by_mps = { 0 = { group = 'a', threads = 5, thread_percent = 5 } }",
            "devices_shared_by_mps.0: there is no setting 'thread_percent' (did you mean threads_percent?).",
        ),
    ],
)
def test_a_setting_that_there_is_not_is_told_with_one_that_is_near(line: str, said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path, line)
    assert "Extra inputs" not in refusal(tmp_path, line)


@pytest.mark.parametrize(
    "line", ["device_policies = { 2 = 'driver' }", "devices_shared_by_mps = { 2 = { group = 'vision' } }"]
)
def test_a_device_that_cannot_be_there_is_told(line: str, tmp_path: Path) -> None:
    text = f"devices = 'cpu'\ncpu_devices = 2\n{line}\n"
    assert "there is no device 2: cpu_devices is 2, counted from 0." in refusal(tmp_path, text)
    (tmp_path / "pool.toml").write_text(text.replace("{ 2 =", "{ 1 ="))
    assert pool_settings.read(tmp_path / "pool.toml").numbered == [1]
