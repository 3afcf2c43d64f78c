"""dtypes as text: ``numpy.dtype.str`` for plain ones, a JSON list of fields for structured ones."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1024)
def dtype_to_text(dtype: np.dtype[Any]) -> str:
    """Return the text of ``dtype``; extension dtypes such as bfloat16 go by name."""
    if dtype.fields is not None:
        fields = [[name, dtype_to_text(dtype.fields[name][0]), dtype.fields[name][1]] for name in dtype.names or ()]
        return json.dumps({"fields": fields, "itemsize": dtype.itemsize, "aligned": dtype.isalignedstruct})
    if dtype.subdtype is not None:
        return json.dumps({"base": dtype_to_text(dtype.subdtype[0]), "shape": list(dtype.subdtype[1])})
    if dtype.kind == "V" and dtype.type is not np.void:
        return dtype.name
    return dtype.str


@lru_cache(maxsize=1024)
def text_to_dtype(text: str) -> np.dtype[Any]:
    """Return the dtype written as ``text``.

    Raises
    ------
    TypeError
        If ``text`` names no dtype, or one that holds Python objects.
    """
    dtype = _from_json(text) if text.startswith("{") else _from_name(text)
    if dtype.hasobject:
        raise TypeError(f"The dtype {text!r} holds Python objects, which cannot leave their process.")
    return dtype


def _from_json(text: str) -> np.dtype[Any]:
    try:
        described = json.loads(text)
        if "base" in described:
            return np.dtype((text_to_dtype(described["base"]), tuple(described["shape"])))
        names, formats, offsets = zip(*described["fields"], strict=True) if described["fields"] else ((), (), ())
        return np.dtype(
            {
                "names": list(names),
                "formats": [text_to_dtype(one) for one in formats],
                "offsets": list(offsets),
                "itemsize": described["itemsize"],
            },
            align=bool(described["aligned"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TypeError(f"{text!r} is no description of a structured dtype: {error}") from None


def _from_name(text: str) -> np.dtype[Any]:
    try:
        return np.dtype(text)
    except TypeError:
        pass
    try:
        import ml_dtypes  # optional: bfloat16 and the 8-bit floats
    except ImportError:
        raise TypeError(f"{text!r} is no dtype known here.") from None
    if not isinstance(getattr(ml_dtypes, text, None), type):
        raise TypeError(f"{text!r} is no dtype known here.")
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, text))
    return found
