"""What goes with an allocation that failed: CuPy's own words, and whose limit it was."""

from __future__ import annotations

from gpu_backend.devices.base import MemoryUse
from gpu_backend.devices.cpu.memory import OutOfMemoryError
from gpu_backend.executor.memory_note import memory_note
from gpu_backend.wire.errors import ErrorRecord
from gpu_backend.wire.memory_rules import REST_OF_QUOTA
from kernelproxy.errors import remote_exception

GIB = 1 << 30
USE = MemoryUse(used_bytes=3 * GIB, limit_bytes=0, free_bytes=GIB >> 1, total_bytes=24 * GIB)


def note(asked_bytes: int, limit_bytes: int = 0, rule: str = "") -> str:
    return memory_note(limit_bytes, rule, str(OutOfMemoryError(asked_bytes, 3 * GIB, limit_bytes)), USE)


def test_the_limit_and_whose_it_is_are_said() -> None:
    said = note(GIB, 2 * GIB, "it asked for that")
    assert said.startswith("This session may hold 2 GiB of device memory: it asked for that. Free arrays")
    assert "GPU_WORKBENCH_MEMORY" in said
    assert "up to what you may have (`%gpu usage`)" in said


def test_where_all_of_the_quota_is_given_no_session_is_told_to_ask_for_more() -> None:
    for asked in (GIB, 3 * GIB):
        said = note(asked, 2 * GIB, f"{REST_OF_QUOTA}; all your sessions together may hold 8 GiB")
        assert said.endswith(", or end another session of yours, or ask the pool's operator for a larger quota.")
        assert "asks for more" not in said


def test_what_is_full_is_told_with_the_figures() -> None:
    said = note(GIB)
    assert "no limit of its own" in said
    assert "Of the device's 24 GiB it holds 3 GiB and 512 MiB are free" in said


def test_a_full_device_is_not_laid_to_a_limit_that_was_not_met() -> None:
    said = note(GIB, 8 * GIB, "it asked for that")
    assert said.startswith("This session is within its own limit. Of the device's 24 GiB it holds 3 GiB")
    assert "asks for more" not in said


def test_what_no_freeing_could_make_room_for_is_told_so() -> None:
    beyond_the_device, beyond_the_limit = note(320 * GIB), note(3 * GIB, 2 * GIB)
    assert "The whole device has 24 GiB" in beyond_the_device
    assert "more than that alone" in beyond_the_limit
    for said in (beyond_the_device, beyond_the_limit):
        assert "Free arrays" not in said
        assert "full" not in said
        assert "in parts" in said


def test_words_that_name_no_amount_do_no_harm() -> None:
    assert "no limit of its own" in memory_note(0, "", "CUDA error: out of memory", USE)


def test_the_words_of_the_error_itself_stay_cupys() -> None:
    error = remote_exception(ErrorRecord("builtins.MemoryError", "Out of memory.", note="Whose limit."))
    assert str(error) == "Out of memory."
    assert error.__notes__ == ["Whose limit."]
