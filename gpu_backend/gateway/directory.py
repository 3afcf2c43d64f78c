"""What the gateway must still know after it was killed: users, keys, nodes, sessions. SQLite, written at once."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.gateway.database import opened, together
from gpu_backend.gateway.entitlements import SETTABLE, Holder, Value, within_bounds
from gpu_backend.gateway.queue import Waiter
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.wish import Wish

_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY, is_operator INTEGER NOT NULL, added_at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    public TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users(name), note TEXT NOT NULL, added_at REAL NOT NULL,
    revoked_at REAL
) STRICT;
CREATE TABLE IF NOT EXISTS nodes (name TEXT PRIMARY KEY, public TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, client_key TEXT NOT NULL, label TEXT NOT NULL, node TEXT NOT NULL,
    ordinal INTEGER NOT NULL, device_kind TEXT NOT NULL, memory_limit_bytes INTEGER NOT NULL,
    lease_seconds REAL NOT NULL, opened_at REAL NOT NULL, state TEXT NOT NULL, epoch INTEGER NOT NULL,
    endpoints TEXT NOT NULL, server_key TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_state ON sessions(state);
"""
#: What was added since: shares and quotas by holder, how sessions want to share, who waits for a place, and by what an
#: executor and its client know each other.
_ADDED = """
ALTER TABLE sessions ADD COLUMN wish TEXT NOT NULL DEFAULT '[]';
CREATE TABLE entitlements (
    holder TEXT NOT NULL, name TEXT NOT NULL, what TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (holder, name, what)
) STRICT;
CREATE TABLE members (user TEXT PRIMARY KEY, "group" TEXT NOT NULL) STRICT;
CREATE TABLE waiting (
    client_key TEXT NOT NULL, waiter TEXT NOT NULL, user TEXT NOT NULL, label TEXT NOT NULL, since REAL NOT NULL,
    kind TEXT NOT NULL, memory_bytes INTEGER NOT NULL, has_lease INTEGER NOT NULL,
    PRIMARY KEY (client_key, waiter)
) STRICT;
"""
_NAMED = """
ALTER TABLE sessions ADD COLUMN waiter TEXT NOT NULL DEFAULT ''
"""
_PROVED = """
ALTER TABLE sessions RENAME COLUMN server_key TO certificate;
ALTER TABLE sessions ADD COLUMN secret TEXT NOT NULL DEFAULT ''
"""
_PROMISED = """
ALTER TABLE sessions ADD COLUMN has_promise INTEGER NOT NULL DEFAULT 1
"""
_PLACED = """
ALTER TABLE sessions ADD COLUMN placed TEXT NOT NULL DEFAULT '';
ALTER TABLE waiting ADD COLUMN wish TEXT NOT NULL DEFAULT '[]'
"""
_JOINED = """
ALTER TABLE nodes ADD COLUMN joined_at REAL;
ALTER TABLE nodes ADD COLUMN drained_at REAL;
CREATE TABLE invitations (
    node TEXT PRIMARY KEY, public TEXT NOT NULL UNIQUE, expires_at REAL NOT NULL, used_by TEXT
) STRICT
"""
_SPREAD = """
ALTER TABLE sessions ADD COLUMN others TEXT NOT NULL DEFAULT '[]'
"""
_DROPPED = """
CREATE TABLE dropped (opened_at REAL NOT NULL) STRICT
"""
_STEPS = (_SCHEMA, _ADDED, _NAMED, _PROVED, _PROMISED, _PLACED, _JOINED, _SPREAD, _DROPPED)
_WAY_OUT = "Move the file away; the pool's users must then be added again, running sessions are learned from the nodes."
_SESSION_COLUMNS = (
    "id, user, client_key, label, node, ordinal, device_kind, memory_limit_bytes, lease_seconds, opened_at, state, "
    "epoch, endpoints, secret, certificate, reason, wish, waiter, has_promise, placed, others"
)


class User(NamedTuple):
    """Somebody who may use the pool."""

    name: str
    is_operator: bool


class Key(NamedTuple):
    """A public key (Z85) of a user. Times are seconds since 1970; ``revoked_at`` is None while it is good."""

    public: str
    user: str
    note: str
    added_at: float
    revoked_at: float | None


class Node(NamedTuple):
    """A machine of the pool: ``joined_at`` is None for the gateway's own, ``drained_at`` where sessions are taken."""

    name: str
    joined_at: float | None
    drained_at: float | None


