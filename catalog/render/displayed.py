"""A result that shows itself, and gives its data away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from catalog.render import html, text
from catalog.render.document import Document

__all__ = ["Displayed"]


class Displayed(ABC):
    """A result that shows itself: as text where it is printed, as HTML in a notebook.

    A subclass says what to show in ``document`` and what its data are in ``records``.
    """

    __slots__ = ()

    @abstractmethod
    def document(self) -> Document:
        """Return what is shown."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return the data as plain dictionaries, one per row."""

    def to_pandas(self) -> Any:
        """Return the records as a ``pandas.DataFrame``.

        Raises
        ------
        ModuleNotFoundError
            Without pandas, with the way to install it and the way to do without.
        """
        return to_pandas(self.records())

    def to_json(self) -> str:
        """Return the records as JSON text, indented."""
        return msgspec.json.format(msgspec.json.encode(self.records()), indent=2).decode()

    def __str__(self) -> str:
        return text.render(self.document())

    def _repr_html_(self) -> str:
        return html.render(self.document())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        document = self.document()  # worked out once: a graph is laid out for it, a table's cells are looked up
        return {"text/plain": text.render(document), "text/html": html.render(document)}


def to_pandas(records: Sequence[Mapping[str, Any]]) -> Any:
    """Return ``records`` as a ``pandas.DataFrame``."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_pandas() needs pandas, which is not installed here: pip install pandas; or use .records()",
            name="pandas",
        ) from None
    return pandas.DataFrame.from_records(list(records))
