"""Gemini's token with the constants of KubeShare's launcher."""

from __future__ import annotations

from typing import ClassVar

from gpu_backend.arbiter.policies.gemini import Gemini

__all__ = ["KubeShare"]


class KubeShare(Gemini):
    """Request and limit of each session, enforced on the device by Gemini's token.

    Taken from the system: the launcher's base quota of 300 ms, minimum of 20 ms and window of 10 s.

    Not done here: which device a session goes to (best fit on what is left, and the labels) is placement, which a
    device's policy does not see; sessions take the place of pods; memory is bounded elsewhere.

    Sources: NTHU-LSALAB/KubeShare release-1.0 at 23fe943; Yeh et al., KubeShare, HPDC 2020, doi
    10.1145/3369583.3392679.
    """

    name: ClassVar[str] = "kubeshare"
    base_quota_seconds: ClassVar[float] = 0.3
    min_quota_seconds: ClassVar[float] = 0.02
