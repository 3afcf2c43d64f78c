"""A Ray cluster that is no more than the membership of a pool: how its nodes are started, and who gets in."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.wire.errors import PoolRefusal

#: The least that Ray takes: no array ever goes through its store.
_STORE_BYTES = 80_000_000
#: How long nodes go on without the head, seconds.
_HEADLESS_SECONDS = 600
#: What of our own environment would lead Ray elsewhere.
_FOREIGN = ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_NAMESPACE", "RAY_RUNTIME_ENV_HOOK")


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A cluster at ``address`` (host:port of its head), which lets in whoever holds the token in ``token_file``."""

    address: str
    token_file: Path

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that speaks with the cluster. The token itself is not in it."""
        own = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return own | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "RAY_gcs_rpc_server_reconnect_timeout_s": str(_HEADLESS_SECONDS),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def head_environment(self, store: Path) -> dict[str, str]:
        """Return the environment of the head, which keeps in ``store`` what it must find again after its end."""
        return self.environment() | {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(store)}

    def head_command(self, node: str, directory: Path) -> list[str]:
        """Return the command that is the head, and a node of the pool, until it is ended."""
        host, _, port = self.address.rpartition(":")
        return [*_start(node, host), "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={directory}"]

    def node_command(self, node: str, host: str) -> list[str]:
        """Return the command that is a node of the pool, heard at ``host``, until it is ended."""
        return [*_start(node, host), f"--address={self.address}"]


def need_ray() -> None:
    """Go on only where Ray is installed.

    Raises
    ------
    PoolRefusal
        If it is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise PoolRefusal(
            "The engine 'ray' needs Ray, which is not installed here. Run `pip install 'gpu-workbench[ray]'`; a pool "
            "of one machine does without, with the engine 'local'."
        )


def make_token(path: Path) -> None:
    """Have a token in ``path``, for its owner only; one that is there stays."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))


def _start(node: str, host: str) -> Sequence[str]:
    # Ray's own GPUs and CPUs are none: it places keepers, which need none, and the pool shares out the devices.
    return [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--node-name={node}",
        f"--node-ip-address={host}", "--num-cpus=0", "--num-gpus=0", f"--object-store-memory={_STORE_BYTES}",
        "--include-log-monitor=false", "--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0",
    ]  # fmt: skip
