"""``workbench node``: the machines of a pool. Invited and looked after on its head, joined on the machine itself."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from getpass import getpass
from time import localtime, strftime

import msgspec
from rich.text import Text

from gpu_backend.pool import commands as pool
from gpu_backend.pool import joined, joining, machines
from gpu_backend.pool.machines import Invited
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.bounds import invitation_hours
from gpu_backend.wire.errors import PoolRefusal, quoted
from gpu_backend.wire.views import Membership, NodeView
from workbench.commands.pool_actions import become, finish
from workbench.display import Columns, Facts, Section
from workbench.nodes import clock_in_words, state_in_words
from workbench.terminal import say, show

#: Options of `join` and the settings that they are.
_SETTINGS = {
    "listen": "executor_host",
    "ports": "executor_ports",
    "advertise": "advertise_host",
    "devices": "devices",
    "ray_certificates": "ray_certificates",
}
_ON_THE_HEAD: dict[str, tuple[str, Callable[[PoolState, str], None]]] = {
    "drain": ("let a machine take no new sessions; those that run there go on", machines.drain),
    "resume": ("let a machine that was drained take sessions again", machines.resume),
    "remove": ("let a machine be no member any more; its sessions end", machines.remove),
}


class Invitation(Facts):
    """What the operator of a machine that is to join must know."""

    title = "Invited"

    def __init__(self, invited: Invited) -> None:
        self._invited = invited

    def sections(self) -> Sequence[Section]:
        """Return the command, and the token that it asks for."""
        one = self._invited
        until = strftime("%H:%M on %Y-%m-%d", localtime(one.expires_at))
        return (
            Section("On that machine, run", (("run", command_of(one)),), to_copy=True),
            Section("It asks for the token, which is a secret", (("token", one.token),), to_copy=True),
            Section("", (("good for", f"one machine, as the node {one.node}, until {until}"),)),
        )


class Standing(Facts):
    """How a pool sees this machine."""

    def __init__(self, member: Membership, state: PoolState) -> None:
        self._member = member
        self._state = state
        self.title = f"Node {member.node.name}"

    def sections(self) -> Sequence[Section]:
        """Return what the pool's head says of it, and where its files are."""
        node = self._member.node
        seen = (
            ("pool", self._member.pool),
            ("state", state_in_words(node)),
            ("devices", str(node.devices)),
            ("sessions", str(node.sessions)),
        )
        files = (("settings", str(joined.settings_file(self._state))), ("logs", str(self._state.logs)))
        return Section("", seen), Section("Files", files)


def command_of(invited: Invited) -> str:
    """Return what is to be run on the machine that is to join."""
    return f"workbench node join {invited.address} --listen ITS-ADDRESS"


def configure(parser: ArgumentParser) -> None:
    """Add the sub-commands."""
    parser.description = "The machines of a pool: more than the one that has its gateway, which is its head."
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    invite_parser = parts.add_parser("invite", help="on the head: let a machine join")
    invite_parser.add_argument("name", help="what it is to be called in the pool")
    invite_parser.add_argument("--hours", type=_hours, default=1.0, help="for how long the token is good; 1 by default")
    finish(invite_parser, invite)
    finish(parts.add_parser("list", help="on the head: show the machines"), listed)
    for name, (help_text, change) in _ON_THE_HEAD.items():
        one = parts.add_parser(name, help=f"on the head: {help_text}")
        one.add_argument("name", help="the machine")
        finish(one, _changing(change))
    join_parser = parts.add_parser("join", help="on the machine: join a pool, and start; it asks for the token")
    join_parser.add_argument("address", help="where the pool's head hears machines, tcp://HOST:PORT")
    join_parser.add_argument("--listen", metavar="HOST", help="address of this machine for notebooks; needed")
    join_parser.add_argument("--ports", metavar="FIRST-LAST", help="TCP ports for them, as 7800-7899; any by default")
    join_parser.add_argument("--advertise", metavar="HOST", help="name under which notebooks reach this machine")
    join_parser.add_argument("--devices", choices=("auto", "cuda", "cpu"), help="what it offers")
    join_parser.add_argument(
        "--ray-certificates", metavar="DIR", help="tls.crt, tls.key and ca.crt, where the pool's Ray is encrypted"
    )
    join_parser.add_argument("--no-start", action="store_true", help="become a member, and leave the start to others")
    finish(join_parser, join)
    finish(parts.add_parser("up", help="on the machine: start again, after a reboot say"), up)
    serving = "on the machine: keep it in the foreground, for systemd and its like; sessions outlive it"
    finish(parts.add_parser("serve", help=serving), serve)
    finish(parts.add_parser("status", help="on the machine: how its pool sees it"), status)
    down_parser = parts.add_parser("down", help="on the machine: end its agent and executors; it stays a member")
    down_parser.add_argument("--now", action="store_true", help="though sessions run there, which are lost then")
    finish(down_parser, down)


