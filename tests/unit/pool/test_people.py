"""Users and keys of a pool: added and removed whole, and looked for without making a pool."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from gpu_backend.gateway.accounts import Accounts, Owned, Reading
from gpu_backend.node import settings as node_settings
from gpu_backend.node.kernel_cache import UserCache
from gpu_backend.pool import commands, people, setup, shares, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.usage import usage
from gpu_backend.transport import curve
from gpu_backend.wire.control import Usage
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> state.PoolState:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = state.at(tmp_path / "pool")
    setup.prepare(made, PoolSettings())
    return made


def test_users_and_keys_come_and_go(pool: state.PoolState) -> None:
    people.add_user(pool, "ada")
    public = curve.generate().public.decode()
    people.add_key(pool, "ada", public, "laptop")
    (ada,) = [person for person in people.people(pool) if person.name == "ada"]
    assert [(key.public, key.note, key.revoked_at) for key in ada.keys] == [(public, "laptop", None)]
    assert people.revoke_key(pool, public[:12]).public == public
    with pytest.raises(PoolRefusal, match="revoked already"):
        people.revoke_key(pool, public[:12])
    with pytest.raises(PoolRefusal, match=r"for 'ada', and was revoked\..*keys restore --key="):
        people.add_key(pool, "ada", public)
    assert people.restore_key(pool, public[:12]).public == public
    with pytest.raises(PoolRefusal, match="good already"):
        people.restore_key(pool, public)
    assert [key.revoked_at for person in people.people(pool) for key in person.keys if key.public == public] == [None]


def test_the_pools_own_key_is_nobodys(pool: state.PoolState) -> None:
    """Whoever is new to this takes the one that they were given for the one that they shall give."""
    own = curve.load(pool.gateway_key).public.decode()
    with pytest.raises(PoolRefusal, match=r"the pool's own public key; a user's is what `workbench connect` prints"):
        people.add_user(pool, "ada", key=own)
    people.add_user(pool, "ada")
    with pytest.raises(PoolRefusal, match="the pool's own public key"):
        people.add_key(pool, "ada", own)


def test_a_user_who_cannot_be_added_whole_is_not_added(pool: state.PoolState) -> None:
    (operator,) = people.people(pool)
    for key in ("abc", operator.keys[0].public):
        with pytest.raises(PoolRefusal, match=r"no public key|registered already"):
            people.add_user(pool, "bad", key=key)
    assert people.people(pool) == [operator]
    with pytest.raises(PoolRefusal, match="without an operator"):
        people.add_user(pool, operator.name, is_operator=False)
    people.add_user(pool, operator.name, key=curve.generate().public.decode())
    assert [person.is_operator for person in people.people(pool)] == [True]  # who gets another key stays what they are


@pytest.mark.parametrize("none", ["default", ""])
def test_a_group_is_taken_back_as_any_other_setting_is(pool: state.PoolState, none: str) -> None:
    people.add_user(pool, "ada")
    shares.set_group(pool, "ada", "lab")
    assert [share.name for share in shares.shares(pool) if share.holder == "group"] == ["lab"]
    shares.set_group(pool, "ada", none)
    assert [share.name for share in shares.shares(pool) if share.holder == "group"] == []
    assert [share.group for share in shares.shares(pool) if share.name == "ada"] == [""]


def test_a_key_that_cannot_be_saved_is_not_registered(
    pool: state.PoolState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people.add_user(pool, "ada")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "ada.key"))

    with monkeypatch.context() as patch:
        patch.setattr(curve, "save", full)
        with pytest.raises(OSError, match=r"No space left.*ada\.key"):
            people.make_key(pool, "ada", tmp_path / "ada.key")
    assert [person.keys for person in people.people(pool) if person.name == "ada"] == [()]
    public = people.make_key(pool, "ada", tmp_path / "ada.key")
    assert [key.public for person in people.people(pool) if person.name == "ada" for key in person.keys] == [public]


def test_a_key_that_cannot_be_registered_leaves_no_file(pool: state.PoolState, tmp_path: Path) -> None:
    with pytest.raises(PoolRefusal, match="There is no user"):
        people.make_key(pool, "nobody", tmp_path / "nobody.key")
    assert not (tmp_path / "nobody.key").exists()


def test_a_removed_user_is_gone_from_everything_and_their_name_means_another(pool: state.PoolState) -> None:
    public = curve.generate().public.decode()
    people.add_user(pool, "ada", key=public)
    shares.set_shares(pool, "user", "ada", {"weight": "3", "memory_bytes": "1000"})
    shares.set_group(pool, "ada", "lab")
    with closing(Accounts(pool.accounts_file)) as books:
        owned = Owned("s", "ada", "lab", "secret.ipynb", 1.0)
        books.book([Reading(owned, 1, Usage(5.0, by_class=(5.0,)))], date(2026, 1, 1))
    kernels = UserCache(Path(node_settings.read(pool.node).cache_dir), "ada")
    (kernels.folder / "cpu").mkdir(parents=True)

    people.remove_user(pool, "ada")
    assert "ada" not in {person.name for person in people.people(pool)}
    assert {share.name for share in shares.shares(pool)} & {"ada", "lab"} == set()
    assert not kernels.folder.exists()
    people.add_user(pool, "ada", key=public)
    (hers,) = [share for share in shares.shares(pool) if share.name == "ada"]
    assert (hers.given, hers.group) == ((), "")
    with closing(Accounts(pool.accounts_file, is_read_only=True)) as books:
        for by in ("user", "notebook", "class"):
            (row,) = books.summary(by)
            assert row.user.startswith("ada (removed ")
            assert row.gpu_seconds == 5.0
        assert books.spent("user", "ada", date(2026, 1, 1)) == 0.0
        assert books.spent("group", "lab", date(2026, 1, 1)) == 5.0


@pytest.mark.parametrize(
    "look",
    [
        people.people,
        people.address,
        shares.shares,
        commands.status,
        lambda pool: usage(pool, "user"),
        lambda pool: people.add_user(pool, "ada"),
        lambda pool: people.revoke_key(pool, "x"),
        lambda pool: shares.set_group(pool, "ada", "lab"),
    ],
)
def test_who_looks_for_a_pool_does_not_make_one(look: Callable[[state.PoolState], object], tmp_path: Path) -> None:
    nowhere = state.at(tmp_path / "nowhere")
    with pytest.raises(PoolUnreachable, match=r"There is no pool in .*nowhere. Run `workbench pool up`"):
        look(nowhere)
    assert not nowhere.root.exists()
    assert not nowhere.runtime.exists()


def test_a_refusal_repeats_no_more_than_a_line_of_what_was_given(pool: state.PoolState) -> None:
    long = 300 * "x"
    refused: list[Callable[[], object]] = [
        lambda: people.add_user(pool, long),
        lambda: people.add_user(pool, "ada", key=long),
        lambda: people.add_key(pool, long, curve.generate().public.decode()),
        lambda: people.remove_user(pool, long),
        lambda: people.revoke_key(pool, long),
    ]
    for ask in refused:
        with pytest.raises(PoolRefusal, match=r"'x{59}…'") as told:
            ask()
        assert long not in str(told.value)


def test_what_cannot_be_is_refused_in_words(pool: state.PoolState) -> None:
    with pytest.raises(PoolRefusal, match="no user name"):
        people.add_user(pool, "../ada")
    with pytest.raises(PoolRefusal, match="no public key"):
        people.add_key(pool, "ada", "short")
    with pytest.raises(PoolRefusal, match="users add ada"):
        people.add_key(pool, "ada", curve.generate().public.decode())
    with pytest.raises(PoolRefusal, match="There is no user"):
        people.remove_user(pool, "ada")
    with pytest.raises(PoolRefusal, match="without an operator"):
        people.remove_user(pool, people.people(pool)[0].name)
