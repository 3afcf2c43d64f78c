"""A machine that joins a pool whose head is elsewhere: what its operator does there. Its keeper runs the agent."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep

import msgspec

from gpu_backend.engine.detached import ProcessId, end, read_identity, spawn, write_identity
from gpu_backend.node import launcher
from gpu_backend.pool import clusters, invitation
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.commands import end_processes
from gpu_backend.pool.joined import (
    OF_A_NODE,
    Joined,
    instructions,
    membership,
    read_settings,
    refuse_unheard_here,
    settings_file,
    tell,
)
from gpu_backend.pool.offering import refuse_no_gpu
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState, alone
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.control import FromGateway
from gpu_backend.wire.errors import ForeignServer, NotAuthorized, PoolError, PoolRefusal, PoolUnreachable
from gpu_backend.wire.joining import AskCluster, AskNode, Join, Leave, Question
from gpu_backend.wire.views import Membership

#: How long a node may take until its head has heard of a device of it, seconds, by the pool's engine.
_UP_SECONDS = {"local": 60.0, "ray": 180.0}
_ASK_SECONDS = 5.0
_GRACE_SECONDS = 3.0
#: How long sessions may take to end once the head has told the agent, seconds.
_LEAVE_SECONDS = 10.0
#: After this long without an answer of the head, whoever starts the node does not wait for it, seconds.
_AWAY_SECONDS = 5.0


def join(
    state: PoolState, address: str, token: str, given: Mapping[str, object], owner: ProcessId | None = None
) -> Membership:
    """Join the pool whose head is at ``address`` with the token of an invitation, and start the agent: see `enrol`.

    ``owner`` is a process that the node must not outlive.
    """
    enrol(state, address, token, given)
    return up(state, owner)


def enrol(state: PoolState, address: str, token: str, given: Mapping[str, object]) -> Membership:
    """Have this machine become a member of the pool whose head is at ``address``, and start nothing yet.

    Parameters
    ----------
    state
        Where this machine keeps its things as a node.
    address
        Where the head hears machines, "tcp://HOST:PORT".
    token
        What ``workbench node invite`` showed there.
    given
        Settings of this machine, by their names in `OF_A_NODE`.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or the token was used or is too old.
    PoolUnreachable
        If nobody answers there.
    """
    shown = invitation.read(token)
    settings = pool_settings.made_of(dict(given))
    refuse_unheard_here(settings)
    state.make()
    with alone(state.root):
        _refuse_running(state)
        keys = curve.load_or_generate(state.agent_key)
        member = _seen(Door(address, shown.server_key, shown.keys), Join(0, keys.public.decode()))
        if member.engine == "ray":
            clusters.note(state, _cluster(Door(address, shown.server_key, keys)), settings)
        known = Joined(member.node.name, member.pool, address, shown.server_key.decode(), member.engine)
        write_private(state.root / "joined.json", msgspec.json.encode(known))
        write_private(settings_file(state), pool_settings.render(settings, OF_A_NODE).encode())
    return member


def up(state: PoolState, owner: ProcessId | None = None) -> Membership:
    """Start the agent of this machine, which has joined a pool before; return how the pool sees it then.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or the agent does not come up.
    PoolUnreachable
        If this machine has joined no pool; or if its head does not answer, which the agent goes on trying.
    """
    settings = read_settings(state)
    if membership(state).engine == "local":
        refuse_no_gpu(settings, state.node)
    with alone(state.root):
        if _renew_cluster(state, settings):
            _end_keeper(state)  # which knows the one before
        is_new = tell(state, instructions(state, settings))
        agent = read_identity(state.process_file("agent"))
        if is_new and agent is not None:
            end(agent, settings.stop_seconds)  # the next one finds its executors
        state.problem_note.unlink(missing_ok=True)  # of another start
        if read_identity(state.process_file("supervisor")) is not None:
            return _wait_until_up(state)
        command = [sys.executable, "-m", "gpu_backend.pool", "keep", "--state", str(state.root)]
        if owner is not None:
            command += ["--owner", f"{owner.pid}:{owner.start_time}"]
        try:
            write_identity(state.process_file("supervisor"), spawn(command, state.logs / "keeper.log", state.root))
            return _wait_until_up(state)
        except PoolUnreachable:  # the head may come up later than its machines, after a power cut say
            raise
        except BaseException:  # Ctrl-C as well: what was begun here is not left half up
            end_processes(state)
            raise


def make_ready(state: PoolState) -> list[str]:
    """Make everything ready for a node that is kept in the foreground, and return the command that does.

    Raises
    ------
    PoolRefusal
        If a setting is wrong, or the node is up.
    PoolUnreachable
        If this machine has joined no pool.
    """
    settings = read_settings(state)
    with alone(state.root):
        if (keeper := read_identity(state.process_file("supervisor"))) is not None:
            raise PoolRefusal(f"This node is up already: process {keeper.pid} keeps it. `workbench node down` ends it.")
        _renew_cluster(state, settings)
        tell(state, instructions(state, settings))
    return [sys.executable, "-m", "gpu_backend.pool", "keep", "--foreground", "--state", str(state.root)]


def down(state: PoolState, is_at_once: bool = False) -> bool:
    """End the agent and all executors of this machine. It stays a member of its pool. Idempotent.

    The pool's head is told first, and its notebooks by it. Return whether it could be: without, the head notices by
    itself.

    Raises
    ------
    PoolRefusal
        If it has sessions, unless they are to end ``is_at_once``; or if a process cannot be ended.
    """
    known = membership(state)
    with alone(state.root):
        sessions = len(serving(state))
        if sessions and not is_at_once:
            raise PoolRefusal(
                f"{sessions} sessions run on this machine. Run `workbench node drain {known.node}` on the pool's head "
                "and come back when they have ended, or end them with --now."
            )
        try:
            is_told = _leave(state)
        finally:  # Ctrl-C as well: an agent that was told to start no more is of no use
            left = end_processes(state)
    if left:
        raise PoolRefusal(f"The node is not down: {', '.join(map(str, left))} cannot be ended. Run this again.")
    return is_told


def _leave(state: PoolState) -> bool:
    """Tell the head that this machine goes, and let the sessions here hear of it; return whether the head heard."""
    is_told, again, deadline = False, 0.0, monotonic() + _LEAVE_SECONDS
    try:
        while not is_told or (_is_serving(state) and monotonic() <= deadline):
            if monotonic() > again:  # once more: its agent may have been heard anew meanwhile, by another way
                _seen(_door(state), Leave(0))
                is_told, again = True, monotonic() + 1.0
            sleep(0.02)
    except PoolError:
        pass  # it has heard before, or finds out
    return is_told


def _is_serving(state: PoolState) -> bool:
    return bool(serving(state)) and read_identity(state.process_file("agent")) is not None


def serving(state: PoolState) -> list[Path]:
    """Return the directories of the executors here that hold a session: not of those that still end after theirs."""
    if not state.runtime.is_dir():
        return []
    return [one for one in launcher.directories(str(state.runtime)) if launcher.has_session(one)]


def seen(state: PoolState) -> Membership:
    """Ask the pool's head how it sees this machine.

    Raises
    ------
    NotAuthorized
        If this machine was removed from the pool.
    PoolUnreachable
        If it has joined none, or nobody answers there.
    """
    return _seen(_door(state), AskNode(0))


def cluster(state: PoolState) -> Cluster:
    """Ask the pool's head where its Ray cluster is. Raises as `seen` does."""
    return _cluster(_door(state))


