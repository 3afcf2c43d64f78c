"""Random programs over two devices: every number is as NumPy has it, and every array where CuPy would have made it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from kernelproxy.mirror.host_mirror import Mode
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, mirrored, notebook_on_two

_PROGRAMS = int(os.environ.get("PROGRAMS", "60"))
_STEPS = 40
_SHAPES = ((6,), (3, 4), (2, 3, 2), ())


@pytest.fixture(scope="module", params=["cpu", "apart", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


@dataclass
class Known:
    """An array of the program, what NumPy says is in it, and where it is."""

    remote: Any
    host: np.ndarray[Any, Any]
    device: int


class Program:
    """Takes one random step after the other on both sides."""

    def __init__(self, seed: int, can_reach: bool) -> None:
        self.chance = Random(seed)
        self.can_reach = can_reach
        self.known: list[Known] = []
        self.streams: list[list[Any]] = [[], []]
        for device in (0, 1):
            with cp.cuda.Device(device):
                self.streams[device] = [cp.cuda.Stream.null, cp.cuda.Stream()]
        self.said: list[str] = []

    def step(self) -> None:
        device = self.chance.randrange(2)
        action = self.chance.choice(_ACTIONS if self.known else [Program.make])
        self.said.append(f"{action.__name__} on {device}")
        with cp.cuda.Device(device):
            action(self, device)
        if len(self.known) > 8:  # memory is given back, and used again
            self.known.pop(self.chance.randrange(len(self.known)))

    def add(self, remote: Any, host: Any, device: int) -> None:
        assert remote.device.id == device, self.said
        self.known.append(Known(remote, np.asarray(host), device))

    def pick(self, device: int | None = None) -> Known | None:
        fitting = [one for one in self.known if device is None or one.device == device]
        return self.chance.choice(fitting) if fitting else None

    # --- steps --------------------------------------------------------------------------------------------------------

    def make(self, device: int) -> None:
        shape = self.chance.choice(_SHAPES)
        host = np.random.default_rng(self.chance.randrange(1 << 30)).integers(-9, 9, shape).astype("f8")
        makers: list[Callable[[], Any]] = [
            lambda: cp.asarray(host), lambda: cp.array(host.tolist()), lambda: cp.zeros(shape) + cp.asarray(host),
        ]  # fmt: skip
        self.add(self.chance.choice(makers)(), host, device)

    def compute(self, device: int) -> None:
        one = self.pick(device)
        alike = [other for other in self.known if one and other.device == device and other.host.shape == one.host.shape]
        if one is None:
            return
        other = self.chance.choice(alike)
        operation = self.chance.choice(["add", "subtract", "multiply", "maximum"])
        host = getattr(np, operation)(one.host, other.host)
        self.add(getattr(cp, operation)(one.remote, other.remote), np.clip(host, -1e6, 1e6), device)
        last = self.known[-1]
        last.remote = cp.clip(last.remote, -1e6, 1e6)

    def reduce(self, device: int) -> None:
        if (one := self.pick(device)) is not None:
            self.add(one.remote.sum(), one.host.sum(), device)

    def change_in_place(self, device: int) -> None:
        if (one := self.pick(device)) is not None:
            number = float(self.chance.randrange(5))
            one.remote += number
            one.host += number  # also of what shares its memory, on both sides

    def view(self, device: int) -> None:
        one = self.pick()
        if one is not None and one.host.ndim:  # of whatever device: nothing is computed
            self.add(one.remote[::2], one.host[::2], one.device)

    def fill(self, device: int) -> None:
        one = self.pick(device)
        if one is not None and one.host.ndim:
            one.remote[1:] = 3.0
            one.host[1:] = 3.0

    def bring(self, device: int) -> None:
        if (one := self.pick()) is not None:
            how = self.chance.choice(["asarray", "copy", "array"])
            if how != "copy" and one.device != device and not one.remote.flags.forc:  # it would lie as it does there
                with pytest.raises(NotImplementedError, match="cannot copy non-contiguous array between devices"):
                    getattr(cp, how)(one.remote)
                return
            is_same = how == "asarray" and one.device == device
            remote = one.remote.copy() if how == "copy" else getattr(cp, how)(one.remote)
            assert (remote is one.remote) == is_same
            self.add(remote, one.host if is_same else one.host.copy(), device)

    def store(self, device: int) -> None:
        target, source = self.pick(), self.pick()
        if target is not None and source is not None and target.host.shape == source.host.shape:
            cp.copyto(target.remote, source.remote)
            target.host[...] = source.host

    def reach_over(self, device: int) -> None:
        one = self.pick(1 - device)
        if one is None:
            return
        if not self.can_reach:
            with pytest.raises(ValueError, match="Peer access is unavailable"):
                cp.minimum(one.remote, 5)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it reaches over
            self.add(cp.minimum(one.remote, 5), np.minimum(one.host, 5), device)

    def on_a_stream(self, device: int) -> None:
        one = self.pick(device)
        if one is not None:
            stream = self.chance.choice(self.streams[device])
            cp.cuda.Stream.null.synchronize()
            with stream:
                made = one.remote * 1.0
            stream.synchronize()
            self.add(made, one.host * 1.0, device)

    def read(self, device: int) -> None:
        if (one := self.pick()) is not None:
            self.compare(one)

    def compare(self, one: Known) -> None:
        assert one.remote.device.id == one.device, self.said
        np.testing.assert_array_equal(cp.asnumpy(one.remote), one.host, err_msg="\n".join(self.said))


_ACTIONS = [
    Program.make, Program.compute, Program.compute, Program.reduce, Program.change_in_place, Program.view, Program.fill,
    Program.bring, Program.bring, Program.store, Program.on_a_stream, Program.read, Program.reach_over,
]  # fmt: skip


@pytest.mark.parametrize(("part", "mode"), [*enumerate((Mode.OFF, Mode.ON, Mode.CHECK))])
def test_random_programs(executor: InProcess, part: int, mode: Mode) -> None:
    can_reach = bool(cp.cuda.runtime.deviceCanAccessPeer(0, 1))
    for seed in range(part * _PROGRAMS, (part + 1) * _PROGRAMS):
        with mirrored(mode):
            program = Program(seed, can_reach)
            for _ in range(_STEPS):
                program.step()
            for one in program.known:
                program.compare(one)
