"""``python -m gpu_backend.engine.ray_look ADDRESS``: look at a Ray cluster as a node would, and print what came of it.

A process of its own: what Ray cannot reach it waits for, and a gateway or a command must not.
"""

from __future__ import annotations

import json
import os
import socket
import sys

import msgspec
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError, RaySystemError

from gpu_backend.engine.ray_words import Looked

_PATIENCE_SECONDS = 3.0
_ANSWER_SECONDS = 5
#: Where Ray's head keeps what all its nodes must have alike.
_KEY, _NAMESPACE = b"CLUSTER_METADATA", b"cluster"


def main() -> None:
    """Print a `Looked` as JSON."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints goes elsewhere
    out.write(msgspec.json.encode(_look(sys.argv[1])))
    out.flush()
    os._exit(0)  # Ray's own end waits for what it could not reach


def _look(address: str) -> Looked:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_SECONDS).close()
    except OSError as error:
        return Looked("shut", error.strerror or "no answer")
    try:
        told = GcsClient(address=address).internal_kv_get(_KEY, _NAMESPACE, timeout=_ANSWER_SECONDS)
        versions = json.loads(told)
        return Looked("", "", str(versions["ray_version"]), str(versions["python_version"]))
    except AuthenticationError:
        return Looked("token")
    except (RaySystemError, RuntimeError, TypeError, ValueError, KeyError) as error:  # the last four: it is no Ray
        return Looked("silent", (str(error).strip() or "an answer that is not Ray's").splitlines()[0])


if __name__ == "__main__":
    main()
