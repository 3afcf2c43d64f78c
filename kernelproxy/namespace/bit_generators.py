"""``cupy.random``'s bit generators, whose seeds are the notebook's, and the generators on them: made without waiting.

Programs that compute in pieces (dask) give each piece a seed of its own: they ask a bit generator for its
``_seed_seq``, NumPy's, and have it spawn others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.remote_object import RemoteObject

#: What NumPy takes unless it is told otherwise; other pools travel as sequences.
_POOL_WORDS = 4


#: What a generator is seeded by.
Seed: TypeAlias = "int | Sequence[int] | HostArray | np.random.SeedSequence | None"


class BitGenerator(RemoteObject):
    """A source of random bits; the base of those that there are.

    Parameters
    ----------
    seed
        None for one that nobody knows, an int, an array of ints or a ``numpy.random.SeedSequence``.
    """

    _qualname = "cupy.random.BitGenerator"

    @classmethod
    def _make(cls, seed: Seed | ArrayCore = None, **options: object) -> Any:
        """Make it in the executor, of a seed that this process knows."""
        known: Any = seed.get() if isinstance(seed, array_core.ArrayCore) else seed
        seeds = known if isinstance(known, np.random.SeedSequence) else np.random.SeedSequence(known)
        made = super()._make(_shortest(seeds), **options)
        made.__dict__["_seeds"] = seeds
        return made

    @property
    def _seed_seq(self) -> np.random.SeedSequence:
        """NumPy's sequence that this generator is seeded by, as CuPy's have."""
        try:
            return self.__dict__["_seeds"]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(
                f"the seed of this {type(self).__name__} stays in the executor, which made it. Make one here, such as "
                f"cupy.random.{type(self).__name__}(seed)."
            ) from None


class XORWOW(BitGenerator):
    """The default: cuRAND's XORWOW."""

    _qualname = "cupy.random.XORWOW"


class MRG32k3a(BitGenerator):
    """Of cuRAND: MRG32k3a."""

    _qualname = "cupy.random.MRG32k3a"


class Philox4x3210(BitGenerator):
    """Of cuRAND: Philox4_32_10."""

    _qualname = "cupy.random.Philox4x3210"


class Generator(RemoteObject):
    """Distributions over the bits of ``bit_generator``."""

    _qualname = "cupy.random.Generator"

    @classmethod
    def _make(cls, bit_generator: BitGenerator) -> Any:
        """Make it in the executor."""
        made = super()._make(bit_generator)
        made.__dict__["_bits"] = bit_generator
        return made

    @property
    def bit_generator(self) -> Any:
        """Where the bits come from; may be set."""
        known = self.__dict__.get("_bits")
        return dispatch.ask_object(".getattr", self, "bit_generator") if known is None else known

    def __setattr__(self, name: str, value: object) -> None:
        if name == "bit_generator":
            dispatch.ask_object(".setattr", self, name, value)
            name = "_bits"
        super().__setattr__(name, value)


def default_rng(seed: Seed | Generator | BitGenerator = None) -> Any:
    """Return a `Generator`: ``seed`` itself if it is one, one on it if it is a `BitGenerator`, else one on `XORWOW`."""
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, BitGenerator) else XORWOW(seed))


def _shortest(seeds: np.random.SeedSequence) -> Any:
    """Return what stands for ``seeds`` as a seed: a number, if that is all they were made of."""
    is_plain = not seeds.spawn_key and seeds.pool_size == _POOL_WORDS
    return int(seeds.entropy) if is_plain and isinstance(seeds.entropy, (int, np.integer)) else seeds
