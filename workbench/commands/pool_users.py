"""``workbench pool users`` and ``workbench pool keys``: who may use the pool. A user is known by public keys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import localtime, strftime, time
from typing import TYPE_CHECKING

import zmq
from rich.table import Table

from gpu_backend.gateway.directory import Directory
from gpu_backend.pool.state import PoolState, at
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from workbench.terminal import show

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Finish = Callable[[ArgumentParser, object], None]


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add both commands; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    users = parts.add_parser("users", help="list, add or remove users")
    users.add_argument("action", nargs="?", choices=("list", "add", "remove"), default="list")
    users.add_argument("name", nargs="?", default="", help="add, remove: the user")
    users.add_argument("--key", default="", metavar="PUBLIC", help="add: the public key that `workbench connect` shows")
    users.add_argument("--operator", action="store_true", help="add: may stop the pool and see all sessions")
    finish(users, execute_users)
    keys = parts.add_parser("keys", help="list, add or revoke keys; shows the pool's own public key")
    keys.add_argument("action", nargs="?", choices=("list", "add", "revoke"), default="list")
    keys.add_argument("--key", default="", metavar="PUBLIC", help="add, revoke: the public key")
    keys.add_argument("--user", default="", help="add: whose key it is")
    keys.add_argument("--note", default="", help="add: for people, such as the machine's name")
    finish(keys, execute_keys)


def execute_users(arguments: Namespace) -> int:
    """Carry out ``users``, then list them."""
    with records(at(arguments.state)) as directory:
        if arguments.action != "list" and not arguments.name:
            raise PoolRefusal(f"Whom? Run `workbench pool users {arguments.action} NAME`.")
        if arguments.action == "add":
            _checked(arguments.key)
            directory.add_user(arguments.name, arguments.operator, time())
            if arguments.key:
                directory.add_key(arguments.key, arguments.name, "", time())
        elif arguments.action == "remove":
            if arguments.name not in {user.name for user in directory.users()}:
                raise PoolRefusal(f"There is no user {arguments.name!r}. `workbench pool users` lists them.")
            directory.remove_user(arguments.name, time())
        good: dict[str, int] = {}
        for key in directory.all_keys():
            good[key.user] = good.get(key.user, 0) + (key.revoked_at is None)
        users = [
            {"name": user.name, "is_operator": user.is_operator, "keys": good.get(user.name, 0)}
            for user in directory.users()
        ]
    table = Table("user", "role", "good keys", box=None, padding=(0, 3, 0, 0))
    for user in users:
        table.add_row(str(user["name"]), "operator" if user["is_operator"] else "user", str(user["keys"]))
    show(arguments, table, {"users": users})
    return 0


def execute_keys(arguments: Namespace) -> int:
    """Carry out ``keys``, then list them."""
    state = at(arguments.state)
    with records(state) as directory:
        if arguments.action != "list":
            _change_key(directory, arguments)
        keys = [key._asdict() for key in directory.all_keys()]
    server_key = curve.load(state.gateway_key).public.decode()
    table = Table("public key", "of", "since", "state", "note", box=None, padding=(0, 3, 0, 0))
    table.add_row(server_key, "the pool itself", "", "good", "for `workbench connect --server-key`")
    for key in keys:
        revoked = "good" if key["revoked_at"] is None else f"revoked {_day(key['revoked_at'])}"
        table.add_row(key["public"], key["user"], _day(key["added_at"]), revoked, key["note"])
    show(arguments, table, {"server_key": server_key, "keys": keys})
    return 0


@contextmanager
def records(state: PoolState) -> Iterator[Directory]:
    """Open the pool's records, which a running gateway reads at every message.

    Raises
    ------
    PoolUnreachable
        If there never was a pool.
    """
    if not state.directory_file.exists():
        raise PoolUnreachable(f"There is no pool in {state.root}. Run `workbench pool up` first.")
    directory = Directory(state.directory_file)
    try:
        yield directory
    finally:
        directory.close()


def _change_key(directory: Directory, arguments: Namespace) -> None:
    if not arguments.key:
        raise PoolRefusal(f"Which? Run `workbench pool keys {arguments.action} --key PUBLIC`.")
    _checked(arguments.key)
    if arguments.action == "add":
        if not arguments.user:
            raise PoolRefusal("Whose is it? Add --user NAME.")
        directory.add_key(arguments.key, arguments.user, arguments.note, time())
    elif not directory.revoke_key(arguments.key, time()):
        raise PoolRefusal("No user has this key, or it is revoked already. `workbench pool keys` lists them.")


def _checked(key: str) -> None:
    """Refuse what is no public key, so that a typing error is told here and not at somebody's first connection."""
    if not key:
        return
    try:
        is_key = len(key) == 40 and len(zmq.utils.z85.decode(key.encode())) == 32
    except (KeyError, ValueError, OverflowError):  # what z85 raises for characters and values out of range
        is_key = False
    if not is_key:
        raise PoolRefusal(f"{key!r} is no public key: those have 40 characters. `workbench connect` shows it.")


def _day(moment: float) -> str:
    return strftime("%Y-%m-%d", localtime(moment))
