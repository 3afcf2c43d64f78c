"""Where CuPy's public names live: ``cupyx.scipy.sparse.csr_matrix`` says that it is of ``cupyx.scipy.sparse._csr``.

Pickles name classes and functions by these modules, and programs import from them what is public elsewhere. Nothing
else is in them here.
"""

from __future__ import annotations

from functools import cache

from gpu_backend.opstream import surface


@cache
def _public_names() -> dict[str, str]:
    """Return the public name of each function and class, by the name that it has in its own module."""
    return {
        f"{entry.home}.{entry.called or name.rpartition('.')[2]}": name
        for name, entry in surface.load().items()
        if isinstance(entry, (surface.Class, surface.Function)) and entry.home
    }


@cache
def _modules() -> frozenset[str]:
    """Return the modules of all, and the packages that these are in."""
    found: set[str] = set()
    for name in _public_names():
        module = name.rpartition(".")[0]
        while module and module not in found:
            found.add(module)
            module = module.rpartition(".")[0]
    return frozenset(found)


def public_name(qualname: str) -> str | None:
    """Return the public name of what CuPy has under ``qualname`` in one of its own modules, if it has one."""
    return _public_names().get(qualname)


def is_home(module: str) -> bool:
    """Tell whether something public lives in ``module``, or in a module below it."""
    return module in _modules()


def homes_below(root: str) -> list[str]:
    """Return the modules below ``root`` in which something public lives, and those that classes say they are of."""
    of_classes = {
        entry.home or name.rpartition(".")[0]
        for name, entry in surface.load().items()
        if isinstance(entry, surface.Class)
    }
    return sorted(home for home in of_classes | _modules() if home.startswith(f"{root}."))
