"""What is wrong with a pool's settings, in words of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from gpu_backend.wire.errors import quoted
from gpu_backend.wire.near_names import no_setting

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: What a value is to be, by what pydantic calls the error; in braces what it says of the limits.
_TO_BE = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "finite_number": "a number with an end",
    "string_type": "a text between quotes",
    "tuple_type": "a list between brackets",
    "dict_type": "a table between braces",
    "model_type": "a table between braces",
    "literal_error": "{expected}",
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "string_too_short": "a text that is not empty",
    "string_too_long": "a text of {max_length} characters or less",
}


def wrongs(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with the settings of ``model``, each with its name."""
    return "; ".join(_wrong(one, model) for one in error.errors())


def _wrong(error: ErrorDetails, model: type[BaseModel]) -> str:
    kind, place = error["type"], error["loc"]
    if kind == "extra_forbidden":
        within = f"{'.'.join(map(str, place[:-1]))}: " if len(place) > 1 else ""
        return within + no_setting(str(place[-1]), _beside(place, model))
    where = ".".join(str(one) for one in place if one != "[key]")
    what = error["msg"].removeprefix("Value error, ")
    if kind == "missing":
        what = "it is missing"
    elif kind in _TO_BE:
        what = f"it is to be {_TO_BE[kind].format(**error.get('ctx', {}))}, not {quoted(error['input'])}"
    return f"{where}: {what}" if where else what


def _beside(place: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """Return the names that there are where a name stands that there is not."""
    if len(place) == 1:
        return list(model.model_fields)
    return [name for one in _models(model.model_fields[str(place[0])].annotation) for name in one.model_fields]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in getattr(annotation, "__args__", ()) for found in _models(inner)]
