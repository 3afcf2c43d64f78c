"""What a provisioner hands to the kernel that it starts: a private file, named in the environment.

Apart from the session, so that Jupyter's server, which runs the provisioner, loads nothing of the arrays.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from gpu_backend.wire.control import OpenSession, RenewTicket, Ticket

#: Names the file.
TICKET_VARIABLE = "GPU_WORKBENCH_TICKET"
#: The way to an executor or, while there is none, what to ask for one. The kernel writes the ticket that it is then
#: given into the same file, for the provisioner to give back.
Handed = Ticket | RenewTicket | OpenSession


def write(handed: Handed, path: Path) -> None:
    """Write ``handed`` to ``path``, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(handed))


def read(path: Path) -> Handed:
    """Return what `write` wrote to ``path``."""
    handed: Handed = msgspec.json.decode(path.read_bytes(), type=Handed)
    return handed
