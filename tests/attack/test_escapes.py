"""Chains that once led out of an executor, said to one of a pool: each is refused, and nothing is touched."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.wire.control import Ticket
from gpu_backend.wire.values import Buffer, Bytes, DType, Method, Name, Ref, Scalar, View
from tests.attack.conftest import WAYS, Tenants
from tests.attack.hostile import Hostile, Said, hostile_session
from tests.integration.notebook_pool import wait_until

#: A traitor would say the same ops.
pytestmark = pytest.mark.parametrize("tenants", [WAYS[0], WAYS[2]], indirect=True)
#: By which a string reads whatever attribute of whatever it is given.
FORMAT = "{0.__class__.__init__.__globals__}"


@pytest.fixture(scope="module")
def eve(tenants: Tenants) -> Iterator[tuple[Hostile, Ticket]]:
    with hostile_session(tenants.eve, tenants.kind) as (hostile, ticket):
        # Its arbiter hands pages over once it has seen it; what opens after that is the attack's.
        wait_until(lambda: any("gpu-workbench-way" in one for one in opened(tenants, ticket)))
        yield hostile, ticket


def profile(eve: Hostile, path: str) -> object:
    gen = eve.make(".getattr", Ref(eve.make("cupy.cuda.profile")), "gen")
    frame = eve.make(".getattr", Ref(gen), "gi_frame")
    names = eve.make(".getattr", Ref(frame), "f_builtins")
    door = eve.make(".method", Ref(names), "get", "eval")
    return eve.ask(".call", Ref(door), "1 + 1")


def writes(eve: Hostile, path: str, verb: str, target: object) -> object:
    return eve.ask(".method", target, verb, path)


def array_of_objects(eve: Hostile) -> object:
    forged = View(eve.upload(np.zeros(8)), 0, (1,), (8,), "|O", "C")
    return eve.make(".same", forged)


ESCAPES: dict[str, Callable[[Hostile, str], object]] = {
    "a generator's frame": profile,
    "a function's globals": lambda eve, path: eve.make(".getattr", Name("cupy.cuda.profile"), "__globals__"),
    "format": lambda eve, path: eve.ask(".method", FORMAT, "format", Ref(eve.make("cupy.cuda.Stream"))),
    "format_map": lambda eve, path: eve.ask(".method", FORMAT, "format_map", Ref(eve.upload(np.zeros(2)))),
    "the class of a dtype": lambda eve, path: eve.make(".getattr", DType("<f8"), "type"),
    "a method as a value": lambda eve, path: eve.make(".same", Method(eve.make("cupy.cuda.profile"), "gen")),
    "tofile": lambda eve, path: writes(eve, path, "tofile", Ref(eve.upload(np.zeros(2)))),
    "dump": lambda eve, path: writes(eve, path, "dump", Ref(eve.upload(np.zeros(2)))),
    "tofile of a host array": lambda eve, path: writes(eve, path, "tofile", Buffer(-1, "|u1", (2,), b"ab")),
    "tofile of a scalar": lambda eve, path: writes(eve, path, "tofile", Scalar("<f8", bytes(8))),
    "dump of a scalar": lambda eve, path: writes(eve, path, "dump", Scalar("<f8", bytes(8))),
    "tofile by its name": lambda eve, path: eve.ask("cupy.ndarray.tofile", Ref(eve.upload(np.zeros(2))), path),
    "tofile as a value": lambda eve, path: eve.ask(".call", Method(eve.upload(np.zeros(2)), "tofile"), path),
    "DataSource": lambda eve, path: eve.make(".method", Ref(eve.make("cupy.DataSource")), "open", path),
    "fromfile": lambda eve, path: eve.make("cupy.fromfile", path),
    "load": lambda eve, path: eve.make("cupy.load", path),
    "loadtxt": lambda eve, path: eve.make("cupy.loadtxt", path),
    "a codec of one's own": lambda eve, path: eve.ask(".method", "text", "encode", "canary"),
    "an array of addresses that are taken for objects": lambda eve, path: array_of_objects(eve),
    "a pickle": lambda eve, path: eve.make(".method", Ref(eve.upload(np.zeros(2))), "__setstate__", Bytes(b"")),
    "another class": lambda eve, path: eve.make(".setattr", Ref(eve.upload(np.zeros(2))), "__class__", 1),
    "strides of one's own": lambda eve, path: eve.make(".setattr", Ref(eve.upload(np.zeros(2))), "strides", 1 << 40),
    "a builtin by name": lambda eve, path: eve.ask("builtins.eval", "1"),
    "a module by name": lambda eve, path: eve.ask("os.getpid"),
    "a private name": lambda eve, path: eve.ask("cupy._core.core.os.getpid"),
}  # fmt: skip


@pytest.mark.parametrize("chain", ESCAPES)
def test_it_is_refused_and_touches_nothing(
    chain: str, tenants: Tenants, eve: tuple[Hostile, Ticket], tmp_path: Path
) -> None:
    hostile, ticket = eve
    directory = tenants.directory_of(ticket)
    before, files = opened(tenants, ticket), sorted(os.listdir(directory))
    path = tmp_path / "made"
    with pytest.raises(Said):
        ESCAPES[chain](hostile, str(path))
    assert not path.exists()
    wait_until(lambda: opened(tenants, ticket) == before)  # what is compiled behind the ops has files open for a while
    assert sorted(os.listdir(directory)) == files
    assert (hostile.ask("cupy.arange", 3) == np.arange(3)).all()


def opened(tenants: Tenants, ticket: Ticket) -> set[str]:
    """Return the files that an executor has open."""
    folder = Path(f"/proc/{tenants.pool.executor(ticket).pid}/fd")
    links = set()
    for one in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            links.add(os.readlink(one))
    return {link for link in links if link.startswith("/") and "/dev/" not in link}
