"""What is not seen from outside is said once, and metering goes on by what executors report."""

from __future__ import annotations

import logging
import os

import pytest

from gpu_backend.metering.meters import meter_of


def test_an_instance_of_a_gpu_is_used_unseen_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        meter = meter_of("cuda", "MIG-5e0a9a2f-0d8e-5b2c-9f1d-2b7c5a1f4e30")
        assert [meter.seen(os.getpid()) for _ in range(3)] == [None, None, None]
    assert meter.problem == "NVML does not say who uses an instance of a GPU (MIG)"
    assert [record.getMessage() for record in caplog.records] == [
        f"what executors say that they use is not seen from outside: {meter.problem}"
    ]
    meter.close()
