"""What the pool's own processes may have more of than executors, so that no executor can have it all."""

from __future__ import annotations

import resource

__all__ = ["take_all_descriptors"]


def take_all_descriptors() -> None:
    """Let this process have as many descriptors as it ever may.

    So many, too, may be on their way between processes of its account when it passes one on, whoever's they are. An
    executor may have fewer (`gpu_backend.executor.sandbox.privileges`), so it cannot keep this process from that.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
