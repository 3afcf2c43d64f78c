"""``workbench pool users`` and ``workbench pool keys``: who may use the pool. A user is known by public keys."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from gpu_backend.pool import people
from gpu_backend.pool.people import Person
from gpu_backend.pool.state import PoolState, at
from workbench.commands.pool_actions import add_action
from workbench.display import Columns
from workbench.terminal import show
from workbench.wrong_usage import WrongUsage

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Finish = Callable[[ArgumentParser, object], None]
#: Characters of a public key: they are of no use when they are cut.
_KEY_WIDTH = 40


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add both commands; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    users = parts.add_parser("users", help="list, add or remove users")
    add_action(users, "add", "remove")
    users.add_argument("name", nargs="?", default="", help="add, remove: the user")
    users.add_argument("--key", default="", metavar="PUBLIC", help="add: the public key that `workbench connect` shows")
    users.add_argument(
        "--operator", action=BooleanOptionalAction, help="add: may stop the pool and see all sessions, or may no more"
    )
    finish(users, execute_users)
    keys = parts.add_parser("keys", help="list, add, make, revoke or restore keys; shows the pool's own public key")
    add_action(keys, "add", "make", "revoke", "restore")
    keys.add_argument("--key", default="", metavar="PUBLIC", help="add, revoke, restore: the public key")
    keys.add_argument("--user", default="", help="add, make: whose key it is")
    keys.add_argument("--file", type=Path, help="make: where the new key pair is written, for its user to fetch")
    keys.add_argument("--note", default="", help="add, make: for people, such as the machine's name")
    finish(keys, execute_keys)


def execute_users(arguments: Namespace) -> int:
    """Carry out ``users``, then list them."""
    state = at(arguments.state)
    action = f"workbench pool users {arguments.action}"
    if arguments.action == "add":
        people.add_user(state, _needed(arguments.name, "NAME", f"{action} NAME"), arguments.operator, arguments.key)
    elif arguments.action == "remove":
        people.remove_user(state, _needed(arguments.name, "NAME", f"{action} NAME"))
    everybody = people.people(state)
    show(arguments, _table_of_users(everybody), {"users": [_as_dict(one) for one in everybody]})
    return 0


def execute_keys(arguments: Namespace) -> int:
    """Carry out ``keys``, then list them."""
    state = at(arguments.state)
    _change_keys(state, arguments)
    everybody = people.people(state)
    address = people.address(state)
    keys = [key._asdict() for one in everybody for key in one.keys]
    show(arguments, _table_of_keys(keys, address.server_key), {**address._asdict(), "keys": keys})
    return 0


def _change_keys(state: PoolState, arguments: Namespace) -> None:
    action = f"workbench pool keys {arguments.action}"
    if arguments.action == "revoke":
        people.revoke_key(state, _needed(arguments.key, "--key", f"{action} --key PUBLIC"))
    elif arguments.action == "restore":
        people.restore_key(state, _needed(arguments.key, "--key", f"{action} --key PUBLIC"))
    elif arguments.action == "add":
        usage = f"{action} --user NAME --key PUBLIC"
        user, key = _needed(arguments.user, "--user", usage), _needed(arguments.key, "--key", usage)
        people.add_key(state, user, key, arguments.note)
    elif arguments.action == "make":
        usage = f"{action} --user NAME --file FILE"
        user, file = _needed(arguments.user, "--user", usage), _needed(arguments.file, "--file", usage)
        people.make_key(state, user, file, arguments.note)


def _needed(value: Any, name: str, usage: str) -> Any:
    if not value:
        raise WrongUsage(f"{name} is missing. Run `{usage}`.")
    return value


def _as_dict(person: Person) -> dict[str, Any]:
    return {
        "name": person.name,
        "is_operator": person.is_operator,
        "good_keys": sum(key.revoked_at is None for key in person.keys),
    }


def _table_of_users(everybody: Sequence[Person]) -> Columns:
    table = Columns("user", "role", "good keys")
    for one in everybody:
        role = "operator" if one.is_operator else "user"
        table.add_row(Text(one.name), role, str(_as_dict(one)["good_keys"]))
    return table


def _table_of_keys(keys: Sequence[dict[str, Any]], server_key: str) -> Group:
    table = Columns()
    table.add_column("public key", no_wrap=True, min_width=_KEY_WIDTH)
    for heading in ("of", "since", "state"):
        table.add_column(heading, no_wrap=True)
    table.add_column("note")
    for key in keys:
        state = "good" if key["revoked_at"] is None else f"revoked {_day(key['revoked_at'])}"
        table.add_row(*map(Text, (key["public"], key["user"], _day(key["added_at"]), state, key["note"])))
    return Group(Text.assemble(("The pool's own public key: ", "bold"), server_key), Text(), table)


def _day(moment: float) -> str:
    return strftime("%Y-%m-%d", localtime(moment))
