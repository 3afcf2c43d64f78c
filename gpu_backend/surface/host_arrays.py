"""Where CuPy takes no array of NumPy, and what it says then: facts that no signature tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec


class HostRefusal(msgspec.Struct, frozen=True):
    """What CuPy raises; ``varies`` if that goes by dtypes and shapes. Arrays below ``least`` elements pass."""

    error: str
    message: str
    varies: bool = False
    least: int = 0


class _Refusal(HostRefusal, frozen=True):
    #: By module: "function:parameter", separated by blanks.
    arguments: dict[str, str] = {}


class _Facts(msgspec.Struct, frozen=True):
    refusal: tuple[_Refusal, ...]


@cache
def host_refusals() -> Mapping[str, Mapping[str, HostRefusal]]:
    """Return the refusals by qualified name and parameter; a generalised ufunc's parameters are numbers."""
    text = Path(__file__).with_name("host_arrays.toml").read_bytes()
    found: defaultdict[str, dict[str, HostRefusal]] = defaultdict(dict)
    for one in msgspec.toml.decode(text, type=_Facts).refusal:
        for module, arguments in one.arguments.items():
            for argument in arguments.split():
                function, _, parameter = argument.partition(":")
                found[f"{module}.{function}"][parameter] = one
    return dict(found)
