"""``workbench pool``: a pool on this machine, for its operator. Users and keys are in `pool_users`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands as pool
from gpu_backend.pool import people, running
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.people import Address
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import PoolView
from kernelproxy import settings as client_settings
from workbench.commands import pool_mig, pool_shares, pool_top, pool_usage, pool_users
from workbench.commands.pool_actions import become, finish
from workbench.display import Facts, Section, bytes_in_words
from workbench.nodes import places_in_words, state_in_words
from workbench.terminal import say, show

#: Options of `up` and the settings that they are.
_SETTINGS = {
    "name": "name",
    "listen": "listen_host",
    "port": "listen_port",
    "advertise": "advertise_host",
    "head": "nodes_host",
    "nodes_port": "nodes_port",
    "devices": "devices",
    "engine": "engine",
    "ray_address": "ray_address",
    "ray_token_file": "ray_token_file",
    "ray_port": "ray_port",
    "ray_certificates": "ray_certificates",
}


class PoolStatus(Facts):
    """A pool as its operator sees it."""

    def __init__(
        self,
        view: PoolView,
        state: PoolState,
        address: Address,
        absent: Sequence[int] = (),
        is_supervised: bool = True,
    ) -> None:
        """Show ``view``; for the devices of these numbers, which are ``absent``, something is set."""
        self.title = f"Pool {view.pool}"
        self._absent = absent
        self._is_supervised = is_supervised
        self._view = view
        self._state = state
        self._address = address

    def sections(self) -> Sequence[Section]:
        """Return devices, sessions, and how others connect."""
        devices = tuple(
            (
                f"{one.node}/{one.kind}{one.ordinal}",
                f"{one.name}, {bytes_in_words(one.total_bytes)}, {one.sessions} of {one.capacity} sessions, "
                f"shared by {one.space or one.policy}"
                + (f", its use seen by nobody: {one.unseen}" if one.unseen else "")
                + (f", and no session can begin there: {one.ailment}" if one.ailment else ""),
            )
            for one in self._view.devices
        )
        sessions = tuple(
            (one.session, f"{one.user}, {one.state}, {places_in_words(one)}, epoch {one.epoch}")
            for one in self._view.sessions
        )
        absent = tuple((f"device {number}", "set in pool.toml, and not there") for number in self._absent)
        parts = [Section("Devices", (*(devices or (("none", "no node has reported yet"),)), *absent))]
        if len(self._view.nodes) > 1 or any(one.state != "up" for one in self._view.nodes):
            machines = ((one.name, f"{state_in_words(one)}, {one.sessions} sessions") for one in self._view.nodes)
            parts.append(Section("Machines", tuple(machines)))
        own = [("engine", self._view.engine)]
        if not self._is_supervised:
            own.append(("supervisor", f"none. {pool.SUPERVISE}"))
        parts.insert(0, Section("", tuple(own)))
        parts.append(Section("Sessions", sessions or (("none", ""),)))
        if self._view.waiting:
            rows = ((str(one.place), f"{one.user}, for {one.waited_seconds:.0f} s") for one in self._view.waiting)
            parts.append(Section("Waiting", tuple(rows)))
        if self._address.gateway.startswith("tcp:"):
            command = f"workbench connect {self._address.gateway} --server-key='{self._address.server_key}'"
            parts.append(Section("From other machines, run", (("run", command),), to_copy=True))
        return [
            *parts,
            Section("Files", (("settings", str(self._state.settings_file)), ("logs", str(self._state.logs)))),
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the same for programs."""
        return {
            "pool": self._view.pool,
            "version": self._view.version,
            "started_at": self._view.started_at,
            "engine": self._view.engine,
            **self._address._asdict(),
            "state": str(self._state.root),
            "logs": str(self._state.logs),
            "devices": [msgspec.structs.asdict(one) for one in self._view.devices],
            "absent_devices": list(self._absent),
            "is_supervised": self._is_supervised,
            "sessions": [msgspec.structs.asdict(one) for one in self._view.sessions],
            "waiting": [msgspec.structs.asdict(one) for one in self._view.waiting],
            "nodes": [msgspec.structs.asdict(one) for one in self._view.nodes],
        }


