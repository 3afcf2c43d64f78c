"""What the programs say of errors that they expect."""

from __future__ import annotations

from collections.abc import Callable


def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object], *words: str
) -> BaseException:
    """Return the error that ``call`` raises: of this kind, or one of these, with these words in its message."""
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in {error!r}"
        return error
    raise AssertionError(f"{kind} did not come")
