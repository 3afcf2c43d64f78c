"""What a person reads about sharing, use and limits, and what is kept of what they ask for."""

from __future__ import annotations

from datetime import date
from math import inf, nan

import msgspec
import pytest

from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import DeviceView, PoolView, QuotaView, SessionView, UsageRow, UsageView, WaiterView
from gpu_backend.wire.wish import Wish
from kernelproxy import settings
from kernelproxy.session.amounts import bytes_from_words, seconds_in_words
from kernelproxy.session.wishes import LIMIT_VARIABLE, PRIORITY_VARIABLE, WHOLE_DEVICE_VARIABLE, Wishes
from tests.unit.workbench.scripted_gateway import ScriptedGateway
from workbench import connecting
from workbench.sharing import SharingFacts, UsageFacts, since_day
from workbench.status import GpuStatus, PoolFacts

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "count"),
    [("4096", 4096), ("4GiB", 4 << 30), ("1.5 gib", 3 << 29), ("2 MB", 2_000_000), (" 7 b ", 7), ("1TiB", 1 << 40)],
)
def test_amounts_of_memory(text: str, count: int) -> None:
    assert bytes_from_words(text) == count


@pytest.mark.parametrize("text", ["", "much", "4 GiB/s", "-1", "1e9", "4 XB"])
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 4GiB"):
        bytes_from_words(text)


@pytest.mark.parametrize("text", ["1025 TiB", "99999999999999999999 GiB", "18446744073709551616", 400 * "9"])
def test_more_memory_than_there_can_be(text: str) -> None:
    assert bytes_from_words("1024 TiB") == 1 << 50
    with pytest.raises(ValueError, match=r"more memory than there can be; the most is 1024\.0 TiB"):
        bytes_from_words(text)


@pytest.mark.parametrize("text", ["0.1", "0.4 B", "0.0000001KiB"])
def test_less_than_a_byte_is_not_taken_for_no_limit(text: str) -> None:
    assert bytes_from_words("0") == bytes_from_words("0.0GiB") == 0
    with pytest.raises(ValueError, match="is less than a byte"):
        bytes_from_words(text)


def test_a_small_number_without_a_unit_is_asked_about() -> None:
    with pytest.raises(ValueError, match=r"'40' is 40 bytes; write 40GiB, or 40B if you mean it\."):
        bytes_from_words("40")
    assert bytes_from_words("40B") == 40


def test_lengths_of_time() -> None:
    lengths = (0.0, 0.0123, 59.9, 90, 3600, 36_000_000)
    assert [seconds_in_words(length) for length in lengths] == [
        "0 s", "0.0123 s", "59.9 s", "1 min 30 s", "1 h 0 min", "10,000 h 0 min",
    ]  # fmt: skip


@pytest.mark.parametrize(("length", "told"), [(nan, "0 s"), (-5.0, "0 s"), (inf, seconds_in_words(1 << 50))])
def test_lengths_of_time_that_cannot_be(length: float, told: str) -> None:
    """An executor, or a pool, may say what it likes."""
    assert seconds_in_words(length) == told


@pytest.mark.parametrize(
    ("text", "day"),
    [("", ""), ("today", "2026-11-21"), ("7d", "2026-11-14"), ("0d", "2026-11-21"), ("2026-01-31", "2026-01-31")],
)
def test_days(text: str, day: str) -> None:
    assert since_day(text, TODAY) == day


@pytest.mark.parametrize("text", ["yesterday", "31.1.2026", "99999d", "2026-02-30", "-1d"])
def test_no_days(text: str) -> None:
    if text == "99999d":  # older than any pool, and still a day
        assert since_day(text, TODAY) < "1800"
        return
    with pytest.raises(PoolRefusal, match="is no day"):
        since_day(text, TODAY)


