"""Reads CUDA C++ as far as is needed: which kernels a source defines, and the few words that C++ cannot be taught.

Almost all of CUDA's language is taught to the compiler by macros (``shim/gpu/language.h``). What is left for a change
of the text: ``extern __shared__`` arrays, which become references to the block's dynamic shared memory, and
``__noinline__``, which as a macro would break the C++ library's own headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Linkage = Literal["C", "C++", "template"]

_BLANKED = re.compile(
    r"""
    //[^\n]*                                      # a comment to the end of the line
    | /\*.*?\*/                                   # a comment
    | R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"  # a raw string
    | (?P<linkage>\bextern\s*"C")                  # no string in this sense, and kept
    | "(?:[^"\\\n]|\\.)*"                         # a string
    | '(?:[^'\\\n]|\\.)+'                         # a character
    | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*              # a directive with its continuation lines
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_EXTERN_SHARED = re.compile(
    r"""
    \bextern\s+(?P<before>(?:volatile\s+|const\s+|__align__\s*\([^()]*\)\s*|alignas\s*\([^()]*\)\s*)*)
    __shared__\s+(?P<type>[^;{}=\[\]]*?[\s*&>)])\s*(?P<name>\w+)\s*(?P<extents>(?:\[[^\[\]]*\]\s*)+);
    """,
    re.VERBOSE,
)
_LAUNCH = re.compile(r"([A-Za-z_][\w:]*(?:<[^<>;{}]*>)?)\s*<<<(.*?)>>>(?=\s*\()", re.DOTALL)
_ALIGNMENT = re.compile(r"(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_TOKEN = re.compile(r'[A-Za-z_]\w*|"C"|[{}()<>;]|::')
_TAKES_ARGUMENTS = {"__launch_bounds__", "__attribute__", "__cluster_dims__", "__align__", "alignas", "__declspec"}


class Definition(NamedTuple):
    """A kernel that a source defines."""

    qualified: str  #: as C++ names it from outside all namespaces
    linkage: Linkage  #: only kernels with C linkage can be looked up by their plain name


def blanked(source: str) -> str:
    """Return ``source`` with comments, strings, characters and directives replaced by blanks, of the same length."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match["linkage"] else re.sub(r"[^\n]", " ", match[0])

    return _BLANKED.sub(blank, source)


def find_kernels(source: str) -> dict[str, Definition]:
    """Return the kernels that ``source`` defines outside of any class, by their plain names.

    What macros or included files would define is not seen.
    """
    found: dict[str, Definition] = {}
    scopes: list[str | None] = []  # a namespace's name, "" for extern "C" and nameless namespaces, None for all else
    c_scopes = 0
    c_depths: list[int] = []
    statement: list[str] = []
    for token in _tokens(blanked(source)):
        if token == "{":
            scope = _scope_name(statement) if None not in scopes else None
            if scope is None and None not in scopes and "__global__" in statement:
                _note_kernel(found, statement, [s for s in scopes if s], c_scopes > 0)
            if statement[:2] == ["extern", '"C"'] and scope == "":
                c_scopes += 1
                c_depths.append(len(scopes))
            scopes.append(scope)
            statement = []
        elif token == "}":
            if scopes:
                scopes.pop()
            if c_depths and c_depths[-1] == len(scopes):
                c_depths.pop()
                c_scopes -= 1
            statement = []
        elif token == ";":
            statement = []
        else:
            statement.append(token)
    return found


def _tokens(text: str) -> Iterator[str]:
    return (match[0] for match in _TOKEN.finditer(text))


def _scope_name(statement: list[str]) -> str | None:
    words = [word for word in statement if word != "inline"]
    if words[:1] == ["namespace"]:
        return "".join(words[1:])
    if words == ["extern", '"C"']:
        return ""
    return None


def _note_kernel(found: dict[str, Definition], statement: list[str], namespaces: list[str], in_c: bool) -> None:
    depth, name, takes_arguments = 0, "", False
    for token in statement[statement.index("__global__") + 1 :]:
        if token == "(":
            if depth == 0 and not takes_arguments:
                break
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                takes_arguments = False
        elif depth == 0 and token not in "<>::":
            takes_arguments = token in _TAKES_ARGUMENTS
            name = token
    if not name:
        return
    linkage: Linkage = "template" if "template" in statement else "C" if in_c or '"C"' in statement else "C++"
    found.setdefault(name, Definition("::".join([*namespaces, name]), linkage))


def translate(source: str, *, launches: bool = False) -> str:
    """Return ``source`` in words that the shim and a C++17 compiler understand. Lines keep their numbers.

    With ``launches``, kernels may launch kernels.
    """
    text = _EXTERN_SHARED.sub(_dynamic_shared, source)
    if launches:
        text = _LAUNCH.sub(r"::gpu::Child<\1>(\2)", text)
    return re.sub(r"\b__noinline__\b", "__attribute__((noinline))", text)


def _dynamic_shared(match: re.Match[str]) -> str:
    qualifiers = " ".join(re.findall(r"\b(?:volatile|const)\b", match["before"]))
    kind = f"{qualifiers} {_ALIGNMENT.sub(' ', match['type'])}".strip()
    extents = match["extents"].strip()
    reference = (
        f"[[maybe_unused]] {kind} (&{match['name']}){extents} = "
        f"*reinterpret_cast<{kind} (*){extents}>(::gpu::dynamic_shared);"
    )
    return " ".join(reference.split()) + "\n" * match[0].count("\n")