class Directory:
    """The pool's records. Several processes may hold one open: the gateway, and the command line of the operator."""

    def __init__(self, path: Path, is_read_only: bool = False) -> None:
        """Open the records in ``path``, made now if there are none and they are not only read.

        Raises
        ------
        PoolRefusal
            If the file is none of ours, is damaged, or was written by a newer version.
        """
        self._db = opened(path, _STEPS, _WAY_OUT, is_read_only)

    def close(self) -> None:
        """Close the records."""
        self._db.close()

    def together(self) -> AbstractContextManager[None]:
        """Return a context in which what is changed counts all or not at all."""
        return together(self._db)

    def version(self) -> int:
        """Return a number that changes when another process has changed the records."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    # --- users and keys -----------------------------------------------------------------------------------------------

    def add_user(self, name: str, is_operator: bool | None, now: float) -> None:
        """Add a user, or change whether an existing one is an operator; None leaves that as it is."""
        self._db.execute(
            "INSERT INTO users VALUES (?, ?, ?) ON CONFLICT(name) DO UPDATE SET is_operator = coalesce(?, is_operator)",
            (name, int(bool(is_operator)), now, is_operator),
        )

    def users(self) -> list[User]:
        """Return all users, by name."""
        rows = self._db.execute("SELECT name, is_operator FROM users ORDER BY name")
        return [User(name, bool(is_operator)) for name, is_operator in rows]

    def since(self, user: str) -> str:
        """Return what tells ``user`` from one who was removed and had the same name; "" if there is no such user."""
        row = self._db.execute("SELECT added_at FROM users WHERE name = ?", (user,)).fetchone()
        return f"{row[0]:.6f}" if row is not None else ""

    def remove_user(self, name: str) -> None:
        """Remove a user with their keys, their group and all that was set for them."""
        self._db.execute("DELETE FROM keys WHERE user = ?", (name,))
        self._db.execute("DELETE FROM members WHERE user = ?", (name,))
        self._db.execute("DELETE FROM entitlements WHERE holder = 'user' AND name = ?", (name,))
        self._db.execute("DELETE FROM users WHERE name = ?", (name,))

    def add_key(self, public: str, user: str, note: str, now: float) -> None:
        """Register a public key of ``user``.

        Raises
        ------
        PoolRefusal
            If there is no such user, or if the key is registered already, be it revoked.
        """
        if self.holder_of(public).startswith(("node ", "invitation")):
            raise PoolRefusal("This key is a node's, or that of an invitation: no user can have it. Make another one.")
        try:
            self._db.execute("INSERT INTO keys VALUES (?, ?, ?, ?, NULL)", (public, user, note, now))
        except sqlite3.IntegrityError:
            row = self._db.execute("SELECT user, revoked_at FROM keys WHERE public = ?", (public,)).fetchone()
            if row is None:
                raise PoolRefusal(f"There is no user {user!r}. Run `workbench pool users add {user}` first.") from None
            if row[1] is None:
                raise PoolRefusal(f"This key is registered already, for {row[0]!r}.") from None
            raise PoolRefusal(
                f"This key is registered already, for {row[0]!r}, and was revoked. If it is in good hands, run "
                f"`workbench pool keys restore --key={shlex.quote(public)}`; else make a new one."
            ) from None

    def all_keys(self) -> list[Key]:
        """Return all keys, by user and age."""
        rows = self._db.execute("SELECT public, user, note, added_at, revoked_at FROM keys ORDER BY user, added_at")
        return [Key(*row) for row in rows]

    def revoke_key(self, public: str, now: float) -> bool:
        """Admit ``public`` no more; tell whether it was a good key until now."""
        sql = "UPDATE keys SET revoked_at = ? WHERE public = ? AND revoked_at IS NULL"
        return self._db.execute(sql, (now, public)).rowcount == 1

    def restore_key(self, public: str) -> bool:
        """Admit ``public`` again; tell whether it was a revoked key until now."""
        sql = "UPDATE keys SET revoked_at = NULL WHERE public = ? AND revoked_at IS NOT NULL"
        return self._db.execute(sql, (public,)).rowcount == 1

    def user_of(self, public: str) -> User | None:
        """Return whose good key ``public`` is, or None."""
        row = self._db.execute(
            "SELECT name, is_operator FROM keys JOIN users ON users.name = keys.user "
            "WHERE public = ? AND revoked_at IS NULL",
            (public,),
        ).fetchone()
        return User(row[0], bool(row[1])) if row is not None else None

    def is_revoked(self, public: str) -> bool:
        """Tell whether ``public`` is on record as a key that is admitted no more."""
        sql = "SELECT 1 FROM keys WHERE public = ? AND revoked_at IS NOT NULL"
        return self._db.execute(sql, (public,)).fetchone() is not None

    # --- shares and quotas --------------------------------------------------------------------------------------------

    def entitle(self, holder: Holder, name: str, what: str, value: Value | None) -> None:
        """Set ``what`` a user or group is entitled to; None takes it back, so that the default holds again."""
        self._db.execute("DELETE FROM entitlements WHERE holder = ? AND name = ? AND what = ?", (holder, name, what))
        if value is not None:
            row = (holder, name, what, json.dumps(value))
            self._db.execute("INSERT OR REPLACE INTO entitlements VALUES (?, ?, ?, ?)", row)

    def entitlements(self) -> dict[tuple[Holder, str], dict[str, Value]]:
        """Return all that was set, by holder and name."""
        found: dict[tuple[Holder, str], dict[str, Value]] = {}
        for holder, name, what, value in self._db.execute("SELECT holder, name, what, value FROM entitlements"):
            if what in SETTABLE:
                found.setdefault((holder, name), {})[what] = within_bounds(what, json.loads(value))
        return found

    def set_group(self, user: str, group: str) -> None:
        """Put ``user`` into ``group``, and out of any other; "" for none."""
        self._db.execute("DELETE FROM members WHERE user = ?", (user,))
        if group:
            self._db.execute("INSERT OR REPLACE INTO members VALUES (?, ?)", (user, group))

    def groups(self) -> dict[str, str]:
        """Return the group of each user who has one."""
        return dict(self._db.execute('SELECT user, "group" FROM members'))

    # --- the queue ----------------------------------------------------------------------------------------------------

    def wait(self, one: Waiter) -> None:
        """Keep that somebody waits."""
        row = (
            one.client_key, one.waiter, one.user, one.label, one.since, one.kind, one.memory_bytes, int(one.has_lease),
            msgspec.json.encode(one.wish).decode(),
        )  # fmt: skip
        self._db.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def wait_no_more(self, client_key: str, waiter: str) -> None:
        """Forget that somebody waits."""
        self._db.execute("DELETE FROM waiting WHERE client_key = ? AND waiter = ?", (client_key, waiter))

    def waiting(self) -> list[Waiter]:
        """Return everybody who waits, the longest first."""
        return [
            Waiter(
                client_key=key, waiter=waiter, user=user, label=label, since=since, kind=kind, memory_bytes=memory,
                has_lease=bool(has_lease), wish=msgspec.json.decode(wish, type=Wish),
            )
            for key, waiter, user, label, since, kind, memory, has_lease, wish in self._db.execute(
                "SELECT client_key, waiter, user, label, since, kind, memory_bytes, has_lease, wish FROM waiting "
                "ORDER BY since"
            )
        ]  # fmt: skip

    # --- nodes --------------------------------------------------------------------------------------------------------

    def set_node(self, name: str, public: str, joined_at: float | None = None) -> None:
        """Let the holder of ``public`` speak for the node ``name``, and nobody else any more."""
        self._db.execute(
            "INSERT INTO nodes (name, public, joined_at) VALUES (?, ?, ?) ON CONFLICT(name) "
            "DO UPDATE SET public = excluded.public, joined_at = excluded.joined_at",
            (name, public, joined_at),
        )

    def nodes(self) -> list[Node]:
        """Return all machines of the pool, by name."""
        return [Node(*row) for row in self._db.execute("SELECT name, joined_at, drained_at FROM nodes ORDER BY name")]

    def drained(self) -> frozenset[str]:
        """Return the nodes that take no new sessions."""
        return frozenset(row[0] for row in self._db.execute("SELECT name FROM nodes WHERE drained_at IS NOT NULL"))

    def drain_node(self, name: str, now: float | None) -> None:
        """Let a node take no new sessions from ``now`` on; None lets it take some again."""
        self._db.execute("UPDATE nodes SET drained_at = ? WHERE name = ?", (now, name))

    def remove_node(self, name: str) -> None:
        """Let nobody speak for the node any more, and nobody join as it who was invited."""
        self._db.execute("DELETE FROM invitations WHERE node = ?", (name,))
        self._db.execute("DELETE FROM nodes WHERE name = ?", (name,))

    def invite(self, node: str, public: str, expires_at: float) -> None:
        """Let whoever holds ``public`` join as ``node``, once; an earlier invitation is good no more."""
        sql = "INSERT OR REPLACE INTO invitations VALUES (?, ?, ?, NULL)"
        self._db.execute(sql, (node, public, expires_at))

    def invited(self, public: str, now: float) -> str | None:
        """Return the node that the holder of ``public`` is invited to be, or None."""
        sql = "SELECT node FROM invitations WHERE public = ? AND expires_at > ?"
        row = self._db.execute(sql, (public, now)).fetchone()
        return row[0] if row is not None else None

    def use_invitation(self, public: str, by: str) -> bool:
        """Use an invitation for the machine with the key ``by``; tell whether that could be: once, or for the same."""
        sql = "UPDATE invitations SET used_by = ? WHERE public = ? AND coalesce(used_by, ?) = ?"
        return self._db.execute(sql, (by, public, by, by)).rowcount == 1

    def holder_of(self, public: str) -> str:
        """Return whose key ``public`` is or was: "user NAME", "node NAME", "invitation", or "" for nobody's."""
        sql = (
            "SELECT 'user ' || user FROM keys WHERE public = :public UNION ALL SELECT 'node ' || name FROM nodes "
            "WHERE public = :public UNION ALL SELECT 'invitation' FROM invitations WHERE public = :public"
        )
        row = self._db.execute(sql, {"public": public}).fetchone()
        return row[0] if row is not None else ""

    def node_of(self, public: str) -> str | None:
        """Return the node whose agent has the key ``public``, or None."""
        row = self._db.execute("SELECT name FROM nodes WHERE public = ?", (public,)).fetchone()
        return row[0] if row is not None else None

    # --- sessions -----------------------------------------------------------------------------------------------------

    def save(self, session: Session) -> None:
        """Keep ``session`` as it is now. It is on record when this returns."""
        values = (
            session.id, session.user, session.client_key, session.label, session.node, session.ordinal,
            session.device_kind, session.memory_limit_bytes, session.lease_seconds, session.opened_at,
            str(session.state), session.epoch, json.dumps(session.endpoints), session.secret,
            session.certificate, session.reason, msgspec.json.encode(session.wish).decode(), session.waiter,
            int(session.has_promise), session.placed, json.dumps(session.others),
        )  # fmt: skip
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR REPLACE INTO sessions ({_SESSION_COLUMNS}) VALUES ({marks})", values)

    def sessions(self) -> list[Session]:
        """Return every session that is not closed, as last saved; deadlines are not kept."""
        rows = self._db.execute(f"SELECT {_SESSION_COLUMNS} FROM sessions WHERE state != ?", (SessionState.CLOSED,))
        return [_session(row) for row in rows]

    def closed(self, session: str) -> Session | None:
        """Return ``session`` as it was closed, or None if it is not on record as closed."""
        sql = f"SELECT {_SESSION_COLUMNS} FROM sessions WHERE id = ? AND state = ?"
        row = self._db.execute(sql, (session, SessionState.CLOSED)).fetchone()
        return _session(row) if row is not None else None

    def forget_closed(self, before: float) -> None:
        """Drop the records of sessions that were closed and opened before that time (seconds since 1970)."""
        which = "FROM sessions WHERE state = ? AND opened_at < ?"
        with together(self._db):
            latest = self._db.execute(f"SELECT max(opened_at) {which}", (SessionState.CLOSED, before)).fetchone()[0]
            if latest is not None and not self.has_dropped(latest):
                self._db.execute("DELETE FROM dropped")
                self._db.execute("INSERT INTO dropped VALUES (?)", (latest,))
            self._db.execute(f"DELETE {which}", (SessionState.CLOSED, before))

    def has_dropped(self, opened_at: float) -> bool:
        """Tell whether a session that was opened then, and is not on record, was closed and dropped.

        Else these records have never known it: they were lost since, or are an old copy.
        """
        return self._db.execute("SELECT 1 FROM dropped WHERE opened_at >= ?", (opened_at,)).fetchone() is not None


def _session(row: tuple[object, ...]) -> Session:
    names = _SESSION_COLUMNS.split(", ")
    fields = dict(zip(names, row, strict=True))
    fields["state"] = SessionState(str(fields["state"]))
    fields["endpoints"] = tuple(json.loads(str(fields["endpoints"])))
    fields["others"] = tuple(json.loads(str(fields["others"])))
    fields["has_promise"] = bool(fields["has_promise"])
    fields["wish"] = msgspec.json.decode(str(fields["wish"]), type=Wish)
    return Session(**fields)  # type: ignore[arg-type]
