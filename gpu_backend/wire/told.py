"""What a pool tells its users, made fit to be shown and reckoned with where it is read: a pool may be hostile, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gpu_backend.wire.errors import MalformedMessage
from gpu_backend.wire.figures import fit_figure
from gpu_backend.wire.words import printable_lines

__all__ = ["fit_answer", "fit_words"]

T = TypeVar("T")


def fit_answer(answer: T) -> T:
    """Return a gateway's ``answer`` with nothing that a terminal obeys in its words, and no figure that cannot be."""
    return _fitted(answer, _fit)


def fit_words(told: T) -> T:
    """Return what an executor has ``told`` with nothing that a terminal obeys in its words; its numbers stay."""
    return _fitted(told, _fit_word)


def _fitted(told: T, fit: Callable[[Any], Any]) -> T:
    try:
        fitted: T = _mapped(told, fit)
    except RecursionError:
        raise MalformedMessage("It is nested too deep.") from None
    return fitted


def _mapped(told: Any, fit: Callable[[Any], Any]) -> Any:
    """Return ``told`` with all that is in it made fit; itself if it is so already."""
    if isinstance(told, msgspec.Struct):
        before = {name: getattr(told, name) for name in told.__struct_fields__}
        changed = {name: after for name, was in before.items() if (after := _mapped(was, fit)) is not was}
        return msgspec.structs.replace(told, **changed) if changed else told
    if isinstance(told, tuple | list):
        parts = [_mapped(part, fit) for part in told]
        return told if all(part is was for part, was in zip(parts, told, strict=True)) else type(told)(parts)
    if isinstance(told, dict):
        return {_mapped(name, fit): _mapped(part, fit) for name, part in told.items()}
    return fit(told)


def _fit_word(told: Any) -> Any:
    return printable_lines(told) if isinstance(told, str) else told


def _fit(told: Any) -> Any:
    is_figure = isinstance(told, int | float) and not isinstance(told, bool)
    return fit_figure(told) if is_figure else _fit_word(told)
