"""Which parameters of CuPy's compiled functions are addresses or handles, read off its sources.

``python -m gpu_backend.opstream.surface.addresses SOURCE`` writes the file anew, where ``SOURCE`` is the folder of a
checkout of CuPy, or of its unpacked source distribution. The wheel does not tell: its signatures have no types.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.opstream.surface import CUPY_VERSION, Surface, load
from gpu_backend.opstream.surface.signatures import split_parameters

#: What Cython's code calls a number that is an address or a handle.
_ADDRESS = re.compile(r"\b(u?intptr_t|uintmax_t)\b|\*(?!\w*args)")
_DEFINED = re.compile(r"(?P<indent> *)(cpdef|def) (?P<head>[^(]*?)(?P<name>\w+)\((?P<rest>.*)")
_CLASS = re.compile(r"(?P<indent> *)(cdef )?class (?P<name>\w+)")
_CONSTRUCTORS = ("__init__", "__cinit__")
#: Folders of the sources, and the public modules that theirs are.
_PUBLIC = {
    "cupy_backends/cuda/api": "cupy.cuda",
    "cupy_backends/cuda/libs": "cupy.cuda",
    "cupy/cuda": "cupy.cuda",
    "cupy/random": "cupy.random",
}

#: By public name and parameter: its place among the positional arguments, None if it goes by keyword alone.
Places = Mapping[str, Mapping[str, int | None]]


class _Definition(NamedTuple):
    indent: int
    name: str
    parameters: str


@cache
def addresses() -> Places:
    """Return the parameters that are addresses or handles."""
    return msgspec.json.decode(_path().read_bytes(), type=dict[str, dict[str, int | None]])


def read_sources(root: Path, surface: Surface) -> Places:
    """Return the same, read off the sources below ``root``, for the names that ``surface`` has."""
    found: dict[str, dict[str, int | None]] = {}
    for folder, module in _PUBLIC.items():
        for source in sorted((root / folder).glob("*.pyx")):
            for name, places in read_module(source.read_text(encoding="utf-8")):
                public = surface.canonical(f"{module}.{source.stem}.{name}")
                if public in surface:
                    found.setdefault(public, {}).update(places)
    return dict(sorted(found.items()))


def read_module(text: str) -> Iterator[tuple[str, dict[str, int | None]]]:
    """Yield each function, class and method of a Cython module that takes addresses, and their places.

    Examples
    --------
    >>> dict(read_module("cdef class A:\\n    def f(self, int n, intptr_t p, *, uintmax_t q=0):\\n"))
    {'A.f': {'p': 1, 'q': None}}
    """
    owner, depth = "", 0
    for line in _whole_lines(text):
        if (opened := _CLASS.match(line)) is not None:
            owner, depth = opened["name"], len(opened["indent"])
        elif (found := _definition(line)) is not None:
            is_method = bool(owner) and found.indent > depth
            owner = owner if is_method else ""
            parameters = split_parameters(found.parameters)
            if is_method and parameters and parameters[0] in ("self", "cls"):
                parameters = parameters[1:]
            if places := _places(parameters):
                own = owner if found.name in _CONSTRUCTORS else f"{owner}.{found.name}" if owner else found.name
                yield own, places


def _places(parameters: list[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    by_keyword = False
    for place, one in enumerate(parameters):
        declared, _, _ = one.partition("=")
        if declared.startswith("*"):
            by_keyword = True
        elif _ADDRESS.search(declared):
            # In a .pxd's style a parameter may have a type and no name; such are declared again where they are defined.
            found[re.split(r"[\s*]+", declared.strip())[-1]] = None if by_keyword else place
    return found


def _definition(line: str) -> _Definition | None:
    found = _DEFINED.match(line)
    if found is None:
        return None
    depth = 1
    for place, char in enumerate(found["rest"]):
        depth += (char in "([") - (char in ")]")
        if depth == 0:
            return _Definition(len(found["indent"]), found["name"], found["rest"][:place])
    return None


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines of ``text`` without comments; what stands in brackets over several lines is one."""
    whole, depth = "", 0
    for line in text.splitlines():
        bare = line.partition("#")[0].rstrip()
        is_defined = depth > 0 or _DEFINED.match(bare) is not None
        whole = f"{whole} {bare.strip()}" if depth else bare
        depth = max(0, depth + bare.count("(") - bare.count(")")) if is_defined else 0
        if depth == 0:
            yield whole


def _path() -> Path:
    return Path(__file__).with_name(f"addresses-{CUPY_VERSION.rpartition('.')[0]}.json")


def main() -> None:
    """Read the sources that the command line names, and write the file into the package."""
    found = read_sources(Path(sys.argv[1]), load())
    _path().write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    print(f"{sum(map(len, found.values()))} parameters of {len(found)} names: {_path()}")  # noqa: T201 (a tool's output)


if __name__ == "__main__":
    main()
