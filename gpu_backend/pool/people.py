"""Who may use a pool: its users and their keys. Changes count at once, whether the pool is up or not."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from time import time
from typing import NamedTuple

from gpu_backend.gateway.accounts import Accounts
from gpu_backend.gateway.database import told_of
from gpu_backend.gateway.directory import Directory, Key
from gpu_backend.node.kernel_cache import UserCache
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.setup import cache_dir, prepare
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolError, PoolRefusal, quoted

#: What names of users and groups look like.
NAME = re.compile(r"[\w.@+-]{1,60}")


class Person(NamedTuple):
    """A user of the pool, with all keys they ever had."""

    name: str
    is_operator: bool
    keys: tuple[Key, ...]


class Address(NamedTuple):
    """What a client must be told: where the pool is, and its public key (Z85)."""

    gateway: str
    server_key: str


def add_user(state: PoolState, name: str, is_operator: bool | None = None, key: str = "") -> None:
    """Add a user, or change whether an existing one is an operator; register their public ``key`` if it is given.

    Raises
    ------
    PoolRefusal
        If the name or the key is none, the key is registered already, or the last operator would be none any more.
        Nothing is changed then.
    """
    _need_name(name)
    if key:
        _need_key(key)
    with records_of(state) as records, records.together():
        _refuse_own_key(state, key)
        if is_operator is False:
            _keep_an_operator(records, {known.public for known in records.all_keys() if known.user == name})
        records.add_user(name, is_operator, time())
        if key:
            records.add_key(key, name, "", time())


def add_key(state: PoolState, user: str, public: str, note: str = "") -> None:
    """Register the public key that a user made for themselves; their secret key never leaves their machine.

    Raises
    ------
    PoolRefusal
        If it is no key, is registered already, or there is no such user.
    """
    _need_name(user)
    _need_key(public)
    with records_of(state) as records:
        _refuse_own_key(state, public)
        records.add_key(public, user, note, time())


def make_key(state: PoolState, user: str, path: Path, note: str = "") -> str:
    """Make a key pair for a user in the new file ``path`` (mode 0600), register it, and return its public half.

    For users who cannot make their own: the file must reach them by a safe way.

    Raises
    ------
    PoolRefusal
        If the file exists, or there is no such user.
    OSError
        If the file cannot be written. No key is registered then.
    """
    if path.exists():
        raise PoolRefusal(f"{path} exists. Name another file, or remove that one if nobody uses it.")
    keys = curve.generate()
    public = keys.public.decode()
    try:
        curve.save(keys, path)  # first: a key is not to be good that nobody has
        add_key(state, user, public, note)
    except BaseException:  # an interrupt too: nobody could use what is in the file, unless it is registered by then
        if not _is_registered(state, public):
            path.unlink(missing_ok=True)
        raise
    return public


def _is_registered(state: PoolState, public: str) -> bool:
    try:
        return any(key.public == public for person in people(state) for key in person.keys)
    except (PoolError, OSError, sqlite3.Error):  # where the records cannot be read, nothing was written in them
        return False


def people(state: PoolState) -> list[Person]:
    """Return all users with their keys, by name."""
    with records_of(state, is_read_only=True) as records:
        keys = records.all_keys()
        return [
            Person(user.name, user.is_operator, tuple(key for key in keys if key.user == user.name))
            for user in records.users()
        ]


def revoke_key(state: PoolState, public: str) -> Key:
    """Admit a key no more; sessions opened with it are closed within a second. Its first characters are enough.

    Raises
    ------
    PoolRefusal
        If no good key, or more than one, begins like this; or if it is the last key of the last operator.
    """
    with records_of(state) as records:
        found = _key(records, public, is_revoked=False)
        _keep_an_operator(records, {found.public})
        records.revoke_key(found.public, time())
        return found


def restore_key(state: PoolState, public: str) -> Key:
    """Admit a revoked key again. Its first characters are enough.

    Raises
    ------
    PoolRefusal
        If no revoked key, or more than one, begins like this.
    """
    with records_of(state) as records:
        found = _key(records, public, is_revoked=True)
        records.restore_key(found.public)
        return found


def remove_user(state: PoolState, name: str) -> None:
    """Remove a user with all that is known of them; their sessions are closed within a second.

    What they used stays in the books, under a name that no user can have, and their compiled kernels are removed: the
    name may come to mean another person.

    Raises
    ------
    PoolRefusal
        If there is no such user, or they are the last operator.
    """
    with records_of(state) as records:
        if name not in {user.name for user in records.users()}:
            raise PoolRefusal(f"There is no user {quoted(name)}. `workbench pool users` lists them.")
        _keep_an_operator(records, {key.public for key in records.all_keys() if key.user == name})
        with records.together():
            records.remove_user(name)
    if state.accounts_file.exists():
        with closing(Accounts(state.accounts_file)) as accounts, told_of(state.accounts_file):
            accounts.rename(name, f"{name} (removed {date.today()})")
    UserCache(cache_dir(), name).remove()


def address(state: PoolState) -> Address:
    """Return what clients must be told to reach the pool: from other machines if it listens there.

    Raises
    ------
    PoolUnreachable
        If there is no pool.
    """
    state.need()
    settings = pool_settings.read(state.settings_file)
    host = settings.advertise_host or settings.listen_host
    gateway = f"tcp://{host}:{settings.listen_port}" if settings.listen_host else state.client_endpoint
    return Address(gateway, curve.load(state.gateway_key).public.decode())


def _need_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise PoolRefusal(f"{quoted(name)} is no user name: use up to 60 letters, digits and . _ @ + -.")


def _need_key(public: str) -> None:
    if not curve.is_public_key(public):
        raise PoolRefusal(f"{quoted(public)} is no public key: it has 40 characters and `workbench connect` prints it.")


def _refuse_own_key(state: PoolState, public: str) -> None:
    if curve.load(state.gateway_key).public.decode() == public:
        raise PoolRefusal(
            "This is the pool's own public key; a user's is what `workbench connect` prints on their side."
        )


def _key(records: Directory, public: str, is_revoked: bool) -> Key:
    """Return the one key, good or revoked, that begins with ``public``."""
    keys = [key for key in records.all_keys() if key.public.startswith(public)] if public else []
    found = [key for key in keys if (key.revoked_at is not None) == is_revoked]
    if len(found) == 1:
        return found[0]
    wanted, other = ("revoked", "good") if is_revoked else ("good", "revoked")
    problem = f"more than one {wanted} key begins" if found else f"no {wanted} key begins"
    is_so_already = f"; the one that does is {other} already" if not found and len(keys) == 1 else ""
    given = quoted(public)
    raise PoolRefusal(f"In this pool, {problem} with {given}{is_so_already}. `workbench pool keys` lists them.")


def _keep_an_operator(records: Directory, lost: set[str]) -> None:
    operators = {user.name for user in records.users() if user.is_operator}
    left = [k for k in records.all_keys() if k.user in operators and k.revoked_at is None and k.public not in lost]
    if not left:
        raise PoolRefusal("That would leave the pool without an operator. Make another user an operator first.")


@contextmanager
def records_of(state: PoolState, is_read_only: bool = False) -> Iterator[Directory]:
    """Open the pool's records, for a ``with``; where only they are missing they are made.

    Raises
    ------
    PoolUnreachable
        If there is no pool: who looks for one must not make it.
    PoolRefusal
        If they cannot be read or written: the disk is full, say.
    """
    state.need()
    is_read_only = is_read_only and state.directory_file.exists()
    if not is_read_only:
        prepare(state, pool_settings.read(state.settings_file))
    with closing(Directory(state.directory_file, is_read_only)) as records, told_of(state.directory_file):
        yield records