def configure(parser: ArgumentParser) -> None:
    """Add the sub-commands."""
    parser.description = "Run a pool on this machine, for its operator."
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, help_text, execute in (
        ("up", "start the pool", up),
        ("serve", "keep the pool in the foreground, for systemd and its like; sessions outlive it", serve),
    ):
        one = parts.add_parser(name, help=help_text)
        _add_settings(one)
        finish(one, execute)
    finish(parts.add_parser("down", help="end the pool and every session in it"), down)
    finish(parts.add_parser("reload", help="have changed settings count; no session ends"), reload)
    finish(parts.add_parser("status", help="show devices and sessions"), status)
    pool_users.register(parts, finish)
    pool_shares.register(parts, finish)
    pool_mig.register(parts, finish)
    pool_usage.register(parts, finish)
    pool_top.register(parts, finish)


def _add_settings(up_parser: ArgumentParser) -> None:
    up_parser.add_argument("--name", help="its name, as people see it")
    up_parser.add_argument("--listen", metavar="HOST", help="address for other machines' notebooks; none by default")
    up_parser.add_argument("--port", type=int, help="its TCP port")
    up_parser.add_argument("--advertise", metavar="HOST", help="name under which other machines reach this one")
    up_parser.add_argument(
        "--head", metavar="HOST", help="be the head of several machines: address on which they are heard"
    )
    up_parser.add_argument("--nodes-port", type=int, metavar="PORT", help="its TCP port")
    up_parser.add_argument("--devices", choices=("auto", "cuda", "cpu"), help="what it offers")
    up_parser.add_argument(
        "--engine", choices=("local", "ray"), help="what keeps its machines together; local by default"
    )
    ray = up_parser.add_argument_group("with the engine ray")
    ray.add_argument("--ray-address", metavar="HOST:PORT", help="a Ray cluster that runs already, instead of its own")
    ray.add_argument("--ray-token-file", metavar="FILE", help="what holds that cluster's token")
    ray.add_argument("--ray-port", type=int, metavar="PORT", help="TCP port of its own Ray head")
    ray.add_argument("--ray-certificates", metavar="DIR", help="tls.crt, tls.key and ca.crt, to encrypt what Ray says")


def up(arguments: Namespace) -> int:
    """Start the pool; connect this user to it if they have no other pool."""
    state = at(arguments.state)
    settings = _wanted_settings(arguments, state)
    if not arguments.json:
        say("Starting the pool ...")
    pool.up(state, settings)
    if not client_settings.config_path().exists():
        pool.write_client_file(state, _made(client_settings.config_path()))
    return status(arguments)


def serve(arguments: Namespace) -> int:
    """Become the process that keeps the pool, until a signal or `workbench pool down` ends it."""
    state = at(arguments.state)
    become(pool.make_ready(state, _wanted_settings(arguments, state)))
    return 0


def down(arguments: Namespace) -> int:
    """End the pool."""
    state = at(arguments.state)
    if not running.processes(state):  # whatever runs is ended, also where its records are lost
        state.need()
    pool.down(state)
    show(arguments, "The pool is down.", {"state": str(state.root), "is_up": False})
    return 0


def reload(arguments: Namespace) -> int:
    """Have changed settings count."""
    if not arguments.json:
        say("Reading the settings ...")
    pool.reload(at(arguments.state))
    return status(arguments)


def status(arguments: Namespace) -> int:
    """Show the pool."""
    state = at(arguments.state)
    view = pool.status(state)
    shown = PoolStatus(view, state, people.address(state), pool.absent(state, view), pool.is_supervised(state))
    show(arguments, shown, shown.to_dict())
    return 0


def _wanted_settings(arguments: Namespace, state: PoolState) -> PoolSettings | None:
    """Return the settings for a new pool; None if it has some already.

    Raises
    ------
    PoolRefusal
        If what is asked for does not fit, or it has settings and others are asked for.
    """
    given = {
        setting: value for option, setting in _SETTINGS.items() if (value := getattr(arguments, option)) is not None
    }
    if not state.settings_file.exists():
        return pool_settings.made_of(given)
    present = pool_settings.read(state.settings_file)
    other = [name for name, value in given.items() if getattr(present, name) != value]
    if other:
        is_up = read_identity(state.process_file("supervisor")) is not None
        raise PoolRefusal(
            f"This pool has its settings already, with another {' and '.join(other)}. Change {state.settings_file} and "
            f"run `workbench pool {'reload' if is_up else 'up'}`."
        )
    return None


def _made(path: Path) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
