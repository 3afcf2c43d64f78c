"""Parameter lists as Python source, from objects that may be Python, Cython or C++ behind a docstring."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

#: First line of a Cython docstring: "Class.method(self, int a, bint b=True) -> type".
_EMBEDDED = re.compile(r"^(?P<path>[\w.]+)\((?P<parameters>.*?)\)(?:\s*->.*)?$")


def signature_text(thing: Any, *, drop_self: bool = False) -> str:
    """Return the parameter list of ``thing``, such as "(a, axis=None)", or "" if it is not known.

    Parameters
    ----------
    drop_self
        Leave out the first parameter, as of a method found on its class.
    """
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return _embedded(thing, drop_self=drop_self)
    parameters = list(signature.parameters.values())
    if drop_self and parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):  # fmt: skip
        parameters = parameters[1:]
    return _python(f"({_joined([_plain(p) for p in parameters])})")


def default_text(value: object) -> str:
    """Return Python source that stands for a default value."""
    if isinstance(value, type) or inspect.isroutine(value):
        module = "" if value.__module__ in (None, "builtins") else f"{value.__module__}."
        return f"{module}{value.__qualname__}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(default_text, value)))}}}"
    if isinstance(value, float) and value != value:
        return "nan"
    text = repr(value)
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return type(value).__name__
    return text


def _plain(parameter: inspect.Parameter) -> tuple[inspect._ParameterKind, str]:
    text = parameter.name
    if parameter.default is not inspect.Parameter.empty:
        text += f"={default_text(parameter.default)}"
    return parameter.kind, text


def _joined(parameters: list[tuple[inspect._ParameterKind, str]]) -> str:
    kinds = inspect.Parameter
    written: list[str] = []
    for index, (kind, text) in enumerate(parameters):
        before = parameters[index - 1][0] if index else None
        if before == kinds.POSITIONAL_ONLY and kind != kinds.POSITIONAL_ONLY:
            written.append("/")
        if kind == kinds.KEYWORD_ONLY and before not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            written.append("*")
        star = "*" if kind == kinds.VAR_POSITIONAL else "**" if kind == kinds.VAR_KEYWORD else ""
        written.append(star + text)
    if parameters and parameters[-1][0] == kinds.POSITIONAL_ONLY:
        written.append("/")
    return ", ".join(written)


def _embedded(thing: Any, *, drop_self: bool) -> str:
    lines = (getattr(thing, "__doc__", None) or "").splitlines()
    match = _EMBEDDED.match(lines[0].strip()) if lines else None
    name = getattr(thing, "__name__", "")
    if match is None or match["path"].rpartition(".")[2] != name:
        return ""
    parameters = [_without_type(part) for part in split_parameters(match["parameters"]) if part]
    if drop_self and parameters and parameters[0] in ("self", "cls"):
        parameters = parameters[1:]
    return _python(f"({', '.join(parameters)})")


def _without_type(parameter: str) -> str:
    """Turn "bint copy=True" or "x: int = 3" into "copy=True" and "x=3"."""
    name, equals, default = (part.strip() for part in parameter.partition("="))
    name = name.partition(":")[0].removesuffix(" not None").strip()
    if name not in ("*", "/"):
        stars = "**" if "**" in name else "*" if name.startswith("*") else ""
        name = stars + re.split(r"[\s*&]+", name)[-1]
    return name + equals + default


def split_parameters(parameters: str) -> list[str]:
    """Split at the commas that stand outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for index, char in enumerate(parameters):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(parameters[start:index].strip())
            start = index + 1
    return [*parts, parameters[start:].strip()]


def _python(text: str) -> str:
    """Return ``text`` if it is a parameter list of Python, else ""."""
    try:
        ast.parse(f"def f{text}: ...")
    except SyntaxError:
        return ""
    return text
