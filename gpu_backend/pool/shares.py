"""What users and groups of a pool are entitled to, as its operator sets it. Counts within a second while it is up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Holder, Quota, Rights, Value, checked
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.people import NAME, records_of
from gpu_backend.pool.serving import defaults
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import PoolRefusal, quoted

#: Takes a setting back, so that the default holds again.
DEFAULT = "default"


class Share(NamedTuple):
    """What one user or group is entitled to. ``given`` names what was set for them; the rest are defaults."""

    holder: Holder
    name: str
    #: Of a user, their group; "" for none.
    group: str
    weight: float
    #: Of a user; of a group, what its members may ask for unless something is set for them.
    rights: Rights
    quota: Quota
    given: tuple[str, ...]


def set_shares(state: PoolState, holder: Holder, name: str, changes: Mapping[str, str]) -> None:
    """Set what a user or a group is entitled to; the value "default" takes a setting back.

    Raises
    ------
    PoolRefusal
        If there is no such user, or a value is not right. Nothing is changed then.
    """
    with records_of(state) as records:
        _need(records, holder, name)
        try:
            values = {what: None if text == DEFAULT else checked(what, text) for what, text in changes.items()}
        except ValueError as error:
            raise PoolRefusal(str(error)) from None
        with records.together():
            for what, value in values.items():
                records.entitle(holder, name, what, value)


def set_group(state: PoolState, user: str, group: str) -> None:
    """Put a user into a group, and out of any other; "", or "default" as of other settings, for none.

    Raises
    ------
    PoolRefusal
        If there is no such user, or the group's name is none.
    """
    with records_of(state) as records:
        _need(records, "user", user)
        group = "" if group == DEFAULT else group
        if group:
            _need(records, "group", group)
        with records.together():
            records.set_group(user, group)


def shares(state: PoolState) -> list[Share]:
    """Return what every group and every user is entitled to, groups first, by name."""
    state.need()
    standard = defaults(pool_settings.read(state.settings_file))
    with records_of(state, is_read_only=True) as records:
        groups, given = records.groups(), records.entitlements()
        users = [user.name for user in records.users()]
    all_set = Entitlements(standard.user_quota, standard.group_quota, standard.default_rights, groups, given)
    named = {name for holder, name in given if holder == "group"}
    found = [_share(all_set, "group", name, given) for name in sorted(named | set(groups.values()))]
    return found + [_share(all_set, "user", name, given) for name in users]


def _share(
    all_set: Entitlements, holder: Holder, name: str, given: Mapping[tuple[Holder, str], Mapping[str, Value]]
) -> Share:
    group = all_set.group_of(name) if holder == "user" else ""
    rights = all_set.rights(name) if holder == "user" else all_set.rights_of_group(name)
    weight, quota = all_set.weight(holder, name), all_set.quota(holder, name)
    return Share(holder, name, group, weight, rights, quota, tuple(sorted(given.get((holder, name), {}))))


def _need(records: Directory, holder: Holder, name: str) -> None:
    if holder == "user" and name not in {user.name for user in records.users()}:
        raise PoolRefusal(f"There is no user {quoted(name)}. `workbench pool users` lists them.")
    if not NAME.fullmatch(name):
        raise PoolRefusal(f"{quoted(name)} is no group's name: use up to 60 letters, digits and . _ @ + -.")
