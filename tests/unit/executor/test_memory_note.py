"""What goes with an allocation that failed: CuPy's own words, and whose limit it was."""

from __future__ import annotations

from gpu_backend.executor.memory_note import memory_note
from gpu_backend.wire.errors import ErrorRecord
from kernelproxy.errors import remote_exception


def test_the_limit_and_whose_it_is_are_said() -> None:
    note = memory_note(2 << 30, "it asked for that")
    assert note.startswith("This session may hold 2 GiB of device memory: it asked for that. Free arrays")
    assert "GPU_WORKBENCH_MEMORY" in note
    assert "no limit of its own" in memory_note(0, "")


def test_the_words_of_the_error_itself_stay_cupys() -> None:
    error = remote_exception(ErrorRecord("builtins.MemoryError", "Out of memory.", note="Whose limit."))
    assert str(error) == "Out of memory."
    assert error.__notes__ == ["Whose limit."]
