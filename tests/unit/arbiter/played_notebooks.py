"""What notebooks do on a played device: hogs, and somebody who computes something small now and then."""

from __future__ import annotations

from gpu_backend.wire.op_classes import OpClass
from tests.unit.arbiter.played_device import ROUND_TRIP, Life, Op, Player, Process, World, asleep, busy


def hog(
    world: World, player: Player, kernel_seconds: float, chunk_seconds: float = 0.05, kind: OpClass = OpClass.OTHER
) -> None:
    """Launch kernels of that length for ever, with a wait behind each chunk."""
    chunk = max(1, round(chunk_seconds / kernel_seconds))

    def live() -> Life:
        while True:
            answered = player.answered
            for start in range(0, chunk, 64):
                player.ask([Op(kernel_seconds, kind=kind)] * min(64, chunk - start))
                yield busy(4e-6 * 64)
            player.ask([Op(0.0, is_awaited=True)])
            while player.answered == answered:
                yield asleep(1.0)
            yield busy(ROUND_TRIP)

    player.notebook = Process(world.clock, live())


def ticks(world: World, player: Player, taken: list[float], period: float = 0.02, kernel_seconds: float = 3e-6) -> None:
    """Compute something small every so often, and note how long each took."""

    def live() -> Life:
        while True:
            began, answered = world.clock.now, player.answered
            player.ask([Op(kernel_seconds), Op(kernel_seconds), Op(kernel_seconds, is_awaited=True)])
            while player.answered == answered:
                yield asleep(1.0)
            taken.append(world.clock.now - began)
            yield busy(max(0.0, period - taken[-1]))

    player.notebook = Process(world.clock, live())


def ticks_beside_hogs(
    world: World, kernel_seconds: float, seconds: float, **terms: object
) -> tuple[list[float], float]:
    """Let somebody compute something small beside three hogs on these terms.

    Returns how long each took, without the first 0.3 s, and the part of the time in which the GPU worked.
    """
    for user in ("a", "b", "c"):
        hog(world, world.join(user, **terms), kernel_seconds)
    taken: list[float] = []
    ticks(world, world.join("person"), taken)
    world.clock.run(0.3)
    taken.clear()
    before = sum(world.ran().values())
    world.clock.run(seconds)
    return taken, (sum(world.ran().values()) - before) / seconds
