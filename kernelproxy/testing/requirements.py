"""Decorators that say what a test needs: versions of packages, time, several GPUs."""

from __future__ import annotations

import importlib.metadata
import os
import unittest
from typing import Any

from gpu_backend.opstream import surface
from kernelproxy.testing import pytest_part
from kernelproxy.testing.signatures import Decorator, Test

#: The oldest versions that CuPy's own tests compare with.
_BASELINE = {"numpy": "2.3", "scipy": "1.14"}


def installed(*specifiers: str) -> bool:
    """Tell whether packages are installed here, each as in "numpy>=2.1"."""
    from packaging.requirements import Requirement  # comes with pytest

    for requirement in map(Requirement, specifiers):
        version = _version(requirement.name)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            return False
    return True


def _version(name: str) -> str | None:
    if name.partition("-")[0] == "cupy":  # as in cupy-cuda12x; no such package need be here
        return surface.CUPY_VERSION
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = importlib.metadata.packages_distributions().get(name)  # a module whose package has another name
        return importlib.metadata.version(found[0]) if found else None


def numpy_satisfies(version_range: str) -> bool:
    """Tell whether NumPy's version is in a range as ">=2.1"."""
    return installed(f"numpy{version_range}")


def with_requires(*requirements: str) -> Decorator:
    """Skip a test unless packages are installed, each as in "numpy>=2.1"."""
    return _skip_if(not installed(*requirements), f"requires: {','.join(requirements)}")


def skip_if_after_baseline(*, numpy: str | None = None, scipy: str | None = None, reason: str = "") -> Decorator:
    """Skip a test from those versions on, if CuPy's own tests do not compare with them."""

    def decorator(test: Test) -> Test:
        for name, version in (("numpy", numpy), ("scipy", scipy)):
            if version is not None and is_after_baseline(**{name: version}):
                test = _skip_if(installed(f"{name}>={version}"), reason)(test)
        return test

    return decorator


def is_after_baseline(*, numpy: str | None = None, scipy: str | None = None) -> bool:
    """Tell whether a version is newer than the oldest that CuPy's own tests compare with.

    Raises
    ------
    ValueError
        Unless the version is that of one of them.
    """
    from packaging.version import Version

    given = {name: version for name, version in (("numpy", numpy), ("scipy", scipy)) if version is not None}
    if len(given) != 1:
        raise ValueError("Exactly one of numpy or scipy must be specified.")
    ((name, version),) = given.items()
    return Version(version) > Version(_BASELINE[name])


def _skip_if(condition: bool, reason: str) -> Decorator:
    pytest = pytest_part.found()
    if pytest is None:
        return unittest.skipIf(condition, reason)
    mark: Decorator = pytest.mark.skipif(condition, reason=reason)
    return mark


def slow(*args: Any, **kwargs: Any) -> Any:
    """Mark a test as slow, for ``pytest -m "not slow"``.

    Raises
    ------
    RuntimeError
        If pytest is not installed.
    """
    return pytest_part.needed("slow").mark.slow(*args, **kwargs)


def multi_gpu(gpu_num: int) -> Decorator:
    """Mark a test as one for several GPUs. It is skipped if ``CUPY_TEST_GPU_LIMIT`` in the environment is less.

    Raises
    ------
    RuntimeError
        If pytest is not installed.
    AssertionError
        If ``gpu_num`` is less than 2.
    """
    mark = pytest_part.needed("multi_gpu").mark
    if gpu_num < 2:
        raise AssertionError(f"multi_gpu is for tests that need at least 2 GPUs, not {gpu_num}.")
    limit = int(os.environ.get("CUPY_TEST_GPU_LIMIT", "-1"))

    def decorator(test: Test) -> Test:
        marked: Test = mark.skipif(0 <= limit < gpu_num, reason=f"{gpu_num} GPUs required")(mark.multi_gpu(test))
        return marked

    return decorator
