"""Numbers of the system calls that the sandbox looks at, by architecture. A dash: there is none of that name."""

from __future__ import annotations

import platform

__all__ = ["NEWEST", "TABLE", "machine", "numbers"]

#: The newest call of this table's time (``mseal``, Linux 6.10): what is newer does not exist in the sandbox.
NEWEST = 462

_MACHINES = ("x86_64", "aarch64")

#: Name, number on x86-64, number on 64-bit ARM.
TABLE = """
chown                  92    -
fchown                 93   55
lchown                 94    -
fchownat              260   54
setxattr              188    5
lsetxattr             189    6
fsetxattr             190    7
removexattr           197   14
lremovexattr          198   15
fremovexattr          199   16
name_to_handle_at     303  264
open_by_handle_at     304  265
inotify_init          253    -
inotify_init1         294   26
inotify_add_watch     254   27
fanotify_init         300  262
fanotify_mark         301  263
socket                 41  198
connect                42  203
bind                   49  200
listen                 50  201
ptrace                101  117
process_vm_readv      310  270
process_vm_writev     311  271
process_madvise       440  440
process_mrelease      448  448
pidfd_getfd           438  438
pidfd_send_signal     424  424
kcmp                  312  272
tkill                 200  130
rt_sigqueueinfo       129  138
rt_tgsigqueueinfo     297  240
migrate_pages         256  238
setsid                112  157
setpgid               109  154
unshare               272   97
setns                 308  268
mount                 165   40
umount2               166   39
pivot_root            155   41
chroot                161   51
move_mount            429  429
open_tree             428  428
fsopen                430  430
fsconfig              431  431
fsmount               432  432
fspick                433  433
mount_setattr         442  442
statmount             457  457
listmount             458  458
swapon                167  224
swapoff               168  225
reboot                169  142
kexec_load            246  104
kexec_file_load       320  294
init_module           175  105
finit_module          313  273
delete_module         176  106
acct                  163   89
quotactl              179   60
quotactl_fd           443  443
syslog                103  116
sethostname           170  161
setdomainname         171  162
settimeofday          164  170
clock_settime         227  112
adjtimex              159  171
clock_adjtime         305  266
iopl                  172    -
ioperm                173    -
modify_ldt            154    -
vhangup               153   58
lsm_set_self_attr     460  460
add_key               248  217
request_key           249  218
keyctl                250  219
bpf                   321  280
perf_event_open       298  241
userfaultfd           323  282
io_uring_setup        425  425
io_uring_enter        426  426
io_uring_register     427  427
io_setup              206    0
mq_open               240  180
mq_unlink             241  181
mq_timedsend          242  182
mq_timedreceive       243  183
mq_notify             244  184
mq_getsetattr         245  185
shmget                 29  194
shmat                  30  196
shmctl                 31  195
shmdt                  67  197
semget                 64  190
semop                  65  193
semctl                 66  191
semtimedop            220  192
msgget                 68  186
msgsnd                 69  189
msgrcv                 70  188
msgctl                 71  187
chmod                  90    -
fchmod                 91   52
fchmodat              268   53
fchmodat2             452  452
utime                 132    -
utimes                235    -
futimesat             261    -
utimensat             280   88
open                    2    -
openat                257   56
openat2               437  437
truncate               76   45
clone                  56  220
clone3                435  435
socketpair             53  199
sendto                 44  206
sendmsg                46  211
sendmmsg              307  269
kill                   62  129
tgkill                234  131
prlimit64             302  261
sched_setaffinity     203  122
sched_setparam        142  118
sched_setscheduler    144  119
sched_setattr         314  274
setpriority           141  140
ioprio_set            251   30
move_pages            279  239
get_robust_list       274  100
fcntl                  72   25
ioctl                  16   29
capset                126   91
seccomp               317  277
personality           135   92
"""


def machine() -> str:
    """Return this machine's architecture if the sandbox knows it, else an empty string."""
    found = platform.machine()
    return found if found in _MACHINES else ""


def numbers(architecture: str) -> dict[str, int]:
    """Return the numbers of the calls in the table that ``architecture`` has."""
    column = 1 + _MACHINES.index(architecture)
    rows = (line.split() for line in TABLE.split("\n") if line)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
