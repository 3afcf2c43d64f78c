"""What is wrong with a pool's settings, in words of ours."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from gpu_backend.wire.near_names import no_setting


def wrongs(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with the settings of ``model``, each with its name."""
    return "; ".join(_wrong(one["type"], one["loc"], one["msg"], model) for one in error.errors())


def _wrong(kind: str, place: tuple[int | str, ...], message: str, model: type[BaseModel]) -> str:
    if kind == "extra_forbidden":
        within = f"{'.'.join(map(str, place[:-1]))}: " if len(place) > 1 else ""
        return within + no_setting(str(place[-1]), _beside(place, model))
    where = ".".join(map(str, place))
    what = message.removeprefix("Value error, ")
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