def test_own_use_limits_and_the_others_sum_are_shown() -> None:
    rows = (
        UsageRow("", "", "", "", "2026-11-21", 2, 100.0, 0, 0, 0),
        UsageRow("ada", "lab", "", "", "2026-11-21", 1, 90.0, 1 << 30, 1 << 20, 1 << 20),
    )
    quotas = (QuotaView("you", "GPU seconds per day", 90.0, 3600.0), QuotaView("group lab", "memory bytes", 0, 1 << 30))
    shown = UsageFacts(UsageView(0, "ada", "day", "", rows, quotas))
    text = repr(shown)
    assert "2026-11-21" in text
    assert "1 min 30 s of GPU time, at most 1.0 GiB of memory, 2.0 MiB moved" in text
    assert "90 of 3,600" in text
    assert "memory (group lab)" in text
    assert "0 B of 1.0 GiB" in text
    assert "1 min 40 s" in text
    told = shown.to_dict()
    assert told["rows"][1]["gpu_seconds"] == 90.0
    linalg = UsageRow("ada", "", "", "", "", 1, 60.0, 0, 0, 0, "linalg")
    assert "linalg" in repr(UsageFacts(UsageView(0, "ada", "class", "", (linalg,), ())))
    assert "nothing yet" in repr(UsageFacts(UsageView(0, "ada", "day", "", (), ())))


def test_a_wish_is_shown_in_words_and_numbers() -> None:
    shown = SharingFacts(Wish("best-effort", 0.25, 0.5, 2), is_open=True)
    for words in ("best-effort", "25%", "50%", "this session"):
        assert words in repr(shown)
    told = shown.to_dict()
    assert (told["class"], told["request"], told["limit"], told["priority"]) == ("best-effort", 0.25, 0.5, 2)
    assert "apart from 'replica'" in repr(SharingFacts(Wish(anti_affinity="replica"), is_open=True))
    assert SharingFacts(Wish(), is_open=False).to_dict()["class"] == ""
    assert "interactive unless its operator" in repr(SharingFacts(Wish(), is_open=False))


