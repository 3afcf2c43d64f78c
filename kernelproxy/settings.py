"""Where the pool is and whose key we show: the client's one settings file."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gpu_backend.opstream.devices import MOST_DEVICES
from gpu_backend.transport.private_files import replace_private
from gpu_backend.wire.bounds import PRIORITY, Bound
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable, quoted
from gpu_backend.wire.near_names import no_setting

#: Names the settings file, for a process that must not use the user's own.
CONFIG_VARIABLE = "GPU_WORKBENCH_CONFIG"
#: Says whether reads are answered by what the notebook knows, and comes before the settings file.
MIRROR_VARIABLE = "GPU_WORKBENCH_HOST_MIRROR"
#: How many devices a session may ask for.
DEVICES = Bound("number of devices", 1, MOST_DEVICES)

_Part = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the pool. msgspec and not pydantic: a kernel's start must be quick."""

    #: The gateway's ZeroMQ endpoint, ``tcp://host:port`` or ``ipc://path``.
    gateway: str
    #: The gateway's public CURVE key (Z85, 40 characters).
    server_key: str
    #: The file with our own key pair, mode 0600. Relative paths start at the settings file.
    key_file: Path
    #: Name or address under which this machine reaches the pool's executors, where it is another than the pool says:
    #: the near end of an SSH tunnel, the outer address of a router. The ports stay. "" for the pool's own.
    executor_host: str = ""
    #: By how many streams beside its own, each way, what is large travels to and from an executor on another host. Each
    #: takes a processor on both sides, and there are none where one of them has fewer than four.
    lanes: Annotated[int, msgspec.Meta(ge=0, le=4)] = 0
    #: What sessions ask for; see `gpu_backend.wire.Wish`. The environment comes before it.
    session_class: str = ""
    request: _Part = 0.0
    limit: _Part = 1.0
    priority: Annotated[int, msgspec.Meta(ge=PRIORITY.least, le=PRIORITY.most)] = 0
    #: Beside which of your sessions they go, apart from which, and with which alone: labels of your own.
    affinity: str = ""
    anti_affinity: str = ""
    exclusion: str = ""
    #: Whether a session wants a device of its own.
    whole_device: bool = False
    #: How many devices are wanted, of one node or else with a session for each.
    devices: Annotated[int, msgspec.Meta(ge=DEVICES.least, le=DEVICES.most)] = 1
    #: Whether reads are answered by what the notebook knows: "on", "off", or "check" to ask the device all the same and
    #: compare. The environment comes before it.
    host_mirror: Literal["on", "off", "check"] = "on"
    #: Device memory that a session asks for, as people write it ("4 GiB"); "" for the pool's default.
    memory: str = ""


#: What values are to be that are no texts.
_TO_BE = {
    "lanes": "a whole number, 0 to 4",
    "request": "a number from 0 to 1",
    "limit": "a number from 0 to 1",
    "priority": f"a whole number, {PRIORITY}",
    "whole_device": "true or false",
    "devices": f"a whole number, {DEVICES}",
    "host_mirror": '"on", "off" or "check"',
}
_FIELDS = {one.name: one.default for one in msgspec.structs.fields(ClientSettings)}
_DEFAULTS = {name: default for name, default in _FIELDS.items() if default is not msgspec.NODEFAULT}
_REMEDY = "Correct it, or remove the file and run `workbench connect` again."


def config_path() -> Path:
    """Return the path of the settings file, whether it exists or not."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gpu-workbench" / "client.toml"


def load(path: Path | None = None) -> ClientSettings:
    """Return the settings in ``path``, or in the file of `config_path`.

    Raises
    ------
    PoolUnreachable
        If there is no such file or it does not say where the pool is.
    PoolRefusal
        If something else in it is not right; the message names file and setting.
    """
    path = path or config_path()
    try:
        given = _given(path)
    except OSError as error:
        raise PoolUnreachable(
            f"No pool is set up here: {path} cannot be read ({error.strerror}). Run `workbench lab` for a pool on this "
            "machine, or `workbench connect` with the address and key that your pool's operator gave you."
        ) from None
    if missing := [name for name in _FIELDS if name not in _DEFAULTS and name not in given]:
        raise PoolUnreachable(
            f"{path} does not say where the pool is: {missing[0]} is missing. Run `workbench connect` again."
        )
    settings = _converted(path, given)
    if len(settings.server_key) != 40:
        raise PoolUnreachable(
            f"The server_key in {path} is no CURVE key (40 characters). Run `workbench connect` again."
        )
    return msgspec.structs.replace(settings, key_file=path.parent / settings.key_file.expanduser())


def beside(where: ClientSettings, path: Path | None = None) -> ClientSettings:
    """Return what else ``path`` says, or the file of `config_path`, for the pool that ``where`` names: all of it stays.

    Raises
    ------
    PoolRefusal
        If something in it is not right: it would be lost.
    """
    path = path or config_path()
    try:
        given = _given(path)
    except OSError:  # there is none yet
        return where
    way = {name: getattr(where, name) for name in _FIELDS if name not in _DEFAULTS}
    is_elsewhere = given.get("gateway") != where.gateway
    kept = _converted(path, {**given, **{name: str(value) for name, value in way.items()}})
    return msgspec.structs.replace(kept, **way, executor_host="" if is_elsewhere else kept.executor_host)


def _given(path: Path) -> dict[str, Any]:
    """Return what stands in ``path``.

    Raises
    ------
    OSError
        If it cannot be read.
    PoolRefusal
        If it is no TOML, or names a setting that there is not.
    """
    try:
        given = tomllib.loads(path.read_text())
    except ValueError as error:  # no text, no TOML, or a number of thousands of digits
        raise PoolRefusal(f"{path} is not right: {error}. {_REMEDY}") from None
    if unknown := [name for name in given if name not in _FIELDS]:
        raise PoolRefusal(f"{path} is not right: {no_setting(unknown[0], _FIELDS)}. {_REMEDY}")
    return given


def _converted(path: Path, given: dict[str, Any]) -> ClientSettings:
    try:
        return msgspec.convert(given, ClientSettings, dec_hook=_path)
    except msgspec.ValidationError as error:
        where = str(error).rpartition(" - at `$.")[2].rstrip("`")
        what = f"it is to be {_TO_BE.get(where, 'a text between quotes')}, not {quoted(given.get(where))}"
        raise PoolRefusal(f"{path} is not right: {where}: {what}. {_REMEDY}") from None


def mirror_mode(settings: ClientSettings) -> str:
    """Return what the environment says of the host mirror, else what ``settings`` say.

    Raises
    ------
    ValueError
        If the environment says something else than "on", "off" or "check".
    """
    said = os.environ.get(MIRROR_VARIABLE) or settings.host_mirror
    if said not in ("on", "off", "check"):
        raise ValueError(f"{MIRROR_VARIABLE} is {quoted(said)}. It may be on, off or check.")
    return said


def save(settings: ClientSettings, path: Path | None = None) -> Path:
    """Write ``settings`` to ``path`` (else `config_path`), readable by its owner only, and return the path."""
    path = path or config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fields = {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in msgspec.structs.asdict(settings).items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    # A JSON string in ASCII is a TOML basic string, and so is a number a number.
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    replace_private(path, text.encode())
    return path


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"no way from {value!r} to {kind}")
