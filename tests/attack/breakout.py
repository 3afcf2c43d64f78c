"""A process that shuts itself in as an executor does, or not, and then tries to get out by native means; tells as JSON.

Its argument is what it is told, as JSON. It prints, for each try, "open" or the name of the error.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gpu_backend.executor import sandbox
from gpu_backend.executor.sandbox.syscalls import numbers

TOLD: dict[str, Any] = json.loads(sys.argv[1])
NUMBERS = numbers(platform.machine())
LIBC = ctypes.CDLL(None, use_errno=True)
VICTIM, OTHER = TOLD["victim"], TOLD["other"]
#: As each executor has one: by which call it is to be misused.
LISTENERS = {name: socket.create_server(("127.0.0.1", 0)) for name in ("sendto", "sendmsg", "sendmmsg")}
#: Of a message: to connect the socket by it (MSG_FASTOPEN).
FAST_OPEN = 0x20000000


def call(name: str, *arguments: Any) -> int:
    """Make a system call by its number, as code would that brings its own."""
    done = LIBC.syscall(NUMBERS[name], *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return int(done)


def read(path: str) -> str:
    return Path(path).read_text()


def write(path: str) -> None:
    Path(path).touch()
    os.unlink(path)


def make_handle() -> None:
    room, mount = struct.pack("<Ii", 128, 0) + bytes(128), ctypes.c_int()
    call("name_to_handle_at", -100, b"/", room, ctypes.byref(mount), 0)


def start_child() -> int:
    return os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1])


def connect_unix(address: str, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.connect(address)


def connect_tcp() -> None:
    socket.create_connection(("127.0.0.1", TOLD["port"]), 2).close()


def connect_by_sending(call_by: str) -> None:
    """A socket that listens may be shut, and then be connected by the first message that is sent with it."""
    listener = LISTENERS[call_by]
    listener.shutdown(socket.SHUT_RD)
    address = struct.pack("<H", socket.AF_INET) + struct.pack(">H", TOLD["port"]) + bytes((127, 0, 0, 1)) + bytes(8)
    if call_by == "sendto":
        listener.sendto(b"x", FAST_OPEN, ("127.0.0.1", TOLD["port"]))
    elif call_by == "sendmsg":
        listener.sendmsg([b"x"], [], FAST_OPEN, ("127.0.0.1", TOLD["port"]))
    else:
        text, name = ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(address)
        vector = ctypes.create_string_buffer(struct.pack("<QQ", ctypes.addressof(text), 1))
        header = struct.pack(
            "<QIxxxxQQQQIxxxxIxxxx", ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0
        )
        call("sendmmsg", listener.fileno(), ctypes.create_string_buffer(header), 1, FAST_OPEN)


def send_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", 9))


def send_by_pair() -> None:
    """A pair of datagram sockets may be bought and then used to write to any path."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"x", TOLD["datagrams"])


def netlink() -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


def write_memory() -> None:
    with open(f"/proc/{VICTIM}/mem", "r+b") as memory:
        memory.seek(TOLD["address"])
        memory.write(b"spoilt")


def read_memory_of_other() -> None:
    with open(f"/proc/{OTHER}/mem", "rb") as memory:
        memory.seek(TOLD["address"])
        memory.read(1)


def read_by_call() -> None:
    here = ctypes.create_string_buffer(8)
    mine = struct.pack("<QQ", ctypes.addressof(here), 8)
    theirs = struct.pack("<QQ", TOLD["address"], 8)
    call("process_vm_readv", VICTIM, mine, ctypes.c_ulong(1), theirs, ctypes.c_ulong(1), ctypes.c_ulong(0))


