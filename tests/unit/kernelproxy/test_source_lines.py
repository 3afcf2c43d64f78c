"""Which line of the user's code recorded an op."""

from __future__ import annotations

import linecache

from kernelproxy.source_lines import Site, user_site

CELL = """\
def inner(look):
    return look()

def outer(look):
    value = (
        1 +
        inner(look)
    )
    return value
"""


def compiled(source: str, filename: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(source, filename, "exec"), names)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return names


def test_the_line_that_called_us_is_told_with_its_source() -> None:
    here = user_site(1)
    assert here is not None
    assert here.describe() == f"{__file__}, line {here.line}: here = user_site(1)"


def test_a_cell_is_named_as_a_traceback_would() -> None:
    sites: list[Site | None] = []

    def look() -> int:
        sites.append(user_site(2))
        return 1

    outer = compiled(CELL, "<ipython-input-3>")["outer"]
    assert callable(outer)
    outer(look)
    (site,) = sites
    assert site is not None
    assert site.describe() == "<ipython-input-3>, line 2: return look()"


def test_frames_of_our_own_are_passed_over() -> None:
    import kernelproxy

    names = compiled("def through(look):\n    return look()\n", f"{kernelproxy.__path__[0]}/made_up.py")
    sites = []

    def look() -> None:
        sites.append(user_site(2))

    through = names["through"]
    assert callable(through)
    through(look)  # the line that is meant
    (site,) = sites
    assert site is not None
    assert site.describe().endswith("through(look)  # the line that is meant")


def test_what_is_shown_was_asked_for_by_the_cell_that_shows_it() -> None:
    from IPython.lib.pretty import pretty

    sites: list[Site | None] = []

    class Shown:
        def __repr__(self) -> str:
            sites.append(user_site(2))
            return "shown"

    assert pretty(Shown()) == "shown"  # the line that is meant
    (site,) = sites
    assert site is not None
    assert site.describe().endswith("# the line that is meant")


def test_a_source_that_is_gone_leaves_the_line_number() -> None:
    names = compiled("def f(look):\n\n    return look()\n", "<gone>")
    del linecache.cache["<gone>"]
    sites = []

    def look() -> None:
        sites.append(user_site(2))

    function = names["f"]
    assert callable(function)
    function(look)
    (site,) = sites
    assert site is not None
    assert site.describe() == "<gone>, line 3"
