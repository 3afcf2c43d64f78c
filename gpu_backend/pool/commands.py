"""What an operator does with a pool: up, down, status. The command line and `workbench lab` call these."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from gpu_backend.engine.detached import ProcessId, end, end_all, read_identity, spawn, wait_gone, write_identity
from gpu_backend.node import arbiter, launcher, mps_processes
from gpu_backend.node import settings as node_settings
from gpu_backend.pool import clusters, running
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.hearing import refuse_unheard
from gpu_backend.pool.offering import refuse_no_gpu
from gpu_backend.pool.running import Running
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import node_name, prepare
from gpu_backend.pool.state import REPLACED, PoolState, alone
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.control import AskPool, StopPool
from gpu_backend.wire.errors import PoolError, PoolRefusal, PoolUnreachable
from gpu_backend.wire.views import PoolView

log = logging.getLogger("pool")

#: How long a pool may take until it has a device to offer, seconds, by its engine: the CUDA driver may sleep, and Ray
#: gives up a start that takes half a minute on a busy machine, and is started again.
_UP_SECONDS = {"local": 60.0, "ray": 180.0}
_GRACE_SECONDS = 3.0
#: A supervisor in the foreground ends gateway, Ray and agent before itself, each within the time above.
_SUPERVISOR_GRACE_SECONDS = 10.0
#: What is so after a supervisor was killed, and what to do then.
UNSUPERVISED = "The pool is up and nobody supervises it"
SUPERVISE = "Start a supervisor, which keeps the gateway and its sessions: `workbench pool up`, or its service."


def up(state: PoolState, settings: PoolSettings | None = None, owner: ProcessId | None = None) -> PoolView:
    """Start the pool and return it as its operator sees it. A pool that is up already is left as it is.

    Parameters
    ----------
    state
        Where the pool keeps its things.
    settings
        For a pool that has no ``pool.toml`` yet; else that file counts.
    owner
        A process that the pool must not outlive.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or the pool does not come up; the message quotes its log.
    """
    if settings is None or state.settings_file.exists():
        settings = pool_settings.read(state.settings_file)
    is_new = not state.root.exists()
    state.make()
    with alone(state.root):  # of several at once, one starts the pool, and the others find it up
        if _supervisor(state) is not None:
            prepare(state, settings)
            state.problem_note.unlink(missing_ok=True)  # of another start: the next one says whether it fails too
            return _wait_until_up(state)
        # One whose supervisor was killed has its ports, and the sessions are its: the next supervisor adopts it.
        gateway = read_identity(state.process_file("gateway"))
        try:
            refuse_unheard(settings, with_port=True, gateway=gateway)
            clusters.refuse_unusable(state, settings)
        except PoolRefusal:
            if is_new:  # else whoever asks again would be told that the pool has settings
                shutil.rmtree(state.root)
                shutil.rmtree(state.runtime)
            raise
        prepare(state, settings)
        return _begin(state, owner, gateway)


def _begin(state: PoolState, owner: ProcessId | None, gateway: ProcessId | None) -> PoolView:
    """Start a supervisor, and return the pool once it is up; it may have a ``gateway`` already."""
    state.problem_note.unlink(missing_ok=True)
    command = [sys.executable, "-m", "gpu_backend.pool", "supervise", "--state", str(state.root)]
    if owner is not None:
        command += ["--owner", f"{owner.pid}:{owner.start_time}"]
    try:
        write_identity(state.process_file("supervisor"), spawn(command, state.logs / "supervisor.log", state.root))
        return _wait_until_up(state)
    except BaseException:  # Ctrl-C as well: what was begun here is not left half up
        if gateway is None:
            end_processes(state)
        else:  # the pool that was there stays, with its sessions
            end_servants(state, ("supervisor",))
        raise


def down(state: PoolState) -> None:
    """End the pool: sessions, executors, agent, gateway, supervisor. Idempotent; leaves no process behind.

    Raises
    ------
    PoolRefusal
        If one of its processes cannot be ended.
    """
    if not state.root.is_dir():
        return
    with alone(state.root):
        with suppress(PoolError):  # what cannot be asked to end is ended below
            if read_identity(state.process_file("gateway")) is not None:
                ask(operator_door(state), StopPool(0), _GRACE_SECONDS)
                supervisor = read_identity(state.process_file("supervisor"))
                settings = pool_settings.read(state.settings_file)
                if supervisor is not None:
                    wait_gone(supervisor, settings.stop_seconds + 4 * _GRACE_SECONDS)
        left = end_processes(state)
    if left:
        raise PoolRefusal(
            f"The pool is not down: {', '.join(map(str, left))} cannot be ended. See what keeps them (`ps -f -p "
            f"{','.join(str(one.identity.pid) for one in left)}`), then run `workbench pool down` again."
        )


def reload(state: PoolState) -> PoolView:
    """Have the settings in ``pool.toml`` count from now on, and return the pool. No session ends.

    Gateway and agent are started anew; executors, which serve their notebooks without them, are found again. Executors
    that are kept ready and serve nobody are replaced.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or cannot change while there are sessions, or if nobody supervises the pool; nothing has
        changed then. Or if the pool does not come up again.
    PoolUnreachable
        If the pool is not up.
    """
    state.need()
    if not is_supervised(state):
        status(state)  # says that it is not up
        raise PoolRefusal(
            f"{UNSUPERVISED}, so a gateway that ends is not started again. {SUPERVISE} Nothing was changed."
        )
    settings = pool_settings.read(state.settings_file)
    with alone(state.root):
        gateway = read_identity(state.process_file("gateway"))
        refuse_unheard(settings, with_port=True, gateway=gateway)
        clusters.refuse_other_engine(state, settings)
        clusters.refuse_unusable(state, settings)
        _refuse_other_devices(state, settings)
        if settings.engine == "local":  # else its agents are on the machines of a cluster
            refuse_no_gpu(settings, state.node)
        prepare(state, settings)
        # Whoever is heard by the new gateway has the new settings.
        end_servants(state, ("agent",))
        state.problem_note.unlink(missing_ok=True)  # of an agent that had the former ones; the next writes its own
        if gateway is not None:
            write_identity(state.process_file(REPLACED), gateway)  # its supervisor starts the next one at once
        end_servants(state, ("gateway",))
        end_idle_executors(state)
        return _wait_until_up(state)


def _refuse_other_devices(state: PoolState, settings: PoolSettings) -> None:
    if not (state.node / node_settings.CONFIG).exists():
        return  # a gateway alone, whose machines are all elsewhere
    before = node_settings.read(state.node)
    has_sessions = any(map(launcher.has_session, launcher.directories(str(state.runtime))))
    if has_sessions and (settings.devices, settings.cpu_devices) != (before.devices, before.cpu_devices):
        raise PoolRefusal(
            "What the pool offers (devices, cpu_devices) cannot change while there are sessions: they are on those "
            f"that it offers now. Change it back in {state.settings_file}, or run `workbench pool down` and `up`."
        )


def make_ready(state: PoolState, settings: PoolSettings | None = None) -> list[str]:
    """Make everything ready for a pool that is kept in the foreground, and return the command that does.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or the pool is up.
    """
    if settings is None or state.settings_file.exists():
        settings = pool_settings.read(state.settings_file)
    state.make()
    with alone(state.root):
        if (keeper := _supervisor(state)) is not None:
            raise PoolRefusal(
                f"The pool in {state.root} is up already: process {keeper.pid} keeps it. `workbench pool reload` has "
                "changed settings count; `workbench pool down` ends it with all its sessions."
            )
        # A gateway whose supervisor was killed has the port, and is replaced.
        gateway = read_identity(state.process_file("gateway"))
        refuse_unheard(settings, with_port=True, gateway=gateway, with_metrics=False)
        clusters.refuse_unusable(state, settings)
        prepare(state, settings)
    return [sys.executable, "-m", "gpu_backend.pool", "supervise", "--foreground", "--state", str(state.root)]


def end_servants(state: PoolState, roles: Sequence[str] = ("gateway", "ray", "agent")) -> None:
    """End gateway, Ray and agent: all but the executors, which serve their notebooks without them."""
    for role in roles:
        if role == "ray":
            clusters.end(state, _GRACE_SECONDS)
        if (process := read_identity(state.process_file(role))) is not None:
            end(process, _GRACE_SECONDS)


def end_idle_executors(state: PoolState) -> None:
    """End the executors that are kept ready and serve nobody."""
    idle = [one for one in launcher.directories(str(state.runtime)) if launcher.assignment_in(one) is None]
    end_all([process for one in idle if (process := launcher.process_in(one)) is not None], _GRACE_SECONDS)


def end_processes(state: PoolState, roles: Sequence[str] = running.ROLES) -> list[Running]:
    """End the processes of the pool that have these roles; return those that run on."""
    noted = {role: read_identity(state.process_file(role)) for role in ("supervisor", "gateway", "agent")}
    for role in roles:  # in an order in which nobody starts anew what was just ended
        if (process := noted.get(role)) is not None:
            end(process, _SUPERVISOR_GRACE_SECONDS if role == "supervisor" else _GRACE_SECONDS)
        end_all([one.identity for one in running.processes(state) if one.role == role], _GRACE_SECONDS)
        if role == "executor":
            end_executors(state)
        elif role == "arbiter":
            end_all(arbiter.processes(state.runtime), _GRACE_SECONDS)
        elif role == "MPS keeper":
            mps_processes.sweep_all(state.runtime)
    left = [one for one in running.processes(state) if one.role in roles]
    if not left:
        shutil.rmtree(state.runtime, ignore_errors=True)
    return left


def end_executors(state: PoolState) -> None:
    """End every executor that is left, and remove what they left behind."""
    if not state.runtime.is_dir():
        return
    directories = list(launcher.directories(str(state.runtime)))
    noted = [identity for directory in directories if (identity := launcher.process_in(directory)) is not None]
    end_all(noted, _GRACE_SECONDS)
    for directory in directories:
        if launcher.process_in(directory) is None:
            launcher.sweep(directory, None)


def _supervisor(state: PoolState) -> ProcessId | None:
    """Return the pool's supervisor if it runs; where the note that names it is lost, it is noted again."""
    noted = read_identity(state.process_file("supervisor"))
    if noted is not None:
        return noted
    found = next((one.identity for one in running.processes(state) if one.role == "supervisor"), None)
    if found is not None:
        write_identity(state.process_file("supervisor"), found)
    return found


