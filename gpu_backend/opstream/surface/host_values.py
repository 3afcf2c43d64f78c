"""Where CuPy takes no value of the host, and what it says then: facts that no signature tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec


class HostRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """What CuPy raises of a NumPy array of ``least`` elements or more; ``varies`` if it goes by dtypes and shapes."""

    error: str
    message: str
    varies: bool = False
    least: int = 0


class HostFacts(msgspec.Struct, frozen=True):
    """What is known of one function, by parameter; those of a generalised ufunc are numbers.

    Attributes
    ----------
    refusals
        Of arrays of NumPy.
    lacking
        The attribute that CuPy asks of a list or tuple, which has none of that name.
    """

    refusals: dict[str, HostRefusal]
    lacking: dict[str, str]


#: By module: "function:parameter", separated by blanks.
_Arguments = dict[str, str]


class _Refusal(HostRefusal, frozen=True, kw_only=True):
    arguments: _Arguments


class _Lacking(msgspec.Struct, frozen=True):
    attribute: str
    arguments: _Arguments


class _File(msgspec.Struct, frozen=True):
    refusal: tuple[_Refusal, ...]
    lacking: tuple[_Lacking, ...]


@cache
def host_facts() -> Mapping[str, HostFacts]:
    """Return what is known, by qualified name."""
    read = msgspec.toml.decode(Path(__file__).with_name("host_values.toml").read_bytes(), type=_File)
    found: defaultdict[str, HostFacts] = defaultdict(lambda: HostFacts({}, {}))
    for refusal in read.refusal:
        for function, parameter in _named(refusal.arguments):
            found[function].refusals[parameter] = refusal
    for lacking in read.lacking:
        for function, parameter in _named(lacking.arguments):
            found[function].lacking[parameter] = lacking.attribute
    return dict(found)


def _named(arguments: _Arguments) -> Iterator[tuple[str, str]]:
    """Yield the function and the parameter that each is."""
    for module, names in arguments.items():
        for one in names.split():
            function, _, parameter = one.partition(":")
            yield f"{module}.{function}", parameter
