"""The filter of system calls, run by a small interpreter of its language, for both architectures."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from gpu_backend.executor.sandbox import seccomp, syscalls
from gpu_backend.executor.sandbox.seccomp import Instruction

OWN = 4711
NATIVE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PASS, KILL = "pass", "kill"


def decide(program: list[Instruction], architecture: int, number: int, *arguments: int) -> str | int:
    """Return what the kernel would do about a call: `PASS`, `KILL`, or the number of the error."""
    words = [number, architecture, 0, 0]
    for argument in (*arguments, *(0,) * (6 - len(arguments))):
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    register = at = 0
    while True:
        operation, if_true, if_false, value = program[at]
        at += 1
        match operation:
            case 0x20:
                register = words[value // 4]
            case 0x54:
                register &= value
            case 0x06:
                return {0x7FFF0000: PASS, 0x80000000: KILL}.get(value, value & 0xFFFF)
            case _:
                holds = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[operation]
                at += if_true if holds else if_false


class Filter:
    def __init__(self, machine: str, landlock: int = 7, **profile: bool) -> None:
        self.program = seccomp.program(machine, OWN, landlock, **{"has_cuda": False, **profile})
        self.numbers = syscalls.numbers(machine)
        self.native = NATIVE[machine]

    def __call__(self, name: str, *arguments: int) -> str | int:
        return decide(self.program, self.native, self.numbers[name], *arguments)


@pytest.fixture(params=NATIVE)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_no_executor_needs_is_refused_and_the_rest_passes(machine: str) -> None:
    asks = Filter(machine)
    for name in (
        "socket",
        "connect",
        "ptrace",
        "process_vm_readv",
        "setns",
        "bpf",
        "io_uring_setup",
        "shmget",
        "setsid",
        "setpgid",
        "io_setup",
    ):
        assert asks(name) == errno.EPERM
    assert asks("clone3") == asks("openat2") == errno.ENOSYS
    assert asks("fchmod") == asks("utimensat") == 0
    unnamed = {"x86_64": (0, 1, 9, 59, 288), "aarch64": (63, 64, 222, 221, 242)}  # read write mmap execve accept4
    for number in unnamed[machine]:
        assert decide(asks.program, asks.native, number) == PASS


def test_foreign_and_newer_calls_do_not_slip_through(machine: str) -> None:
    asks = Filter(machine)
    other = next(native for name, native in NATIVE.items() if name != machine)
    assert decide(asks.program, other, 0) == KILL
    assert decide(asks.program, 0x40000003, 0) == KILL  # 32 bits of x86
    assert decide(asks.program, asks.native, syscalls.NEWEST + 1) == errno.ENOSYS
    x32 = decide(asks.program, asks.native, 0x40000000 | 41)
    assert x32 == (KILL if machine == "x86_64" else errno.ENOSYS)


def test_arguments_decide_where_some_calls_are_needed(machine: str) -> None:
    asks = Filter(machine)
    assert asks("clone", 0x003D0F00) == PASS  # a thread
    assert asks("clone", 0x10000000) == asks("clone", 0x00020000) == errno.EPERM
    assert asks("prlimit64", 0) == asks("prlimit64", OWN) == PASS
    assert asks("prlimit64", 1) == errno.EPERM
    assert asks("sched_setscheduler", OWN + 1) == 0
    assert asks("socketpair", 1, 1 | 0o2000000) == PASS
    assert asks("socketpair", 1, 2) == asks("socketpair", 2, 1) == errno.EPERM
    for name, place in (("sendmsg", 2), ("sendmmsg", 3), ("sendto", 3)):
        assert asks(name, *(0,) * place, 0x4040) == PASS
        assert asks(name, *(0,) * place, 0x20004040) == errno.EPERM, "it would connect the socket"
    assert asks("sendto", 0, 0, 0, 0, 1) == asks("sendto", 0, 0, 0, 0, 1 << 32) == errno.EPERM
    assert asks("setpriority", 0, 0) == PASS
    assert asks("setpriority", 2, 0) == asks("setpriority", 0, 1) == errno.EPERM
    assert asks("fcntl", 0, 3) == PASS
    assert asks("fcntl", 0, 8) == asks("fcntl", 0, 1024) == errno.EPERM
    for command in (0x5401, 0xC020462A, 33, 0x30000001):
        assert asks("ioctl", 0, command) == PASS
    for command in (0x5412, 0x40086602, 0x40806685, 0x5410):
        assert asks("ioctl", 0, command) == errno.ENOTTY
    for command in (0xC01C4634, 0xC0104635):  # taking over an object of another process, and lending one
        assert asks("ioctl", 0, command) == errno.EPERM
    on_several = Filter(machine, has_cuda=True, has_several_gpus=True)
    assert on_several("ioctl", 0, 0xC01C4634) == PASS
    assert on_several("ioctl", 0, 0xC0104635) == errno.EPERM


def test_old_landlock_is_made_up_for(machine: str) -> None:
    assert Filter(machine, 6)("kill", 1) == PASS
    asks = Filter(machine, 5)
    assert asks("kill", OWN) == asks("tgkill", OWN) == PASS
    assert asks("kill", 1) == asks("kill", 2**32 - 1) == asks("tgkill", 1) == errno.EPERM
    assert Filter(machine, 3)("truncate") == PASS
    asks = Filter(machine, 2)
    assert asks("truncate") == errno.EPERM
    assert asks("openat", 0, 0, 0o1000 | 1) == asks("openat", 0, 0, 0o1000 | 2) == asks("openat") == PASS
    assert asks("openat", 0, 0, 0o1000) == asks("openat", 0, 0, 0o1000 | 3) == errno.EPERM


def test_cuda_has_its_socket_and_no_more(machine: str) -> None:
    asks = Filter(machine, has_cuda=True)
    assert asks("socket", 1, 5 | 0o2000000) == PASS
    assert asks("bind") == asks("listen") == PASS
    assert asks("connect") == errno.EPERM
    for family, kind in ((1, 1), (1, 2), (2, 1), (2, 2), (16, 3)):
        assert asks("socket", family, kind) == errno.EPERM


def test_a_client_of_mps_connects_and_takes_over_until_it_is_sealed(machine: str) -> None:
    asks = Filter(machine, has_cuda=True, is_mps_client=True)
    assert asks("connect") == PASS
    assert asks("ioctl", 0, 0xC01C4634) == PASS
    assert asks("ioctl", 0, 0xC0104635) == errno.EPERM, "it lends nothing"
    assert asks("socket", 1, 5) == PASS
    assert asks("socket", 1, 1) == asks("socket", 2, 1) == errno.EPERM
    sealed = Filter(machine)
    sealed.program = seccomp.second_program(machine, is_mps_client=True)
    for name in ("socket", "bind", "listen", "connect"):
        assert sealed(name) == errno.EPERM
    assert sealed("ioctl", 0, 0xC01C4634) == errno.EPERM
    assert sealed("ioctl", 0, 0xC020462A) == sealed("ioctl", 0, 0x5401) == PASS, "the first filter answers for these"


def test_the_seal_of_others_looks_at_sockets_alone(machine: str) -> None:
    sealed = Filter(machine)
    sealed.program = seccomp.second_program(machine, is_mps_client=False)
    assert sealed("connect") == errno.EPERM
    assert sealed("ioctl", 0, 0xC01C4634) == PASS, "on several GPUs CUDA takes over objects later as well"


def test_the_numbers_are_the_kernels() -> None:
    for machine, header in (("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")):
        path = Path("/usr/include", header)
        if not path.exists():
            continue
        found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
        known = syscalls.numbers(machine)
        assert {name: int(found[name]) for name in known if name in found} == {n: known[n] for n in known if n in found}
        assert len(set(known) & set(found)) > 90
