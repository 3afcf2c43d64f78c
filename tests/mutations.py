"""Messages that are nearly right, and noise: what whoever listens must take from a sender without manners."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from gpu_backend.wire.codec import encode


def mutations(seed: int, honest: Sequence[msgspec.Struct], count: int) -> Iterator[tuple[msgspec.Struct, list[bytes]]]:
    """Yield mutated messages: which of ``honest`` each was made of, and its frames."""
    chance = random.Random(seed)
    for _ in range(count):
        origin = chance.choice(honest)
        data = bytearray(bytes(encode(origin)[0]))
        kind = chance.randrange(7)
        if kind == 0:
            data = bytearray(chance.randbytes(chance.randrange(200)))
        elif kind == 1:
            data[2:] = chance.randbytes(chance.randrange(100))
        elif kind == 2:
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif kind == 3:
            del data[chance.randrange(len(data)) :]
        elif kind == 4:
            at = chance.randrange(2, len(data))
            data[at:at] = chance.randbytes(chance.randint(1, 30))
        elif kind == 5:
            data += b"\x91" * 40_000  # nested deeper than any parser likes
        frames = [bytes(data)]
        if kind == 6:
            frames += [chance.randbytes(chance.randrange(20)) for _ in range(chance.randrange(30))]
        yield origin, frames