# --- on the head ------------------------------------------------------------------------------------------------------


def _hours(said: str) -> float:
    try:
        hours = float(said)
    except ValueError:
        raise ArgumentTypeError(f"{quoted(said)} is no number of hours") from None
    try:
        return invitation_hours(hours)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def invite(arguments: Namespace) -> int:
    """Let a machine join."""
    invited = machines.invite(at(arguments.state), arguments.name, arguments.hours)
    show(arguments, Invitation(invited), {**invited._asdict(), "command": command_of(invited)})
    return 0


def listed(arguments: Namespace) -> int:
    """Show the machines."""
    nodes = pool.status(at(arguments.state)).nodes
    show(arguments, _table(nodes), {"nodes": [msgspec.structs.asdict(one) for one in nodes]})
    return 0


def _changing(change: Callable[[PoolState, str], None]) -> Callable[[Namespace], int]:
    def execute(arguments: Namespace) -> int:
        change(at(arguments.state), arguments.name)
        return listed(arguments)

    return execute


def _table(nodes: Sequence[NodeView]) -> Columns:
    table = Columns("node", "state", "devices", "sessions", "version", "clock")
    for one in nodes:
        clock = f"{off} ours" if (off := clock_in_words(one)) else ""
        words = (one.name, state_in_words(one), str(one.devices), str(one.sessions), one.version, clock)
        table.add_row(*map(Text, words))
    return table


# --- on the machine ---------------------------------------------------------------------------------------------------


def join(arguments: Namespace) -> int:
    """Join a pool and start the agent."""
    given = {name: value for option, name in _SETTINGS.items() if (value := getattr(arguments, option)) is not None}
    state = _here(arguments)
    token = getpass("The token of the invitation: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not arguments.json:
        say("Joining the pool ...")
    begin = joining.enrol if arguments.no_start else joining.join
    try:
        member = begin(state, arguments.address, token, given)
    except PoolRefusal as error:
        raise type(error)(_in_options(str(error))) from None
    return _show_standing(arguments, member, state)


def _in_options(words: str) -> str:
    """Return a refusal with the options that were typed, in place of the settings that they are."""
    for option, name in _SETTINGS.items():
        if "_" in name:  # and not of a setting whose name is a word like others
            words = words.replace(name, f"--{option.replace('_', '-')}")
    return words


def up(arguments: Namespace) -> int:
    """Start the agent of a machine that has joined before."""
    state = _here(arguments)
    if not arguments.json:
        say("Starting the node ...")
    return _show_standing(arguments, joining.up(state), state)


def serve(arguments: Namespace) -> int:
    """Become the process that keeps the agent, until a signal or `workbench node down` ends it."""
    become(joining.make_ready(_here(arguments)))
    return 0


def status(arguments: Namespace) -> int:
    """Show how the pool sees this machine."""
    state = _here(arguments)
    return _show_standing(arguments, joining.seen(state), state)


def down(arguments: Namespace) -> int:
    """End the agent and the executors."""
    state = _here(arguments)
    is_told = joining.down(state, arguments.now)
    words = "The node is down." if is_told else "The node is down. Its pool's head could not be told: it finds out."
    show(arguments, words, {"state": str(state.root), "is_up": False, "is_told": is_told})
    return 0


def _here(arguments: Namespace) -> PoolState:
    return at(arguments.state or joined.default_node_root())


def _show_standing(arguments: Namespace, member: Membership, state: PoolState) -> int:
    plain = {"pool": member.pool, "version": member.version, **msgspec.structs.asdict(member.node)}
    show(arguments, Standing(member, state), {**plain, "state_directory": str(state.root)})
    return 0
