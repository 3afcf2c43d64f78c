"""What a pool says no to: keys, places, memory. One sentence each, and everybody else goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.pool import commands, people
from gpu_backend.transport import curve
from kernelproxy.settings import ClientSettings, load, save
from tests.integration.conftest import MakePool, until

from .conftest import Faulty
from .notebook import Notebook

FIRST_USE = "float(cp.ones(3).sum())"


def with_settings(faulty: Faulty, directory: Path, key_file: Path, server_key: str = "") -> Path:
    """Return a settings file like ada's with another key."""
    known = load(faulty.config())
    settings = ClientSettings(gateway=known.gateway, server_key=server_key or known.server_key, key_file=key_file)
    return save(settings, directory / "client.toml")


@pytest.mark.usefixtures("undisturbed")
def test_a_key_that_the_pool_does_not_know(faulty: Faulty, tmp_path: Path) -> None:
    curve.save(curve.generate(), tmp_path / "own.key")
    with Notebook(with_settings(faulty, tmp_path, tmp_path / "own.key")) as stranger:
        refused = stranger.run(FIRST_USE)
    assert refused.error == "KeyRefused"
    assert "turned us away" in refused.text
    assert "adds or restores it" in refused.text


@pytest.mark.usefixtures("undisturbed")
def test_a_pool_that_is_not_the_one_we_know(faulty: Faulty, tmp_path: Path) -> None:
    key = faulty.pool.state.root / "ada.key"
    with Notebook(with_settings(faulty, tmp_path, key, curve.generate().public.decode())) as misled:
        refused = misled.run(FIRST_USE)
    assert refused.error == "ForeignServer"
    assert "is not the pool whose public key we hold" in refused.text


def _revoke(faulty: Faulty, user: str) -> None:
    people.revoke_key(faulty.pool.state, curve.load(faulty.pool.state.root / f"{user}.key").public.decode())


def _remove(faulty: Faulty, user: str) -> None:
    people.remove_user(faulty.pool.state, user)


@pytest.mark.parametrize(
    ("user", "shut_out", "why"),
    [
        ("carl", _revoke, "The operator of this pool has revoked the key that opened this session."),
        ("dora", _remove, "The operator of this pool has removed the user dora."),
    ],
)
def test_who_is_shut_out_at_work_reads_once_why_and_what_to_do(
    faulty: Faulty,
    notebook: Callable[..., Notebook],
    user: str,
    shut_out: Callable[[Faulty, str], None],
    why: str,
) -> None:
    theirs = notebook(user)
    theirs.value("x = cp.arange(5); float(x[0])")
    shut_out(faulty, user)
    theirs.begin("while True: x.sum().item()")
    told = theirs.finish()
    assert told.error == "SessionLost"
    assert told.text == (
        f"{why} The pool does not admit this notebook's key any more. The arrays of this notebook are lost. Once the "
        "pool's operator has admitted the key again (`workbench doctor` shows it), restart the kernel."
    )
    assert told.notes == ""
    again = theirs.run("x.tolist()")  # and it does not change its mind
    assert (again.error, again.text) == ("SessionLost", told.text)
    os.unlink(faulty.config(user))


@pytest.fixture
def small(make_pool: MakePool) -> Iterator[Faulty]:
    """A pool with one place."""
    with TemporaryDirectory(prefix="gwb") as directory:
        made = Faulty(make_pool, Path(directory), sessions_per_device=1, warm_executors_per_device=1)
        yield made
        made.end_notebooks()


def test_a_full_pool_lets_wait_and_serves_when_there_is_room(small: Faulty) -> None:
    first, second = small.notebook(), small.notebook("bob")
    first.value("x = cp.arange(5); float(x[0])")
    second.begin(FIRST_USE)
    until(lambda: [one.user for one in commands.status(small.pool.state).waiting] == ["bob"])
    second.interrupt()
    assert second.finish().error == "KeyboardInterrupt"
    until(lambda: not commands.status(small.pool.state).waiting)
    second.begin(FIRST_USE)
    until(lambda: len(commands.status(small.pool.state).waiting) == 1)
    assert first.value("x.tolist()") == "[0, 1, 2, 3, 4]"
    first.end()
    assert second.finish().value == "3.0"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_ten_gigabytes_where_one_is_allowed_fail_at_their_own_line(mine: Notebook) -> None:
    mine.value("kept = cp.arange(1000); float(kept[0])")
    refused = mine.run("too_much = cp.zeros(10 * 2**30, np.uint8)\nunreached = 1")
    assert refused.error == "OutOfMemoryError"
    assert refused.text.startswith("Out of memory allocating 10,737,418,240 bytes (allocated so far: ")
    assert refused.text.endswith("limit set to: 1,073,741,824 bytes).")
    assert "This session may hold 1 GiB of device memory: the pool's operator gives that" in refused.notes
    assert "What was asked for is more than that alone" in refused.notes
    assert mine.value("'unreached' in globals() or 'unreached' in dir(), int(kept.sum())") == "(False, 499500)"


def test_many_arrays_that_are_too_much_together_fail_at_the_line_of_the_one_too_many(mine: Notebook) -> None:
    refused = mine.run(
        "held = []\nfor _ in range(20):\n    held.append(cp.ones(12_500_000))  # 100 MB\nfloat(held[0][0])"
    )
    assert refused.error == "OutOfMemoryError"
    assert "Raised by an operation recorded earlier" not in refused.notes
    assert "This session may hold 1 GiB of device memory" in refused.notes
    assert "Free arrays" in refused.notes
    assert mine.value("len(held), float(held[0][0]), float(held[-1][0])") == "(10, 1.0, 1.0)"  # those that fitted
    assert mine.value("held.clear(); float(cp.ones(100_000_000, np.uint8).sum())") == "100000000.0"


def test_uploads_that_are_too_much_are_refused_before_they_travel(mine: Notebook) -> None:
    refused = mine.run("host = np.empty(1_100_000_000, np.uint8); cp.asarray(host)")
    assert refused.error == "OutOfMemoryError"
    assert mine.value("del host; current_session().pipeline.connection.bytes_sent < 1_000_000_000") == "True"
