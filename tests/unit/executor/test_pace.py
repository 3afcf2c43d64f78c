"""How much work the device has under way."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.executor.pace import Pace


class SlowDevice:
    """A device whose markers are passed when the test says so."""

    def __init__(self) -> None:
        self.made = 0
        self.passed = 0

    def marker(self) -> Callable[[], bool]:
        self.made += 1
        number = self.made
        return lambda: self.passed >= number


def test_a_device_that_keeps_up_is_never_full() -> None:
    device = SlowDevice()
    pace = Pace(device.marker)
    for _ in range(10_000):
        pace.note_launches(1)
        device.passed = device.made
        assert not pace.is_full()
    assert device.made < 100  # and is hardly asked


def test_a_device_that_does_not_keep_up_gets_little_at_a_time() -> None:
    device = SlowDevice()
    pace = Pace(device.marker)
    launched = 0
    while not pace.is_full():
        pace.note_launches(1)
        launched += 1
    assert launched <= 4 * 256
    for _ in range(10):  # it goes on being slow: markers come closer
        device.passed += 1
        while not pace.is_full():
            pace.note_launches(1)
    device.passed += 1
    launched = 0
    while not pace.is_full():
        pace.note_launches(1)
        launched += 1
    assert launched == 1


def test_it_recovers_when_the_device_does() -> None:
    device = SlowDevice()
    pace = Pace(device.marker)
    for _ in range(2_000):
        if not pace.is_full():
            pace.note_launches(1)
    device.passed = 1_000_000
    for _ in range(20):
        assert not pace.is_full()
    before = device.made
    for _ in range(256):
        pace.note_launches(1)
    assert device.made == before + 1
