"""The checks in environments of their own: `nox` runs all of them, `nox -s tests-3.12` one."""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests that need no GPU, with coverage."""
    session.install("-e", ".[test,examples]")
    session.run("pytest", "--cov", "--cov-report=term-missing:skip-covered", *session.posargs)


@nox.session
def pure(session: nox.Session) -> None:
    """Run the tests of what is compiled without that: of what records ops, and of what an op passes through."""
    session.install("-e", ".[test,examples]")
    folders = [
        "tests/unit/kernelproxy",
        "tests/unit/executor",
        "tests/unit/transport",
        "tests/conformance",
        "tests/faults",
    ]
    sources = {"GPU_WORKBENCH_COMPILED_CORE": "off", "GPU_WORKBENCH_COMPILED_MODULES": "off"}
    session.run("pytest", *folders, *session.posargs, env=sources)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, spelling and the import contracts."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", "docs", "newsfragments", "catalog/entries", *map(str, Path().glob("*.md")))
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    session.install("-e", ".[test]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the distributions, install the wheel, and see that Jupyter finds the kernel."""
    session.install("hatchling")
    target = Path(session.create_tmp())
    session.run("python", "-m", "hatchling", "build", "--directory", str(target))
    session.install(*(str(wheel) for wheel in target.glob("*.whl")))
    session.run("jupyter", "kernelspec", "list")
