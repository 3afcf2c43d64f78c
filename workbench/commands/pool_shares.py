"""``workbench pool shares`` and ``workbench pool quotas``: what users and groups are entitled to."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpu_backend.gateway.entitlements import CLASSES, Rights, checked, within
from gpu_backend.pool import shares
from gpu_backend.pool.shares import DEFAULT, Share
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.wish import Wish
from kernelproxy.session.amounts import bytes_from_words
from workbench.commands.pool_actions import add_action
from workbench.display import Columns, bytes_in_words
from workbench.terminal import show
from workbench.wrong_usage import WrongUsage

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Finish = Callable[[ArgumentParser, object], None]

#: Options of both commands: what they set, and what `--help` says.
_SHARES = {
    "weight": ("NUMBER", "share of the GPU time beside others of the same kind; 1 by default"),
    "largest_class": ("CLASS", f"largest class that may be asked for: {', '.join(CLASSES)}"),
    "largest_request": ("PART", "largest guaranteed part of a device's time, 0 to 1"),
    "largest_limit": ("PART", "largest part of a device's time, 0 to 1"),
    "highest_priority": ("NUMBER", "highest priority that may be asked for"),
    "whole_devices": ("NUMBER", "most devices that sessions may have to themselves, if they ask for it"),
    "default_class": ("CLASS", "class of sessions that ask for none"),
    "default_request": ("PART", "guaranteed part of sessions that ask for none"),
    "default_priority": ("NUMBER", "priority of sessions that ask for none"),
}
_QUOTAS = {
    "sessions": ("NUMBER", "most sessions at a time; 0 for no limit"),
    "memory": ("SIZE", "most device memory of all sessions, such as 40GiB; 0 for no limit"),
    "gpu_seconds_per_day": ("SECONDS", "most GPU time from midnight on; 0 for no limit"),
    "gpu_seconds_per_week": ("SECONDS", "most GPU time from Monday on; 0 for no limit"),
    "gpu_seconds_per_month": ("SECONDS", "most GPU time from the first on; 0 for no limit"),
}


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add both commands; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    one = parts.add_parser("shares", help="list or set weights, groups and rights")
    _holder(one, _SHARES)
    one.add_argument("--group", metavar="NAME", help=f"set user: the group they belong to; '{DEFAULT}' for none")
    finish(one, execute_shares)
    other = parts.add_parser("quotas", help="list or set what users and groups may hold and use")
    _holder(other, _QUOTAS)
    finish(other, execute_quotas)


def _holder(parser: ArgumentParser, options: Mapping[str, tuple[str, str]]) -> None:
    parser.description = f"`set` changes what is given; the value '{DEFAULT}' takes a setting back."
    add_action(parser, "set")
    parser.add_argument("holder", nargs="?", choices=("user", "group"), help="set: for whom")
    parser.add_argument("name", nargs="?", default="", help="set: the user's or group's name")
    for option, (metavar, text) in options.items():
        parser.add_argument(f"--{option.replace('_', '-')}", metavar=metavar, help=text)


def execute_shares(arguments: Namespace) -> int:
    """Carry out ``shares``, then show them."""
    state = at(arguments.state)
    if arguments.action == "set":
        if arguments.group is not None and arguments.holder == "group":
            raise WrongUsage("A user belongs to a group, a group to none. Run `… shares set user NAME --group …`.")
        _set(state, arguments, _SHARES, arguments.group is not None)
        if arguments.group is not None:
            shares.set_group(state, arguments.name, arguments.group)
    found = shares.shares(state)
    show(arguments, _table_of_shares(found), {"shares": [_as_dict(one, quotas=False) for one in found]})
    return 0


def execute_quotas(arguments: Namespace) -> int:
    """Carry out ``quotas``, then show them."""
    state = at(arguments.state)
    if arguments.action == "set":
        _set(state, arguments, _QUOTAS, False)
    found = shares.shares(state)
    show(arguments, _table_of_quotas(found), {"quotas": [_as_dict(one, quotas=True) for one in found]})
    return 0


def _set(state: PoolState, arguments: Namespace, options: Mapping[str, Any], is_more: bool) -> None:
    given = {option: text for option in options if (text := getattr(arguments, option)) is not None}
    missing = "" if given or is_more else "what is to be set"
    if not arguments.name:
        missing = "NAME" if arguments.holder else "whose they are, user NAME or group NAME,"
    if missing:
        one = next(iter(options)).replace("_", "-")
        what = "shares" if options is _SHARES else "quotas"
        raise WrongUsage(
            f"{missing[0].upper()}{missing[1:]} is missing. Run `workbench pool {what} set user NAME --{one} …`."
        )
    shares.set_shares(state, arguments.holder, arguments.name, _checked(given))


def _checked(given: dict[str, str]) -> dict[str, str]:
    """Return what is to be set, an amount of memory in bytes; each is a value of its kind."""
    memory = given.pop("memory", None)
    try:
        if memory is not None:
            given["memory_bytes"] = memory if memory == DEFAULT else str(bytes_from_words(memory))
        for name, text in given.items():
            if text != DEFAULT:
                checked(name, text)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    return given


def _as_dict(share: Share, quotas: bool) -> dict[str, Any]:
    head = {"holder": share.holder, "name": share.name, "group": share.group}
    body = asdict(share.quota) if quotas else {"weight": share.weight, **asdict(share.rights)}
    return {**head, **body, "set": [name for name in share.given if name in body]}


def _table_of_shares(found: Sequence[Share]) -> Columns:
    table = Columns("", "name", "group")
    table.columns[0].no_wrap = True
    table.add_column("weight", justify="right")
    table.add_column("may ask for up to")
    table.add_column("gets unasked")
    for one in found:
        given = within(Wish(), one.rights)
        unasked = _in_words(given.kind, request=one.rights.default_request, priority=one.rights.default_priority)
        weight = f"{one.weight:g}"
        table.add_row(one.holder, Text(one.name), Text(one.group), weight, _most_in_words(one.rights), unasked)
    return table


def _most_in_words(rights: Rights) -> str:
    most = rights.most
    limit = rights.largest_limit if rights.largest_limit < 1 else 0
    return _in_words(
        most.kind, request=most.request, limit=limit, priority=most.priority, whole_devices=rights.whole_devices
    )


def _in_words(kind: str, **amounts: float) -> str:
    """Return a class, and of the amounts those that say something."""
    return ", ".join([kind, *(f"{name.replace('_', ' ')} {amount:g}" for name, amount in amounts.items() if amount)])


def _table_of_quotas(found: Sequence[Share]) -> Columns:
    table = Columns("", "name", "group")
    table.columns[0].no_wrap = True
    for heading in ("sessions", "memory", "GPU s a day", "a week", "a month"):
        table.add_column(heading, justify="right")
    for one in found:
        quota = one.quota
        memory = bytes_in_words(quota.memory_bytes) if quota.memory_bytes else "-"
        seconds = (f"{limit:,.0f}" if limit else "-" for limit in quota.gpu_seconds.values())
        sessions = str(quota.sessions) if quota.sessions else "-"
        table.add_row(one.holder, Text(one.name), Text(one.group), sessions, memory, *seconds)
    return table
