"""The collections of tests that the harness runs: CuPy's own, the array API's, CuPy's examples and its user guide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.cupy_suite import selection, sources
from tests.cupy_suite.checkouts import Checkout

ARRAY_API_TESTS = Checkout(
    "array-api-tests",
    "https://github.com/data-apis/array-api-tests",
    "55fcc60179efa2680ddd6cd926ddf17b83530e2b",
)
#: The tag of the version whose tests are run. Its source distribution has neither examples nor user guide.
CUPY = Checkout(
    "cupy-examples",
    "https://github.com/cupy/cupy",
    "dc1552a32f5489bdf6a5a721dfd952a92d47d934",
    ("examples", "docs/source/user_guide"),
)
#: Examples that hypothesis tries for each of the array API's tests. Each asks for values, again and again.
EXAMPLES = 20

#: What stands in a file of a suite: pytest's tests, programs, or pages with Python's prompt.
Kind = Literal["tests", "programs", "pages"]
_PATTERNS: dict[Kind, str] = {"tests": "test_*.py", "programs": "*.py", "pages": "*.rst"}


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests that one run of pytest can hold."""

    #: The folder below which node ids are written.
    root: Path
    #: pytest's options, from the file with its settings on.
    options: tuple[str, ...]
    kind: Kind = "tests"
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Folders of modules that are not installed here.
    modules: tuple[Path, ...] = ()
    #: Devices that each of its sessions has.
    devices: int = 1

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the files that ``names`` stand for."""
        return tuple(selection.expand(self.root, names, _PATTERNS[self.kind]))


def of(names: Sequence[str], cache: Path) -> Suite:
    """Return the suite whose files or folders are named, fetched if it is not in ``cache`` yet.

    Raises
    ------
    ValueError
        If they belong to several: these have different settings, and so runs of their own.
    CannotFetch
        If the suite cannot be fetched.
    """
    tops = {name.partition("/")[0] for name in names}
    made = [make for top, make in _MAKERS.items() if top in tops]
    if not made:
        return cupy_tests(cache)
    if len(tops) > 1:
        raise ValueError(f"{' and '.join(sorted(tops))} are different suites. Run each for itself.")
    return made[0](cache)


def cupy_tests(cache: Path) -> Suite:
    """Return CuPy's own tests."""
    return _cupys(cache, "not multi_gpu and not slow")


def multi_gpu(cache: Path) -> Suite:
    """Return those of CuPy's own tests that need two devices."""
    return _cupys(cache, "multi_gpu and not slow", devices=2)


def _cupys(cache: Path, marks: str, devices: int = 1) -> Suite:
    found = sources.get(cache)
    options = ("-c", str(found.settings.resolve()), "-m", marks)
    return Suite(found.tests.resolve(), options, devices=devices)


def array_api_tests(cache: Path) -> Suite:
    """Return the tests of the array API standard, of CuPy as array-api-compat presents it."""
    root = ARRAY_API_TESTS.get(cache).resolve()
    options = (
        *("-c", str(root / "pytest.ini"), "--max-examples", str(EXAMPLES)),
        *("--hypothesis-disable-deadline", "--hypothesis-derandomize"),
    )
    environment = {"ARRAY_API_TESTS_MODULE": "array_api_compat.cupy", "ARRAY_API_TESTS_VERSION": "2025.12"}
    return Suite(root, options, environment=environment)


def examples(cache: Path) -> Suite:
    """Return CuPy's examples."""
    return Suite(CUPY.get(cache).resolve(), BARE, "programs")


def user_guide(cache: Path) -> Suite:
    """Return the pages of CuPy's user guide."""
    return Suite(CUPY.get(cache).resolve() / "docs" / "source", BARE, "pages")


#: pytest without settings, and without its own readers of Python files and of doctests.
BARE = ("-c", "/dev/null", "-p", "no:python", "-p", "no:doctest", "-p", "no:unittest")
_MAKERS = {"multi_gpu": multi_gpu, "array_api_tests": array_api_tests, "examples": examples, "user_guide": user_guide}
