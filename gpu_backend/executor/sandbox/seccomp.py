"""The filter of system calls: what Landlock does not look at, and what no executor needs.

A program for the kernel's packet filter, of which every call reads a part: it knows the architecture, the number and
the six arguments, but nothing that an argument points to. Most calls pass whatever their arguments are, which the
kernel finds out once and remembers; only those that are named here cost anything.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from gpu_backend.executor.sandbox.kernel_calls import NoSandbox, prctl, syscall
from gpu_backend.executor.sandbox.syscalls import NEWEST, machine, numbers

__all__ = ["Instruction", "enter", "is_there", "program", "seal", "second_program"]


class Instruction(NamedTuple):
    """One instruction of the filter: ``struct sock_filter``."""

    operation: int
    if_true: int
    if_false: int
    value: int


_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_KILL, _ERRNO, _PASS = 0x80000000, 0x00050000, 0x7FFF0000
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Bit of the numbers by which x86-64 serves the calls of x32: other numbers for what is refused below.
_X32 = 0x40000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
#: Of the call ``seccomp``: to add a filter, and to add it to all threads.
_SET_FILTER, _ALL_THREADS = 1, 1

#: Owner, attributes and modes by path: Landlock does not look at these. To change a mode or a time seems to succeed:
#: linkers and caches do it in passing, and give up where they cannot.
_PRETEND = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
_REFUSE = tuple(
    """
    chown fchown lchown fchownat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    name_to_handle_at open_by_handle_at inotify_init inotify_init1 inotify_add_watch fanotify_init fanotify_mark
    socket connect bind listen
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd pidfd_send_signal kcmp
    tkill rt_sigqueueinfo rt_tgsigqueueinfo migrate_pages setsid setpgid
    unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
    statmount listmount swapon swapoff reboot kexec_load kexec_file_load init_module finit_module delete_module
    acct quotactl quotactl_fd syslog sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime
    iopl ioperm modify_ldt vhangup lsm_set_self_attr add_key request_key keyctl
    bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register io_setup
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
    """.split()
)
_SCHEDULING = ("sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr")
#: Their arguments lie where the filter cannot look; libraries take the older calls where there are no such.
_MISSING = ("clone3", "openat2")

#: Of a message: to connect the socket by sending it.
_FAST_OPEN = 0x20000000
_NEW_NAMESPACES = 0x7E020000 | 0x00000080
_UNIX, _STREAM, _WHOLE_MESSAGES, _SOCKET_TYPE = 1, 1, 5, 0xF
#: Commands of fcntl that have signals sent to others, or stop others from opening a file: F_SETSIG, F_SETOWN,
#: F_SETOWN_EX, F_SETLEASE, F_NOTIFY.
_FCNTL_REFUSED = (10, 8, 15, 1024, 1026)
#: Commands of ioctl: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, and UVM_INITIALIZE and
#: UVM_DEINITIALIZE of NVIDIA's driver, whose other commands are of type 'F' (resource manager) or below 4096 (unified
#: memory). Not among them: TIOCSTI, which types into terminals; FS_IOC_SETFLAGS and FS_IOC_ENABLE_VERITY, which change
#: files that were opened to be read.
_IOCTL_PASSED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x30000001, 0x30000002)
_IOCTL_MASK, _IOCTL_TYPE_MASK, _IOCTL_TYPE, _IOCTL_SMALL = 0xFFFF, 0xFF00, 0x4600, 0x1000
#: Of the resource manager's commands, those by which a process takes over objects of another and lends its own
#: (NV_ESC_RM_DUP_OBJECT, _SHARE, _EXPORT_OBJECT_TO_FD, _IMPORT_OBJECT_FROM_FD, NV_ESC_EXPORT_TO_DMABUF_FD): the driver
#: lets all of one account, and CUDA's handles of memory for others can be guessed. And the one that carries any other
#: in memory, where no filter looks (NV_ESC_IOCTL_XFER_CMD). CUDA computes without (seen on an H100, driver 580), but
#: for the first of them where a process has several GPUs: then no second one is to be had (two H100s), or where it is
#: a client of MPS, while it begins (three times on an H100).
_DUP_OBJECT = 0x4634
_IOCTL_OF_OTHERS = (_DUP_OBJECT, 0x4635, 0x465C, 0x465D, 0x46D3, 0x46D9)
_TRUNCATE_FLAG, _ACCESS_MODE, _WRITE_ONLY, _READ_WRITE = 0o1000, 0o3, 1, 2
_ANY_PERSONALITY = 0xFFFFFFFF

Body = list[Instruction]


def program(
    architecture: str,
    own: int,
    landlock: int,
    has_cuda: bool,
    has_several_gpus: bool = False,
    is_mps_client: bool = False,
) -> Body:
    """Return the filter.

    Parameters
    ----------
    architecture
        "x86_64" or "aarch64".
    own
        This process's number: the one that may be named where calls name processes.
    landlock
        Version of Landlock: what an old one does not keep is kept here.
    has_cuda
        Whether to let CUDA listen for others who share its memory, until `seal`: it does not begin without.
    has_several_gpus
        Whether to let CUDA take over objects: it does not begin on several GPUs without.
    is_mps_client
        Whether to let it take over objects and connect to its MPS daemon, both until `seal`.
    """
    known = numbers(architecture)
    done = [
        _op(_LOAD, value=_ARCHITECTURE_AT),
        _op(_EQUAL, 1, 0, _ARCHITECTURE[architecture]),
        _op(_RETURN, value=_KILL),
    ]
    done += [_op(_LOAD, value=_NUMBER_AT)]
    if architecture == "x86_64":
        done += [_op(_ANY_BIT, 0, 1, _X32), _op(_RETURN, value=_KILL)]
    done += [_op(_AT_LEAST, 0, 1, NEWEST + 1), _refuse(errno.ENOSYS)]
    bodies = _looked_at(own, landlock)
    if has_several_gpus or is_mps_client:
        bodies["ioctl"] = _ioctl([one for one in _IOCTL_OF_OTHERS if one != _DUP_OBJECT])
    if has_cuda:
        bodies |= _cuda_socket()
    if is_mps_client:  # to what it connects no filter sees, but nobody has been heard who would misuse it
        bodies["connect"] = [_pass()]
    for names, number in ((_REFUSE, errno.EPERM), (_PRETEND, 0), (_MISSING, errno.ENOSYS)):
        bodies |= {name: [_refuse(number)] for name in names if name not in bodies}
    for name, body in bodies.items():
        if name in known:
            done += [_op(_EQUAL, 0, len(body), known[name]), *body]
    return [*done, _pass()]


def is_there() -> bool:
    """Tell whether this system filters calls: asked for a filter at no address, it says that the address is bad."""
    try:
        prctl(_SET_SECCOMP, _FILTER)
    except NoSandbox as refused:
        return refused.errno == errno.EFAULT
    return False


def enter(landlock: int, has_cuda: bool, has_several_gpus: bool, is_mps_client: bool = False) -> None:
    """Filter the calls of this process from now on, and of all that it starts; see `program`.

    Raises
    ------
    NoSandbox
        If this system cannot.
    """
    architecture = machine()
    if not architecture:
        raise NoSandbox("the filter of system calls is written for x86-64 and 64-bit ARM")
    prctl(_SET_NO_NEW_PRIVILEGES, 1)
    _install(program(architecture, os.getpid(), landlock, has_cuda, has_several_gpus, is_mps_client), 0)


def seal(is_mps_client: bool = False) -> None:
    """Let no thread of this process make a socket any more or connect one, CUDA's own included: it has what it needed.

    A client of MPS takes over no more objects either.

    Raises
    ------
    NoSandbox
        If a thread stands outside.
    """
    _install(second_program(machine(), is_mps_client), _ALL_THREADS)


def second_program(architecture: str, is_mps_client: bool) -> Body:
    """Return the filter of `seal`, which is asked beside the first: the stricter of their answers counts."""
    known = numbers(architecture)
    bodies = {name: [_refuse()] for name in ("socket", "bind", "listen", "connect")}
    if is_mps_client:
        bodies["ioctl"] = [_argument(1), _op(_AND, value=_IOCTL_MASK), *_each((_DUP_OBJECT,), _refuse()), _pass()]
    done = [_op(_LOAD, value=_NUMBER_AT)]
    for name, body in bodies.items():
        done += [_op(_EQUAL, 0, len(body), known[name]), *body]
    return [*done, _pass()]


def _install(instructions: Body, flags: int) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *one) for one in instructions))
    header = struct.pack("<H6xQ", len(instructions), ctypes.addressof(code))
    outside = syscall(numbers(machine())["seccomp"], ctypes.c_uint(_SET_FILTER), ctypes.c_uint(flags), header)
    if outside:
        raise NoSandbox(f"thread {outside} stands outside of the filter of system calls")


def _looked_at(own: int, landlock: int) -> dict[str, Body]:
    """Return what happens to calls of which some pass. Each body ends in a return."""
    bodies = {
        "prlimit64": _only(0, (0, own)),
        "ioctl": _ioctl(),
        "fcntl": [_argument(1), *_each(_FCNTL_REFUSED, _refuse()), _pass()],
        "clone": [_argument(0), _op(_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(), _pass()],
        "sendto": [_argument(3), _op(_ANY_BIT, 0, 1, _FAST_OPEN), _refuse(), *_without(4)],
        "sendmsg": [_argument(2), _op(_ANY_BIT, 0, 1, _FAST_OPEN), _refuse(), _pass()],
        "sendmmsg": [_argument(3), _op(_ANY_BIT, 0, 1, _FAST_OPEN), _refuse(), _pass()],
        "socketpair": [
            _argument(0), _op(_EQUAL, 1, 0, _UNIX), _refuse(),
            _argument(1), _op(_AND, value=_SOCKET_TYPE), _op(_EQUAL, 1, 0, _STREAM), _refuse(), _pass(),
        ],
        "setpriority": [_argument(0), _op(_EQUAL, 1, 0, 0), _refuse(), *_only(1, (0,))],
        "ioprio_set": [_argument(0), _op(_EQUAL, 1, 0, 1), _refuse(), *_only(1, (0,))],
        "personality": _only(0, (0, _ANY_PERSONALITY)),
        "move_pages": _only(0, (0,)),
        "get_robust_list": _only(0, (0,)),
    }  # fmt: skip
    for name in _SCHEDULING:  # libraries name their own threads, whose numbers nobody knows here: they are not harmed
        bodies[name] = _only(0, (0, own), _refuse(0))
    if landlock < 6:  # it does not keep signals in
        bodies |= {"kill": _only(0, (own,)), "tgkill": _only(0, (own,))}
    if landlock < 3:  # nor files from being cut while they are opened to be read
        bodies |= {"truncate": [_refuse()], "open": _open(1), "openat": _open(2)}
    return bodies


def _cuda_socket() -> dict[str, Body]:
    """Let CUDA make the socket that it insists on. A name that only seems to be its own keeps a thread of it busy."""
    socket = [_argument(0), _op(_EQUAL, 1, 0, _UNIX), _refuse()]
    socket += [_argument(1), _op(_AND, value=_SOCKET_TYPE), _op(_EQUAL, 1, 0, _WHOLE_MESSAGES), _refuse(), _pass()]
    return {"socket": socket, "bind": [_pass()], "listen": [_pass()]}


def _ioctl(refused: Sequence[int] = _IOCTL_OF_OTHERS) -> Body:
    return [
        _argument(1),
        *_each(_IOCTL_PASSED, _pass()),
        _op(_AT_LEAST, 1, 0, _IOCTL_SMALL), _pass(),
        _op(_AND, value=_IOCTL_MASK), *_each(refused, _refuse()),
        _op(_AND, value=_IOCTL_TYPE_MASK), _op(_EQUAL, 0, 1, _IOCTL_TYPE), _pass(),
        _refuse(errno.ENOTTY),
    ]  # fmt: skip


def _open(flags: int) -> Body:
    """Refuse to cut a file that is not opened to be written."""
    return [
        _argument(flags), _op(_ANY_BIT, 1, 0, _TRUNCATE_FLAG), _pass(),
        _op(_AND, value=_ACCESS_MODE), *_each((_WRITE_ONLY, _READ_WRITE), _pass()), _refuse(),
    ]  # fmt: skip


def _only(argument: int, values: Sequence[int], otherwise: Instruction | None = None) -> Body:
    return [_argument(argument), *_each(values, _pass()), otherwise or _refuse()]


def _without(argument: int) -> Body:
    """Refuse an address."""
    low, high = (_argument(argument, half) for half in (0, 4))
    return [low, _op(_EQUAL, 1, 0, 0), _refuse(), high, _op(_EQUAL, 1, 0, 0), _refuse(), _pass()]


def _each(values: Sequence[int], then: Instruction) -> Body:
    return [one for value in values for one in (_op(_EQUAL, 0, 1, value), then)]


def _argument(number: int, half: int = 0) -> Instruction:
    return _op(_LOAD, value=_ARGUMENTS_AT + 8 * number + half)


def _op(operation: int, if_true: int = 0, if_false: int = 0, value: int = 0) -> Instruction:
    return Instruction(operation, if_true, if_false, value)


def _refuse(number: int = errno.EPERM) -> Instruction:
    return _op(_RETURN, value=_ERRNO | number)


def _pass() -> Instruction:
    return _op(_RETURN, value=_PASS)
