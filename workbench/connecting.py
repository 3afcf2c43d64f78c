"""Connecting this machine to a pool: whose key, which address, tried before it is kept."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.transport import curve
from gpu_backend.wire.control import AskPool
from gpu_backend.wire.errors import ForeignServer, NotAuthorized, PoolRefusal, PoolUnreachable, quoted
from gpu_backend.wire.views import PoolView
from kernelproxy import settings
from kernelproxy.session.gateway_client import request
from kernelproxy.settings import ClientSettings

#: A name or a number of a host; ZeroMQ says of anything else "Invalid argument".
_HOST = re.compile(r"\[[\w:.%-]+\]|[\w-]{1,63}(\.[\w-]{1,63})*\.?", re.ASCII)


class Connected(NamedTuple):
    """What came of it."""

    settings: ClientSettings
    path: Path
    pool: PoolView


def default_key_file() -> Path:
    """Return where this user's key pair is kept unless told otherwise: beside the settings."""
    return settings.config_path().parent / "client.key"


def connect(
    address: str = "", server_key: str = "", key_file: Path | None = None, executor_host: str | None = None
) -> Connected:
    """Ask the pool at ``address`` with our key; keep the settings if it answers.

    What is not given stays as it was. A key pair is made if there is none.

    Raises
    ------
    PoolUnreachable
        If address or server key are neither given nor known, or nobody answers there.
    PoolRefusal
        If address, server key or executors' host are none, or something in the settings file is not right.
    NotAuthorized
        If the pool does not know our key; the message has the public half, for its operator. A `ForeignServer` if what
        answers there is not the pool with that server key.
    """
    if executor_host:
        _need_host(executor_host)
    wanted = _complete(_endpoint(address), server_key, key_file)
    if executor_host is not None:
        wanted = msgspec.structs.replace(wanted, executor_host=executor_host)
    public = curve.load_or_generate(wanted.key_file).public.decode()
    try:
        view = request(wanted, AskPool(0))
    except ForeignServer:
        raise
    except NotAuthorized as error:
        raise NotAuthorized(
            f"{error}\nYour public key, for the pool's operator, as a shell takes it: {shlex.quote(public)}\n"
            "Once they have added it, run this again."
        ) from None
    if not isinstance(view, PoolView):
        raise PoolUnreachable(f"What answers at {wanted.gateway} is no gpu-workbench pool of this version.")
    return Connected(wanted, settings.save(wanted), view)


def _endpoint(address: str) -> str:
    """Return the ZeroMQ endpoint that ``address`` means: as it is, or "host:port" of a pool elsewhere."""
    if not address or address.startswith("ipc://"):
        return address
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    if scheme not in ("", "tcp") or not _HOST.fullmatch(host) or not port.isdecimal() or not 0 < int(port) <= 65535:
        raise PoolRefusal(f"{quoted(address)} is no pool's address: write it like tcp://gpu.example.org:7733.")
    return f"tcp://{rest}"


def _need_host(host: str) -> None:
    if not _HOST.fullmatch(f"[{host}]" if ":" in host and not host.startswith("[") else host):
        raise PoolRefusal(f"--executor-host: {quoted(host)} is no name or address of a host.")


def _without_key(address: str) -> PoolUnreachable:
    return PoolUnreachable(
        f"To connect to {address} its public key is needed as well: add --server-key. The pool's operator sees it "
        "with `workbench pool keys`."
    )


def _complete(address: str, server_key: str, key_file: Path | None) -> ClientSettings:
    known = _known(address, server_key)
    if known is not None and address not in ("", known.gateway) and not server_key:
        raise _without_key(address)
    wanted = ClientSettings(
        gateway=address or (known.gateway if known else ""),
        server_key=server_key or (known.server_key if known else ""),
        key_file=(key_file or (known.key_file if known else default_key_file())).absolute(),
    )
    if not curve.is_public_key(wanted.server_key):
        raise PoolRefusal(
            f"{quoted(wanted.server_key)} is no pool's public key: it has 40 characters, and the pool's operator sees "
            "it with `workbench pool keys`. In a shell, put it between single quotes."
        )
    return settings.beside(wanted)


def _known(address: str, server_key: str) -> ClientSettings | None:
    """Return the present settings if they are needed, or are of the very pool that is named: its key stays ours."""
    try:
        kept = settings.load()
    except PoolUnreachable:  # there are none, or none that make sense
        if address and server_key:
            return None
        if address:
            raise _without_key(address) from None
        raise
    if not (address and server_key):
        return kept
    return kept if (kept.gateway, kept.server_key) == (address, server_key) else None
