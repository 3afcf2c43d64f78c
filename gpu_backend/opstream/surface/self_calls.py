"""Which methods of CuPy's classes certainly call which others of the same object: ``rand`` calls ``random_sample``.

A subclass that overrides the latter changes the former, in CuPy. An executor knows nothing of subclasses; who asks
here can say so. `gpu_backend.opstream.surface.describe` reads the calls off CuPy's sources and writes them into a file.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gpu_backend.opstream.surface import is_public_attribute

PATH = Path(__file__).with_name("self_calls.json")
#: What may not come to be run: the bodies of statements, and what short-circuits.
_UNCERTAIN = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.comprehension, ast.FunctionDef)


@cache
def load() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return, by class and method, the public methods of the same object that it certainly calls."""
    return msgspec.json.decode(PATH.read_bytes(), type=dict[str, dict[str, tuple[str, ...]]])


def self_calls(kind: type) -> dict[str, tuple[str, ...]]:
    """Read off the source of ``kind`` what `load` returns of it; of a compiled class there is none.

    What a method calls of private methods counts with what those call.
    """
    functions = {name: inspect.getattr_static(kind, name) for name in dir(kind)}
    calls = {name: _called(one) for name, one in functions.items() if inspect.isfunction(one)}
    found = {
        name: tuple(sorted(one for one in _closed(name, calls) if one in calls and is_public_attribute(one)))
        for name in calls
        if is_public_attribute(name)
    }
    return {name: called for name, called in sorted(found.items()) if called}


def _closed(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    """Return what ``name`` calls, and what that calls, and so on, but for itself."""
    found: set[str] = set()
    pending = [name]
    while pending:
        fresh = calls.get(pending.pop(), set()) - found
        found |= fresh
        pending.extend(fresh)
    return found - {name}


def _called(function: Any) -> set[str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError):
        return set()
    if not isinstance(definition, ast.FunctionDef) or not definition.args.args:
        return set()
    target = definition.args.args[0].arg
    certain = [node for statement in _sure_to_come(definition.body) for node in _certain(statement)]
    called = [node.func for node in certain if isinstance(node, ast.Call)]
    return {one.attr for one in called if isinstance(one, ast.Attribute) and ast.unparse(one.value) == target}


def _sure_to_come(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements up to the first that may return."""
    for statement in body:
        yield statement
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return


def _certain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and what is run whenever it is."""
    if isinstance(node, _UNCERTAIN):
        return
    yield node
    if isinstance(node, (ast.If, ast.While)):
        yield from _certain(node.test)
    elif isinstance(node, ast.For):
        yield from _certain(node.iter)
    elif not isinstance(node, ast.Try):
        for child in ast.iter_child_nodes(node):
            yield from _certain(child)
