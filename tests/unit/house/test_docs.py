"""The documentation is true where a machine can tell: links resolve, named files exist, decisions are listed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from .tree import FOLDERS, PACKAGES, ROOT, markdown_files, short

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*$", re.MULTILINE)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: A path of ours in backticks: `gpu_backend/wire/codec.py`, `examples/`. Placeholders (NNNN, <, *, {) are not paths.
PATH = re.compile(rf"`((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*|[\w.-]+\.(?:toml|yml|md)|Makefile)`")
#: Files that a person's own machine has and the repository has not.
NOT_OURS = {"client.toml", "pool.toml", "node.toml", "kernel.json"}
DECISIONS = sorted((ROOT / "docs" / "adr").glob("0*.md"))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of ``page``'s headings, made as Python-Markdown makes them."""
    headings = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", text) for text in HEADING.findall(prose(page)))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in headings}


@pytest.mark.parametrize("page", markdown_files(), ids=short)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link, image in LINK.findall(prose(page)):
        target = link or image
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        aim = (page.parent / file).resolve() if file else page
        if not aim.exists() or (anchor and aim.suffix == ".md" and anchor not in anchors(aim)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", markdown_files(), ids=short)
def test_tables_have_a_head_and_rows_of_its_width(page: Path) -> None:
    """A blank line ends a table: rows behind it are shown as they are typed."""
    for table in TABLE.findall(prose(page)):
        head, rule, *rows = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()] + [0]
        assert re.fullmatch(r"[|\s:-]+", table.splitlines()[1]), table
        assert {rule, *rows[:-1]} == {head}, table


@pytest.mark.parametrize("page", markdown_files(), ids=short)
def test_named_files_exist(page: Path) -> None:
    named = {path for path in PATH.findall(prose(page)) if path not in NOT_OURS and "NNNN" not in path}
    places = (ROOT, page.parent, *(ROOT / package for package in PACKAGES))
    assert not [path for path in sorted(named) if not any((place / path).exists() for place in places)]


def test_the_journey_visits_every_hop() -> None:
    """The page names enough files to be a journey, and each package that a cell passes through."""
    page = ROOT / "docs" / "explanation" / "journey-of-a-cell.md"
    visited = {path for path in PATH.findall(prose(page)) if path.endswith(".py")}
    assert len(visited) >= 15
    for package in ("kernelproxy", "gpu_backend/wire", "gpu_backend/transport", "gpu_backend/executor", "workbench"):
        assert any(path.startswith(package + "/") for path in visited), package


def test_the_journeys_cell_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "explanation" / "journey-of-a-cell.md").read_text()
    cell = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert cell
    exec(cell[1].replace("import cupy as cp", "import numpy as cp"), {})
    assert capsys.readouterr().out.strip() == cell[1].rpartition("# ")[2].strip()


def test_decisions_are_numbered_and_listed() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    index = (ROOT / "docs" / "adr" / "index.md").read_text()
    assert not [path.name for path in DECISIONS if f"({path.name})" not in index]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_says_why(page: Path) -> None:
    sections = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    assert sections[:3] == ["Decision", "Why", "What follows"]


def test_every_dependency_is_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    names = {re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0] for requirement in wanted}
    text = (ROOT / "docs" / "adr" / "0002-dependencies.md").read_text()
    assert not sorted(name for name in names if f"`{name}`" not in text)


def test_the_pythons_admitted_are_those_that_are_tried() -> None:
    """`nox` tries each; what pip admits and what the package says of itself are the same, and nothing beyond."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tried = re.findall(r'"3\.(\d+)"', re.findall(r"^PYTHONS = .*$", (ROOT / "noxfile.py").read_text(), re.MULTILINE)[0])
    told = [re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", one) for one in project["classifiers"]]
    assert [one[1] for one in told if one] == tried
    assert project["requires-python"] == f">=3.{tried[0]},<3.{int(tried[-1]) + 1}"
    (checked,) = re.findall(r"\(3, (\d+)\) <= sys.version_info < \(3, (\d+)\)", (ROOT / "Makefile").read_text())
    assert checked == (tried[0], str(int(tried[-1]) + 1))
    for page in ("README.md", "CONTRIBUTING.md", "Makefile", "docs/how-to/build-wheels.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert f"3.{tried[0]} to 3.{tried[-1]}" in text, page
