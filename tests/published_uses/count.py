"""Counts what programs use of CuPy that is not on its surface: ``python -m tests.published_uses.count CHECKOUT...``.

A checkout is one of git, whose newest commit is read. Printed are names with how often they stand in the sources, and
in how many checkouts. A person then decides what of it is served, and writes it into
``kernelproxy/namespace/private_uses.toml``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gpu_backend.opstream import surface

_ROOTS = frozenset({"cupy", "cupyx", "cupy_backends"})
#: What all programs call it; then uses count in files as well that get the module handed in.
_USUAL = {"cp": "cupy"}
#: Copies of CuPy's own sources, and what was forked of them.
_VENDORED = re.compile(r"(^|/)(cupy|cupyx|cupy_backends)/")
#: Members of objects that no other library has under that name.
MEMBERS = frozenset(
    """_c_contiguous _default_memory_pool _f_contiguous _insert_many _mat_ptrs _prepare_indices _seed_seq
    _set_shape_and_strides""".split()
)


def uses(text: str) -> Iterator[str]:
    """Yield each qualified name below CuPy that ``text``, a Python module, imports or names, and such members."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # of Python 2, or no Python
        return
    known = dict(_USUAL)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                      for one in node.names if one.name.partition(".")[0] in _ROOTS}  # fmt: skip
            yield from (one.name for one in node.names if one.name.partition(".")[0] in _ROOTS)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in _ROOTS:
            known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            yield from (f"{node.module}.{one.name}" for one in node.names)
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            parts: list[str] = []
            at: ast.expr = node
            while isinstance(at, ast.Attribute):
                parts.insert(0, at.attr)
                inner.add(at)
                at = at.value
            if isinstance(at, ast.Name) and at.id in known:
                yield ".".join((known[at.id], *parts))
            else:
                yield from (part for part in parts if part in MEMBERS)


def is_beyond_the_surface(name: str) -> bool:
    """Tell whether ``name`` is none that CuPy's surface has, nor a member of something that it has."""
    described = surface.load()
    parts = name.split(".")
    if name in MEMBERS:
        return True
    if described.is_public(name) or any(part.startswith("__") for part in parts):
        return False
    known = max((count for count in range(len(parts)) if described.is_public(".".join(parts[:count]))), default=0)
    owner = described.get(described.canonical(".".join(parts[:known])))
    return owner is None or isinstance(owner, surface.Module) or any(part.startswith("_") for part in parts[known:])


def sources(checkout: Path) -> Iterator[str]:
    """Yield the Python modules of ``checkout`` that name CuPy and are no copy of it."""
    git = ["git", "-C", str(checkout)]
    listed = subprocess.run(
        [*git, "grep", "-l", "-I", "-e", "cupy", "HEAD", "--", "*.py"], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        path = line.partition(":")[2]
        if not _VENDORED.search(path):
            shown = subprocess.run([*git, "show", f"HEAD:{path}"], capture_output=True, check=True)
            yield shown.stdout.decode("utf-8", "replace")


def main() -> None:
    """Count in the checkouts that the command line names."""
    warnings.simplefilter("ignore")  # of other people's escapes in strings
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for checkout in map(Path, sys.argv[1:]):
        for text in sources(checkout):
            for name in filter(is_beyond_the_surface, uses(text)):
                found[name][str(checkout)] += 1
    for name, where in sorted(found.items(), key=lambda one: (-len(one[1]), -one[1].total(), one[0])):
        print(len(where), where.total(), name, sep="\t")  # noqa: T201 (a tool's output)


if __name__ == "__main__":
    main()
