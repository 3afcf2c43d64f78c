"""Which of CuPy's tests are run: the files that need nothing but CuPy's public surface, and subsamples of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

#: What only native CuPy has: its private modules, its CUDA bindings, raw pointers, and mocks of its own functions.
#: Of ``cupy.cuda`` only devices, streams, events and questions about versions are common to both.
_NATIVE_ONLY = re.compile(
    r"cupyx?\._|cupyx?\.(?!testing\b)[a-z.]*\._|from cupyx?(?!\.testing\b)[a-z.]* import _|_core|mock|\.data\.ptr"
    r"|cupy_backends|AssertFunctionIsCalled|__cuda_array"
    r"|from cupy\.cuda import (?!Device\b|Stream\b|Event\b|runtime\b|driver\b)"
    r"|cupy\.cuda\.(?!Device|Stream|Event|get_current_stream|driver\.get_build_version"
    r"|runtime\.(is_hip|runtimeGetVersion|CUDARuntimeError))"
)
#: Folders whose tests are about CuPy's helpers and installation and not about arrays.
_ELSEWHERE = (
    "cupy_tests/testing_tests/",
    "cupyx_tests/tools_tests/",
    "cupy_tests/test_init.py",
    "cupy_tests/test_typing.py",
)
#: Folders and files that are about arrays too, though some of their tests reach for what only native CuPy has.
_PARTLY = re.compile(
    r"cupy_tests/(creation|fft|indexing|lib|linalg|manipulation|math|random|sorting|statistics)_tests/"
    r"|cupy_tests/core_tests/test_(ndarray|elementwise|raw|reduction|ufunc_methods|userkernel)"
    r"|cupyx_tests/scipy_tests/|cupyx_tests/(jit|linalg|signal)_tests/|cupyx_tests/test_(lapack|optimize|rsqrt|time)\."
)
#: Among them, what is about CuPy's callbacks in cuFFT's own process and its cache of plans.
_NOT_PARTLY = ("cupy_tests/fft_tests/test_callback.py", "cupy_tests/fft_tests/test_cache.py")
#: What a place, as a whole number, is less than.
POSITIONS = 1 << 32
#: How many rounds all tests make.
_ROUNDS = 40


def clean_files(tests: Path) -> list[str]:
    """Return the files that never mention what only native CuPy has, relative to ``tests``, sorted."""
    return [name for name in _all_files(tests) if not _NATIVE_ONLY.search((tests / name).read_text())]


def partly_files(tests: Path) -> list[str]:
    """Return the files that mention some of that and are about arrays all the same."""
    clean = set(clean_files(tests))
    return [name for name in _all_files(tests) if name not in clean and name not in _NOT_PARTLY and _PARTLY.match(name)]


def multi_gpu_files(tests: Path) -> list[str]:
    """Return the files with a test that needs several devices of one process."""
    return [name for name in _all_files(tests) if "multi_gpu(" in (tests / name).read_text()]


def _all_files(tests: Path) -> list[str]:
    found = [path.relative_to(tests).as_posix() for path in tests.glob("cupy*_tests/**/test_*.py")]
    return sorted(name for name in found if not name.startswith(_ELSEWHERE))


_KINDS = {"clean": clean_files, "partly": partly_files, "multi_gpu": multi_gpu_files}


def expand(tests: Path, names: Sequence[str], pattern: str = "test_*.py") -> list[str]:
    """Return the files that ``names`` stand for: "clean" for the clean ones, a folder for all below it, a file.

    "partly" stands for `partly_files`, "multi_gpu" for `multi_gpu_files`; "clean:FOLDER" and "partly:FOLDER" for those
    of them below a folder. A name may leave out ``_tests``.

    Raises
    ------
    ValueError
        If a name stands for nothing.
    """
    files: list[str] = []
    for name in names:
        wanted, _, folder = name.rpartition(":")
        kind = wanted or name
        if kind in _KINDS:
            some = [file for file in _KINDS[kind](tests) if not wanted or file.startswith(folder)]
        elif (tests / name).is_dir():
            some = sorted(path.relative_to(tests).as_posix() for path in (tests / name).glob(f"**/{pattern}"))
        else:
            some = [name] if (tests / name).is_file() else []
        if not some:
            raise ValueError(f"{name} stands for no tests. Folders are such as cupy_tests/math_tests.")
        files += [file for file in some if file not in files]
    return files


def place(node_id: str) -> float:
    """Return where a test stands in the order of subsamples, from 0 to 1: a subsample is all below a fraction."""
    return position(node_id) / POSITIONS


def position(node_id: str) -> int:
    """Return the place of a test as a whole number below `POSITIONS`; hardly ever do two tests of a file share it."""
    return int.from_bytes(_digest(node_id)[:4])


def begun(node_id: str) -> float:
    """Return the subsample that is done when the round of a test begins.

    If the time is limited, tests are run in rounds, each a subsample: what was done is then a subsample too.
    """
    return int(place(node_id) * _ROUNDS) / _ROUNDS


def shard(node_id: str, shards: int) -> int:
    """Return which of the workers runs a test; says nothing about its `place`."""
    return int.from_bytes(_digest(node_id)[4:]) % shards


def suite(node_id: str) -> str:
    """Return the top folder of a test that is none of CuPy's own, "" for these."""
    top = node_id.partition("/")[0]
    return "" if top.startswith("cupy") else top


def directory(node_id: str) -> str:
    """Return the part of CuPy that a test is about, such as "math" or "cupyx.scipy.ndimage"; of other suites, what
    stands in their folder.
    """
    parts = node_id.partition("::")[0].split("/")
    if suite(node_id):
        return parts[1]
    names = [part.removesuffix("_tests") for part in parts[:-1]]
    names = [name for name in names if name != "cupy"]
    if not names:
        return "cupy"
    deepest = 3 if names[:2] == ["cupyx", "scipy"] else 2
    return ".".join(names[:deepest]) if names[0] == "cupyx" else names[0]


def _digest(node_id: str) -> bytes:
    return hashlib.blake2b(node_id.encode(), digest_size=8).digest()
