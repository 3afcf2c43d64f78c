"""`docs/reference/wire.md` describes every message, every field, every verb and every reason for a refusal."""

from __future__ import annotations

import hashlib
import re
from types import SimpleNamespace

import msgspec
import pytest

from gpu_backend.executor.verbs import Verbs
from gpu_backend.wire import (
    channels,
    clusters,
    control,
    devices,
    errors,
    groups,
    joining,
    messages,
    orders,
    values,
    version,
    views,
    wish,
)

from .tree import ROOT

#: What the structs of each protocol version look like.
SHAPES = {
    2: "2e0dc6c35f935dbd", 3: "3167a10624d356d2", 4: "9e04a6879481749a", 5: "4624d5edf25ae4f3", 6: "f38c9df5d8f75811",
    7: "40709f5b52c37085",
}  # fmt: skip
#: Which verbs there are from each minor version on.
VERBS = {1: "732b680ca26a9f67", 2: "e610b96d137c0e5e", 3: "e610b96d137c0e5e"}
PAGE = (ROOT / "docs" / "reference" / "wire.md").read_text(encoding="utf-8")
MODULES = (messages, values, control, orders, channels, groups, clusters, devices, joining, views, errors, wish)


def structs() -> list[type[msgspec.Struct]]:
    return [
        item
        for module in MODULES
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, msgspec.Struct) and item.__module__ == module.__name__
    ]


def row(name: str) -> str:
    """Return the table row that describes ``name``."""
    match = re.search(rf"^\| `{re.escape(name)}` \|.*$", PAGE, re.MULTILINE)
    assert match, f"docs/reference/wire.md has no row for {name}"
    return match[0]


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_each_struct_has_a_row_with_its_tag_and_fields_in_order(struct: type[msgspec.Struct]) -> None:
    described = row(struct.__name__)
    tag = msgspec.inspect.type_info(struct).tag  # type: ignore[attr-defined]
    if tag is not None:
        assert f"`{tag}`" in described
    fields = [f"`{field}`" for field in struct.__struct_fields__]
    places = [described.find(field, described.index("|", 2)) for field in fields]
    assert -1 not in places, f"not described: {[f for f, place in zip(fields, places, strict=True) if place == -1]}"
    assert places == sorted(places), "the fields stand in another order than on the wire"


def test_each_verb_has_a_row() -> None:
    verbs = Verbs(SimpleNamespace(synchronize=None), resolve=str, objects=None)  # type: ignore[arg-type]
    described = re.findall(r"^\| `(\.\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(described) == sorted(verbs.table)


@pytest.mark.parametrize("code", list(errors.RefusalCode), ids=str)
def test_each_refusal_has_a_row(code: errors.RefusalCode) -> None:
    row(code.value)


def test_the_version_is_stated() -> None:
    assert f"0x{version.MAGIC:02x}" in PAGE
    assert f"version {version.PROTOCOL_VERSION}" in PAGE


def test_the_version_grows_with_the_wire() -> None:
    """So that who upgrades under a running pool hears of versions, and not of an answer that never comes."""
    shape = hashlib.sha256("\n".join(map(shape_of, structs())).encode()).hexdigest()[:16]
    assert SHAPES.get(version.PROTOCOL_VERSION) == shape, (
        f"The messages have changed. If fields with a default were added at a struct's end, put {shape!r} into SHAPES; "
        "else raise PROTOCOL_VERSION and note it there as well."
    )


def test_the_minor_version_grows_with_the_verbs() -> None:
    """So that who upgrades a notebook before its pool is not told that there is no such verb."""
    verbs = Verbs(SimpleNamespace(synchronize=None), resolve=str, objects=None)  # type: ignore[arg-type]
    known = hashlib.sha256("\n".join(sorted(verbs.table)).encode()).hexdigest()[:16]
    assert VERBS.get(version.MINOR_VERSION) == known, (
        f"The verbs have changed. If one is new, raise MINOR_VERSION, put {known!r} into VERBS, and have the notebook "
        "look at `Welcome.minor` before it uses it; else raise PROTOCOL_VERSION."
    )


def shape_of(struct: type[msgspec.Struct]) -> str:
    """Return what counts on the wire: tag, and the fields in order with their types."""
    tag = msgspec.inspect.type_info(struct).tag  # type: ignore[attr-defined]
    fields = ", ".join(f"{name}: {struct.__annotations__[name]}" for name in struct.__struct_fields__)
    return f"{struct.__name__} [{tag}] {fields}"
