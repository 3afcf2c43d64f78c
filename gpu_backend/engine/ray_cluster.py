"""A Ray cluster that is no more than the membership of a pool: how its nodes are started, and who gets in."""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpu_backend.engine.ray_words import Looked
from gpu_backend.wire.errors import PoolRefusal

#: The least that Ray takes: no array ever goes through its store.
_STORE_BYTES = 80_000_000
#: How long nodes go on without the head, seconds.
_HEADLESS_SECONDS = 600
#: How long a cluster is looked at, seconds: starting a Python with Ray takes one of them.
_LOOK_SECONDS = 15.0
#: What certificates are called in a directory, as Kubernetes and cert-manager name them, and how Ray knows them.
CERTIFICATES = {"RAY_TLS_SERVER_CERT": "tls.crt", "RAY_TLS_SERVER_KEY": "tls.key", "RAY_TLS_CA_CERT": "ca.crt"}
#: What of our own environment would lead Ray elsewhere.
_FOREIGN = ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_NAMESPACE", "RAY_RUNTIME_ENV_HOOK")


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A cluster at ``address`` (host:port of its head), which lets in whoever holds the token in ``token_file``.

    Its members speak TLS where there are ``certificates``, a directory with the files that `CERTIFICATES` names.
    """

    address: str
    token_file: Path
    certificates: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that speaks with the cluster. The token itself is not in it."""
        own = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return own | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "RAY_gcs_rpc_server_reconnect_timeout_s": str(_HEADLESS_SECONDS),
            "RAY_USAGE_STATS_ENABLED": "0",
            **self._encryption(),
        }

    def _encryption(self) -> dict[str, str]:
        if self.certificates is None:
            return {}
        files = {variable: str(self.certificates / name) for variable, name in CERTIFICATES.items()}
        return {"RAY_USE_TLS": "1", **files}

    def head_environment(self, store: Path) -> dict[str, str]:
        """Return the environment of the head, which keeps in ``store`` what it must find again after its end."""
        return self.environment() | {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(store)}

    def head_command(self, node: str, directory: Path) -> list[str]:
        """Return the command that is the head, and a node of the pool, until it is ended."""
        host, _, port = self.address.rpartition(":")
        return [*_start(node, host, directory), "--head", f"--port={port}", "--include-dashboard=false"]

    def node_command(self, node: str, host: str, directory: Path) -> list[str]:
        """Return the command that is a node of the pool, heard at ``host``, until it is ended."""
        return [*_start(node, host, directory), f"--address={self.address}"]

    def look(self) -> Looked:
        """Ask the cluster who it is, from a process of its own, which may hang."""
        command = [sys.executable, "-m", "gpu_backend.engine.ray_look", self.address]
        try:
            said = subprocess.run(
                command, env=self.environment(), capture_output=True, timeout=_LOOK_SECONDS, check=True
            )
            return msgspec.json.decode(said.stdout, type=Looked)
        except subprocess.TimeoutExpired:
            return Looked("silent", f"no answer within {_LOOK_SECONDS:.0f} s")
        except subprocess.CalledProcessError as error:
            said_last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return Looked("silent", "".join(said_last) or f"asking it ended with status {error.returncode}")


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


def _start(node: str, host: str, directory: Path) -> Sequence[str]:
    # Ray's own GPUs and CPUs are none: it places keepers, which need none, and the pool shares out the devices.
    return [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--node-name={node}",
        f"--node-ip-address={host}", "--num-cpus=0", "--num-gpus=0", f"--object-store-memory={_STORE_BYTES}",
        "--include-log-monitor=false", "--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0",
        f"--temp-dir={directory}",
    ]  # fmt: skip