def _renew_cluster(state: PoolState, settings: PoolSettings) -> bool:
    """Write down where the cluster of a pool on Ray is now; tell whether it is another than before."""
    if membership(state).engine != "ray":
        return False
    try:
        told = cluster(state)
    except PoolUnreachable:  # the head may come up later than its machines
        clusters.noted(state)
        return False
    return clusters.note(state, told, settings)


def _end_keeper(state: PoolState) -> None:
    keeper = read_identity(state.process_file("supervisor"))
    if keeper is not None:
        end(keeper, _GRACE_SECONDS)
    clusters.end(state, _GRACE_SECONDS)


def _door(state: PoolState) -> Door:
    known = membership(state)
    return Door(known.gateway, known.server_key.encode(), curve.load(state.agent_key))


def _seen(door: Door, question: Question) -> Membership:
    answer = _asked(door, question)
    if not isinstance(answer, Membership):
        raise _foreign(answer)
    return answer


def _cluster(door: Door) -> Cluster:
    answer = _asked(door, AskCluster(0))
    if not isinstance(answer, Cluster):
        raise _foreign(answer)
    return answer


def _foreign(answer: FromGateway) -> PoolRefusal:
    return PoolRefusal(f"The pool's head answered {type(answer).__name__}. Is its version the same as ours?")


def _asked(door: Door, question: Question) -> FromGateway:
    try:
        return ask(door, question, _ASK_SECONDS)
    except ForeignServer:
        raise ForeignServer(
            f"What answers at {door.endpoint} is not the pool that made the token. Compare the address with what "
            "`workbench node invite` shows on the pool's head."
        ) from None
    except NotAuthorized as error:
        raise NotAuthorized(_turned_away(door.endpoint, question, str(error))) from None
    except PoolUnreachable as error:
        raise PoolUnreachable(
            f"{error} It must be the address and the port on which the pool's head hears machines (nodes_host and "
            "nodes_port in its pool.toml), and no firewall may be between."
        ) from None


def _turned_away(endpoint: str, question: Question, said: str) -> str:
    if not isinstance(question, Join):
        return (
            f"The pool's head at {endpoint} does not know this machine: it was removed there, or joined anew with "
            "another key. Run `workbench node invite` there, and `workbench node join` here."
        )
    if "turned us away" not in said:
        return said
    return (
        f"The pool's head at {endpoint} does not know this token: it is too old, or another one was made since for the "
        "same node. Run `workbench node invite` there for another."
    )


def _refuse_running(state: PoolState) -> None:
    if read_identity(state.process_file("supervisor")) is None:
        return
    known = membership(state)
    raise PoolRefusal(
        f"This machine is the node {known.node} of the pool {known.pool} already. To join anew, run "
        "`workbench node down` first."
    )


def _wait_until_up(state: PoolState) -> Membership:
    begun = monotonic()
    problem = ""
    limit = _UP_SECONDS[membership(state).engine]
    while (seconds := monotonic() - begun) < limit:
        try:
            member = seen(state)
            is_heard = member.node.silent_seconds < monotonic() - begun  # and not an agent that ran before
            if is_heard and member.node.devices and member.node.state in ("up", "draining"):
                return member
            problem = "Its head has heard of no device here yet."
        except NotAuthorized:
            raise
        except PoolUnreachable as error:
            if seconds > _AWAY_SECONDS:
                raise PoolUnreachable(f"The node is up, and goes on trying to reach its pool. {error}") from None
        except PoolError as error:
            problem = str(error)
        if state.problem_note.exists():
            raise PoolRefusal(f"The node did not come up. {state.problem_note.read_text()}")
        if read_identity(state.process_file("supervisor")) is None:
            problem = "Its keeper has ended."
            break
        sleep(0.05)
    raise PoolRefusal(f"The node did not come up. {problem} Its logs are in {state.logs}.")