def is_supervised(state: PoolState) -> bool:
    """Tell whether the pool's gateway is started again when it ends: its supervisor may have been killed."""
    return _supervisor(state) is not None


def status(state: PoolState) -> PoolView:
    """Return the pool as its operator sees it.

    Raises
    ------
    PoolUnreachable
        If it is not up.
    """
    state.need()
    if all(read_identity(state.process_file(name)) is None for name in ("supervisor", "gateway")):
        raise PoolUnreachable(f"The pool in {state.root} is not up. Run `workbench pool up` or `workbench lab`.")
    answer = ask(operator_door(state), AskPool(0))
    if not isinstance(answer, PoolView):
        raise PoolRefusal(f"The pool answered {type(answer).__name__} where its view was asked for.")
    return answer


def absent(state: PoolState, view: PoolView) -> list[int]:
    """Return the numbers of devices for which the pool's settings say something, and which this machine has not."""
    here = {one.ordinal for one in view.devices if one.node == node_name(state)}
    numbered = pool_settings.read(state.settings_file).numbered
    return [number for number in numbered if number not in here] if here else []  # unheard, or none of its devices here


def operator_door(state: PoolState) -> Door:
    """Return the way in for the pool's operator.

    Raises
    ------
    PoolUnreachable
        If there never was a pool.
    """
    state.need()
    gateway = curve.load(state.gateway_key)
    return Door(state.client_endpoint, gateway.public, curve.load(state.operator_key))


