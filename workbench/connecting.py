"""Connecting this machine to a pool: whose key, which address, tried before it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.transport import curve
from gpu_backend.wire.control import AskPool
from gpu_backend.wire.errors import NotAuthorized, PoolUnreachable
from gpu_backend.wire.views import PoolView
from kernelproxy import settings
from kernelproxy.gateway_client import request
from kernelproxy.settings import ClientSettings


class Connected(NamedTuple):
    """What came of it."""

    settings: ClientSettings
    path: Path
    pool: PoolView


def default_key_file() -> Path:
    """Return where this user's key pair is kept unless told otherwise: beside the settings."""
    return settings.config_path().parent / "client.key"


def connect(address: str = "", server_key: str = "", key_file: Path | None = None) -> Connected:
    """Ask the pool at ``address`` with our key; keep the settings if it answers.

    What is not given stays as it was. A key pair is made if there is none.

    Raises
    ------
    PoolUnreachable
        If address or server key are neither given nor known, or nobody answers there.
    NotAuthorized
        If the pool does not know our key; the message has the public half, for its operator.
    """
    wanted = _complete(address, server_key, key_file)
    public = curve.load_or_generate(wanted.key_file).public.decode()
    try:
        view = request(wanted, AskPool(0))
    except NotAuthorized as error:
        raise NotAuthorized(
            f"{error}\nYour public key, for the pool's operator: {public}\nOnce they have added it, run this again."
        ) from None
    if not isinstance(view, PoolView):
        raise PoolUnreachable(f"What answers at {wanted.gateway} is no gpu-workbench pool of this version.")
    return Connected(wanted, settings.save(wanted), view)


def _complete(address: str, server_key: str, key_file: Path | None) -> ClientSettings:
    known = settings.load() if not (address and server_key) else None
    if known is not None and address and not server_key:
        raise PoolUnreachable(
            f"To connect to {address} its public key is needed as well: add --server-key. The pool's operator sees it "
            "with `workbench pool keys`."
        )
    wanted = ClientSettings(
        gateway=address or (known.gateway if known else ""),
        server_key=server_key or (known.server_key if known else ""),
        key_file=(key_file or (known.key_file if known else default_key_file())).absolute(),
    )
    return _with_wishes(wanted)


def _with_wishes(wanted: ClientSettings) -> ClientSettings:
    """Return ``wanted`` with what the present settings say that sessions ask for."""
    try:
        kept = settings.load()
    except PoolUnreachable:  # there are none, or none that make sense
        return wanted
    way = {name: getattr(wanted, name) for name in ("gateway", "server_key", "key_file")}
    return msgspec.structs.replace(kept, **way)
