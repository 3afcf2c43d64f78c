"""``workbench lab``: a pool of this machine's own and JupyterLab on it, in the foreground; both end together.

This process becomes JupyterLab once the pool is up, so signals, terminal and exit status are JupyterLab's. The pool
is told to end with this process, however that ends.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NoReturn

from gpu_backend.engine.detached import read_identity
from gpu_backend.opstream.devices import MOST_DEVICES
from gpu_backend.pool import commands as pool
from gpu_backend.pool.own_root import default_root
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.errors import quoted
from gpu_backend.wire.views import DeviceView
from kernelproxy.session.wishes import DEVICES_VARIABLE
from kernelproxy.settings import CONFIG_VARIABLE
from workbench import keeping
from workbench.display import Facts, Section, bytes_in_words
from workbench.examples import copy_examples
from workbench.terminal import add_json_option, complain, say, show

_OPENED = "examples"
_LAST_PORT = 65_535
_KINDS = ("auto", "cuda", "cpu")
#: What JupyterLab reads beside the user's own: without the part that asks whether to fetch news, which it does even
#: where there is no address to fetch them from.
JUPYTER_CONFIG = Path(__file__).parents[1] / "jupyter_config"
#: Nothing is asked of other machines, and what server and kernels say to each other is encrypted.
_QUIET = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--MappingKernelManager.transport_encryption=auto",
)


def configure(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Start a pool on this machine (its GPU, else the CPU) and JupyterLab on it. Both end together."
    parser.add_argument(
        "--root-dir",
        type=Path,
        metavar="DIR",
        help="the notebooks' folder; without it ~/gpu-workbench, with a copy of the examples",
    )
    parser.add_argument(
        "--devices", "--device", type=_devices, default="auto", metavar="{auto,cuda,cpu,NUMBER}",
        help="what the pool computes on, or how many devices each notebook has",
    )  # fmt: skip
    parser.add_argument("--port", type=_port, help="JupyterLab's port; by default 8888 or the next free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("jupyter", nargs=REMAINDER, metavar="-- OPTION ...", help="further options for JupyterLab")
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def _devices(said: str) -> str:
    if said not in _KINDS and not (said.isdecimal() and 1 <= int(said) <= MOST_DEVICES):
        raise ArgumentTypeError(
            f"{quoted(said)} is none of {', '.join(_KINDS)}, and no number from 1 to {MOST_DEVICES}"
        )
    return said


def _port(said: str) -> int:
    if not (said.isdecimal() and 1 <= int(said) <= _LAST_PORT):
        raise ArgumentTypeError(f"{quoted(said)} is no port: a whole number from 1 to {_LAST_PORT}")
    return int(said)


def execute(arguments: Namespace) -> int:
    """Start the pool and become JupyterLab. Returns only if there is no JupyterLab."""
    if importlib.util.find_spec("jupyterlab") is not None:
        open_lab(arguments)
    complain("JupyterLab is not installed here. Run `pip install 'gpu-workbench[lab]'`.")
    return 1


def open_lab(arguments: Namespace) -> NoReturn:
    """Start the pool, say where everything is, and become JupyterLab."""
    keeping.need()
    root, opened = root_directory(arguments.root_dir)
    if not arguments.json:
        say("Starting a pool on this machine ...")
    state, lock = take_place(default_root().parent)
    config = start_pool(state, arguments.devices)
    started = Started(root, config, state.logs, pool.status(state).devices)
    show(arguments, started, started.to_dict())
    become_jupyterlab(jupyter_options(arguments, root, opened), config, lock)


@dataclass(frozen=True, repr=False)
class Started(Facts):
    """What `workbench lab` has set up."""

    root_dir: Path
    config: Path
    logs: Path
    devices: Sequence[DeviceView]

    title = "Pool on this machine"

    def sections(self) -> tuple[Section, ...]:
        """Return device and folders."""
        rows = [("device", f"{one.name}, {bytes_in_words(one.total_bytes)}") for one in self.devices]
        folders = (("notebooks", str(self.root_dir)), ("logs", str(self.logs)))
        return Section("Computes on", tuple(rows)), Section("Folders", folders)

    def to_dict(self) -> dict[str, object]:
        """Return the same for programs; ``config`` is what a client of this pool needs."""
        return {
            "pid": os.getpid(),
            "root_dir": str(self.root_dir),
            "config": str(self.config),
            "logs": str(self.logs),
            "devices": [{"kind": one.kind, "name": one.name, "total_bytes": one.total_bytes} for one in self.devices],
        }


def root_directory(wanted: Path | None) -> tuple[Path, str]:
    """Return the folder that JupyterLab shows, and the one below it that it opens first."""
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        return wanted.resolve(), ""
    root = Path.home() / "gpu-workbench"
    root.mkdir(exist_ok=True)
    return root, _OPENED if copy_examples(root / _OPENED) else ""


def take_place(base: Path) -> tuple[PoolState, int]:
    """Return a pool's place that no other `workbench lab` of this user holds, and the lock that holds it."""
    for number in count(1):
        state = at(base / f"lab-{number}")
        state.make()
        lock = os.open(state.root / "lab.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return state, lock
    raise AssertionError("there are always more places")


def start_pool(state: PoolState, devices: str) -> Path:
    """Start the pool of this process, and return the settings file for its clients.

    Where ``devices`` is a number, it is of each notebook's: a CPU offers as many.
    """
    if read_identity(state.process_file("supervisor")) is not None:  # of a `workbench lab` that has just ended
        pool.down(state)
    # What was asked for the last time does not count.
    state.settings_file.unlink(missing_ok=True)
    if not devices.isdecimal():
        return pool.embedded(state, PoolSettings.model_validate({"name": "this machine", "devices": devices}))
    os.environ[DEVICES_VARIABLE] = devices
    return pool.embedded(state, PoolSettings(name="this machine", cpu_devices=int(devices)))


def jupyter_options(arguments: Namespace, root: Path, opened: str) -> list[str]:
    """Return JupyterLab's command line."""
    options = [f"--ServerApp.root_dir={root}", *_QUIET]
    if opened:
        options.append(f"--LabApp.default_url=/lab/tree/{opened}")
    if arguments.port is not None:
        options += [f"--ServerApp.port={arguments.port}", "--ServerApp.port_retries=0"]
    if arguments.no_browser:
        options.append("--no-browser")
    if os.geteuid() == 0:  # whoever works as root has chosen so, and JupyterLab would refuse
        options.append("--allow-root")
    extra: list[str] = arguments.jupyter
    return options + (extra[1:] if extra[:1] == ["--"] else extra)


def become_jupyterlab(options: Sequence[str], config: Path, lock: int) -> NoReturn:
    """Replace this process by JupyterLab. Its pid, which the pool watches, and the lock on the pool's place stay."""
    os.set_inheritable(lock, True)
    os.environ[CONFIG_VARIABLE] = str(config)
    paths = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = f"{JUPYTER_CONFIG}{os.pathsep}{paths}" if paths else str(JUPYTER_CONFIG)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])