def test_what_was_said_comes_before_the_environment_and_that_before_the_file(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.save(msgspec.structs.replace(settings.load(), session_class="production", priority=3, memory="1 GiB"))
    wishes = Wishes()
    assert wishes.wished(settings.load()) == (Wish("production", 0.0, 1.0, 3), 1 << 30)
    monkeypatch.setenv("GPU_WORKBENCH_CLASS", "interactive")
    monkeypatch.setenv("GPU_WORKBENCH_MEMORY", "2GiB")
    assert wishes.wished(settings.load()) == (Wish("interactive", 0.0, 1.0, 3), 2 << 30)
    wishes.said = Wish("best-effort")
    assert wishes.wished(settings.load()) == (Wish("best-effort"), 2 << 30)
    monkeypatch.setenv("GPU_WORKBENCH_AFFINITY", "train")
    monkeypatch.setenv("GPU_WORKBENCH_WHOLE_DEVICE", "1")
    assert wishes.wished(settings.load()).wish == Wish("best-effort", affinity="train", is_whole=True)
    wishes.memory_bytes, wishes.label = 3 << 20, "own"
    assert wishes.wished(settings.load()).memory_bytes == 3 << 20
    assert wishes.opening(settings.load()).label == "own"


@pytest.mark.parametrize("setting", ["memory", "GPU_WORKBENCH_PRIORITY"])
def test_a_wish_that_makes_no_sense_is_named(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    if setting == "memory":
        settings.save(msgspec.structs.replace(settings.load(), memory="lots"))
    else:
        monkeypatch.setenv(setting, "first")
    with pytest.raises(PoolRefusal, match="client.toml" if setting == "memory" else setting):
        Wishes().wished(settings.load())


def test_connecting_keeps_what_sessions_ask_for(gateway: ScriptedGateway) -> None:
    settings.save(msgspec.structs.replace(settings.load(), session_class="best-effort", limit=0.5))
    known = settings.load()
    connecting.connect(gateway.endpoint, known.server_key, known.key_file)
    kept = settings.load()
    assert (kept.session_class, kept.limit, kept.key_file) == ("best-effort", 0.5, known.key_file)


def test_status_tells_class_and_queue() -> None:
    own = SessionView("s1", "ada", "", "serving", 1, "n", 0, 0, 0.0, True, "best-effort", is_over_quota=True)
    device = DeviceView("n", 0, "cpu", "a CPU", 1, 1, 1)
    view = PoolView(0, "lab", "1", "ada", 0.0, (device,), (own,), (WaiterView(1, "", "", 5.0, False),))
    facts = PoolFacts.of(view, "tcp://gpu:1")
    assert facts.waiting == 1
    shown = repr(GpuStatus(session="s1", epoch=1, sharing="best-effort", pool=facts))
    assert "best-effort" in shown
    assert "1 of 1 taken, 1 by you; 1 more waits for one" in shown


def test_status_counts_arrays_that_the_pool_has_not_heard_of() -> None:
    own = SessionView("s1", "ada", "", "serving", 1, "n", 0, 0, 0.0, True, used_bytes=1 << 20)
    device = DeviceView("n", 0, "cpu", "a CPU", 1 << 30, 1, 1, used_bytes=3 << 20)
    view = PoolView(0, "lab", "1", "ada", 0.0, (device,), (own,), ())
    memory = GpuStatus(session="s1", held_bytes=5 << 20)._with_pool(view, "tcp://gpu:1").memory
    assert (memory["used_bytes"], memory["free_bytes"]) == (5 << 20, (1 << 30) - (7 << 20))
    memory = GpuStatus(session="s1", held_bytes=1 << 10)._with_pool(view, "tcp://gpu:1").memory
    assert (memory["used_bytes"], memory["free_bytes"]) == (1 << 20, (1 << 30) - (3 << 20))


def test_status_counts_all_devices_of_a_session() -> None:
    own = SessionView("s1", "ada", "", "serving", 1, "n", 0, 1 << 20, 0.0, True, used_bytes=300, others=(2,))
    devices = tuple(DeviceView("n", number, "cuda", "a GPU", 1 << 30, 1, 4, 100 * number, 0.4) for number in range(3))
    view = PoolView(0, "lab", "1", "ada", 0.0, devices, (own,), ())
    assert PoolFacts.of(view, "tcp://gpu:1").mine == 2
    status = GpuStatus(session="s1")._with_pool(view, "tcp://gpu:1")
    assert status.memory == {
        "used_bytes": 300, "limit_bytes": 2 << 20, "free_bytes": (2 << 30) - 200, "total_bytes": 2 << 30
    }  # fmt: skip
    assert "2 devices, each a GPU, 40% busy" in repr(status)
    processors = tuple(msgspec.structs.replace(one, kind="cpu") for one in devices)  # of one machine, and its memory
    memory = GpuStatus(session="s1")._with_pool(msgspec.structs.replace(view, devices=processors), "").memory
    assert (memory["free_bytes"], memory["total_bytes"]) == ((1 << 30) - 200, 1 << 30)


@pytest.mark.parametrize(
    ("said", "is_whole"), [("1", True), ("true", True), ("Yes", True), ("0", False), ("no", False)]
)
def test_a_device_of_its_own_is_asked_for_as_people_say_it(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch, said: str, is_whole: bool
) -> None:
    monkeypatch.setenv(WHOLE_DEVICE_VARIABLE, said)
    assert Wishes().wished(settings.load()).wish.is_whole == is_whole


@pytest.mark.parametrize(
    ("variable", "said", "told"),
    [
        (LIMIT_VARIABLE, "400MiB", "'400MiB' is no number"),
        (PRIORITY_VARIABLE, "1.5", "'1.5' is no number without a fraction"),
    ],
)
def test_what_is_no_number_is_told_so(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch, variable: str, said: str, told: str
) -> None:
    monkeypatch.setenv(variable, said)
    with pytest.raises(PoolRefusal, match=f"{variable} is not right: {told}$"):
        Wishes().wished(settings.load())


def test_what_is_neither_true_nor_false_is_told_so(gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHOLE_DEVICE_VARIABLE, "please")
    with pytest.raises(
        PoolRefusal, match="GPU_WORKBENCH_WHOLE_DEVICE is not right: 'please' is neither true nor false"
    ):
        Wishes().wished(settings.load())