def signal_by_owner() -> None:
    """A pipe may be told to send a signal to whom one names when it can be read."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, VICTIM)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")


def cut(path: str) -> None:
    """Empty a file by opening it to be read."""
    os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))


def cut_by_mode_three(path: str) -> None:
    os.close(os.open(path, 3 | os.O_TRUNC))


def change_mode() -> None:
    os.chmod(TOLD["key"], 0o666)
    if os.stat(TOLD["key"]).st_mode & 0o777 != 0o666:
        raise PermissionError(errno.EPERM, "it only seemed to")


def limit_victim() -> None:
    resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (16, 16))


def hold_victim_to_one_processor() -> None:
    os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0))
    if os.sched_getscheduler(VICTIM) != os.SCHED_IDLE:
        raise PermissionError(errno.EPERM, "it only seemed to")


def type_into_terminal() -> None:
    leader, follower = os.openpty()
    fcntl.ioctl(follower, 0x5412, b"x")
    os.close(leader)


def start_what_was_written() -> None:
    path = f"{TOLD['own']}/program"
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o700)
    pid = os.posix_spawn(path, [path], {})
    os.waitpid(pid, 0)


def new_user() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0 if LIBC.unshare(0x10000000) == 0 else 1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise PermissionError(errno.EPERM, "unshare")


def foreign_call() -> None:
    """Make a call by the numbers of another architecture: kills whoever tries."""
    pid = os.fork()
    if not pid:
        LIBC.syscall(0x40000000 | 39)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise PermissionError(errno.EPERM, "killed")


TRIES: dict[str, Callable[[], object]] = {
    "read a key": lambda: read(TOLD["key"]),
    "list the keys": lambda: os.listdir(os.path.dirname(TOLD["key"])),
    "write into the pool's state": lambda: write(TOLD["key"] + ".new"),
    "remove a key": lambda: os.unlink(TOLD["key"]),
    "rename a key": lambda: os.rename(TOLD["key"], TOLD["key"] + ".old"),
    "link a key here": lambda: os.link(TOLD["key"], f"{TOLD['own']}/link"),
    "read by a link": lambda: (os.symlink(TOLD["key"], f"{TOLD['own']}/soft"), read(f"{TOLD['own']}/soft")),
    "change the mode of a key": change_mode,
    "change the owner of a key": lambda: os.chown(TOLD["key"], os.getuid(), os.getgid()),
    "mark a key": lambda: os.setxattr(TOLD["key"], "user.mark", b"x"),
    "read another executor's folder": lambda: os.listdir(TOLD["others_own"]),
    "list home": lambda: os.listdir(TOLD["home"]),
    "write to /tmp": lambda: write(f"/tmp/breakout-{os.getpid()}"),
    "list /tmp": lambda: os.listdir("/tmp"),
    "write to /dev/shm": lambda: write(f"/dev/shm/breakout-{os.getpid()}"),
    "read /etc/passwd": lambda: read("/etc/passwd"),
    "read /etc/shadow": lambda: read("/etc/shadow"),
    "list /proc": lambda: os.listdir("/proc"),
    "cut a file that may be read": lambda: cut(TOLD["library"]),
    "cut a file by access mode three": lambda: cut_by_mode_three(TOLD["library"]),
    "cut a file by name": lambda: os.truncate(TOLD["library"], 0),
    "read another's memory": read_memory_of_other,
    "write another's memory": write_memory,
    "read memory by a call": read_by_call,
    "read another's environment": lambda: read(f"/proc/{VICTIM}/environ"),
    "read another's command line": lambda: read(f"/proc/{VICTIM}/cmdline"),
    "look at another's descriptors": lambda: os.listdir(f"/proc/{VICTIM}/fd"),
    "trace another": lambda: call("ptrace", 16, VICTIM, None, None),
    "take another's descriptor": lambda: call("pidfd_getfd", os.pidfd_open(VICTIM), 0, 0),
    "signal another": lambda: os.kill(VICTIM, signal.SIGCONT),
    "signal another executor": lambda: os.kill(OTHER, signal.SIGCONT),
    "signal another's thread": lambda: call("tgkill", VICTIM, VICTIM, signal.SIGCONT),
    "signal another by number of thread": lambda: call("tkill", VICTIM, signal.SIGCONT),
    "signal another by descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGCONT),
    "signal another by a pipe": signal_by_owner,
    "signal everybody": lambda: os.kill(-VICTIM, signal.SIGCONT),
    "limit another": limit_victim,
    "hold another back": hold_victim_to_one_processor,
    "put all of this user last": lambda: os.setpriority(os.PRIO_USER, os.getuid(), os.getpriority(os.PRIO_USER, 0)),
    "leave the session": lambda: call("setsid"),
    "connect to a socket": lambda: connect_unix(TOLD["socket"]),
    "connect to a socket of packets": lambda: connect_unix(TOLD["packets"], socket.SOCK_SEQPACKET),
    "connect to an abstract socket": lambda: connect_unix(TOLD["abstract"]),
    "send to a socket by path": lambda: connect_unix(TOLD["datagrams"], socket.SOCK_DGRAM),
    "send by a pair of sockets": send_by_pair,
    "connect by TCP": connect_tcp,
    "listen by TCP": lambda: socket.create_server(("127.0.0.1", 0)).close(),
    **{f"connect by {name}": partial(connect_by_sending, name) for name in LISTENERS},
    "send by UDP": send_udp,
    "ask the kernel by netlink": netlink,
    "make a namespace": new_user,
    "mount": lambda: call("mount", b"none", TOLD["own"].encode(), b"tmpfs", ctypes.c_ulong(0), None),
    "change the root": lambda: os.chroot(TOLD["own"]),
    "load a program into the kernel": lambda: call("bpf", 0, bytes(128), 128),
    "watch by perf": lambda: call("perf_event_open", bytes(128), VICTIM, -1, -1, ctypes.c_ulong(0)),
    "make a ring of calls": lambda: call("io_uring_setup", 8, bytes(120)),
    "handle page faults": lambda: call("userfaultfd", 1),
    "make a keyring": lambda: call("keyctl", 0, -3, 1),
    "make shared memory": lambda: call("shmget", 0, ctypes.c_size_t(4096), 0o1600),
    "make a queue": lambda: call("mq_open", b"breakout", 0o102, 0o600, None),
    "leave the group": lambda: os.setpgid(0, 0),
    "make a context of calls": lambda: call("io_setup", 1, ctypes.byref(ctypes.c_ulong())),
    "watch a folder": lambda: call("inotify_init1", 0),
    "make a handle of a file": make_handle,
    "make a device": lambda: os.mknod(f"{TOLD['own']}/device", 0o020600, os.makedev(1, 1)),
    "make a pipe by name": lambda: os.mkfifo(f"{TOLD['own']}/pipe"),
    "type into a terminal": type_into_terminal,
    "start what was written": start_what_was_written,
    "call by foreign numbers": foreign_call,
}  # fmt: skip


def play_cuda() -> None:
    """Do what CUDA does before it begins, with a thread beside."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(f"\0cuda-uvmfd-{os.getpid()}")
    one.listen(1)
    threading.Thread(target=signal.pause, daemon=True).start()
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).close()
        except PermissionError:
            continue
        raise AssertionError("another kind of socket could be made")


def main() -> None:
    """Shut in, try all, tell."""
    Path(TOLD["own"]).mkdir(mode=0o700, exist_ok=True)
    if TOLD["is_shut_in"]:
        walls = sandbox.Walls(private=tuple(TOLD["private"]), homes=(TOLD["home"],), also_read=(TOLD["home"],))
        if TOLD["has_gpu"]:
            walls = msgspec.structs.replace(walls, devices=("/dev/null",), is_mps_client=TOLD["is_mps_client"])
        sandbox.enter(TOLD["own"], walls, [sandbox.Place(TOLD["library"], sandbox.landlock.READ)], kept=TOLD["kept"])
        if TOLD["has_gpu"]:
            play_cuda()
            if TOLD["is_mps_client"]:
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(TOLD["packets"])  # as to its daemon
            sandbox.seal(TOLD["is_mps_client"])
    found = {}
    for name in TOLD["tries"] or TRIES:
        try:
            TRIES[name]()
            found[name] = "open"
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, "?")
    inside = f"{TOLD['own']}/file"  # what must be possible all the same
    Path(inside).write_text("its own")
    found |= {"own folder": read(inside), "a child": str(start_child())}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    if TOLD["stays"]:
        signal.pause()


if __name__ == "__main__":
    main()