def write_client_file(state: PoolState, path: Path) -> Path:
    """Write the settings of a client on this machine that uses the operator's own key, and return ``path``."""
    door = operator_door(state)
    fields = {"gateway": door.endpoint, "server_key": door.server_key.decode(), "key_file": str(state.operator_key)}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    write_private(path, text.encode())
    return path


def embedded(state: PoolState, settings: PoolSettings | None = None) -> Path:
    """Have a pool of one's own on this machine for as long as this process lives; return its client settings file.

    Everything is on loopback and private socket files. Called by ``workbench lab``, which sets the file's path in
    the environment of what it starts, and calls `down` when it is done; if it is killed, the pool ends by itself.
    """
    up(state, settings, ProcessId.mine())
    return write_client_file(state, state.root / "client.toml")


def _wait_until_up(state: PoolState) -> PoolView:
    begun, seconds = monotonic(), _UP_SECONDS[pool_settings.read(state.settings_file).engine]
    problem = ""
    while monotonic() < begun + seconds:
        try:
            view = status(state)
            if view.devices:
                return view
            problem = "Its agent has not reported a device yet."
        except PoolError as error:
            problem = str(error)
        if state.problem_note.exists():
            raise PoolRefusal(f"The pool did not come up. {state.problem_note.read_text()}")
        if read_identity(state.process_file("supervisor")) is None:
            problem = "Its supervisor has ended."
            break
        sleep(0.02)
    logs = "; ".join(
        f"{name}: {line}" for name in ("supervisor", "gateway", "ray", "agent") if (line := _tail(state, name))
    )
    raise PoolRefusal(f"The pool did not come up. {problem} Its logs in {state.logs} end: {logs or 'empty'}.")


def _tail(state: PoolState, name: str) -> str:
    try:
        lines = (state.logs / f"{name}.log").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[-300:] if lines else ""
