"""What ``workbench doctor`` looks at: each check tries one thing and says what it found and what to do about it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from warnings import catch_warnings, simplefilter

import zmq
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.provisioning.factory import KernelProvisionerFactory

import workbench
from gpu_backend.transport import curve
from gpu_backend.transport.reaching import TLS_SCHEME
from gpu_backend.wire.control import AskPool, CloseSession, OpenSession, Ticket
from gpu_backend.wire.errors import PoolError, PoolFull, PoolUnreachable
from gpu_backend.wire.views import PoolView
from kernelproxy import settings
from kernelproxy.session.gateway_client import request
from kernelproxy.session.granting import granted
from kernelproxy.session.lease import Lease
from kernelproxy.session.links import as_reached
from kernelproxy.session.signs import Signs
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings
from kernelproxy.stream.session import Session
from workbench import keeping
from workbench.display import bytes_in_words
from workbench.environment import KERNEL_NAME
from workbench.finding import Finding, State
from workbench.local_gpu import probe
from workbench.nodes import findings
from workbench.reachability import Reached, try_port


def diagnose() -> Iterator[Finding]:
    """Check everything between the notebook and the pool, nearest first."""
    yield _python()
    yield _encryption()
    yield _folders()
    yield _jupyterlab()
    yield _kernel()
    yield _compiler()
    yield _local_gpu()
    yield from _node()
    if not settings.config_path().exists():
        yield Finding(
            "pool",
            State.NOTE,
            "none is set up on this machine",
            "`workbench lab` brings its own, `workbench pool up` starts one, `workbench connect` uses another's.",
        )
        return
    yield from _pool()


def _python() -> Finding:
    found = f"{platform.python_version()} with gpu-workbench {workbench.__version__} in {sys.prefix}"
    return Finding("Python", State.OK, found)


def _encryption() -> Finding:
    found = f"ZeroMQ {zmq.zmq_version()}"
    if zmq.has("curve"):
        return Finding("encryption", State.OK, f"{found} with CURVE")
    return Finding(
        "encryption", State.PROBLEM, f"{found} without CURVE", "Install pyzmq from PyPI: its wheels have it."
    )


def _folders() -> Finding:
    for place in keeping.shut():
        return Finding("folders", State.PROBLEM, f"nothing can be written to {place}", keeping.REMEDY)
    kept = ", ".join(str(place) for place in keeping.places())
    return Finding("folders", State.OK, f"settings, pools and kernels can be kept, in {kept}")


def _jupyterlab() -> Finding:
    if importlib.util.find_spec("jupyterlab") is None:
        return Finding(
            "JupyterLab",
            State.NOTE,
            "not in this environment",
            "`pip install 'gpu-workbench[lab]'` adds it; for a Jupyter elsewhere run `workbench install --user`.",
        )
    return Finding("JupyterLab", State.OK, importlib.metadata.version("jupyterlab"))


def _kernel() -> Finding:
    subject = "kernel"
    try:
        with catch_warnings():
            # Of a home that cannot be written IPython warns as it looks for its kernels; that is told by `_folders`.
            simplefilter("ignore", UserWarning)
            spec = KernelSpecManager().get_kernel_spec(KERNEL_NAME)
    except NoSuchKernel:
        again = "Install gpu-workbench again in the environment of your Jupyter, or run `workbench install --user`."
        return Finding(subject, State.PROBLEM, "Jupyter does not see “Remote GPU (CuPy)”", again)
    python = spec.argv[0]
    if not Path(python).is_absolute() or python == sys.executable:
        if not KernelProvisionerFactory.instance(parent=None).is_provisioner_available(spec):
            return Finding(
                subject,
                State.PROBLEM,
                f"its provisioner is not registered, so Jupyter hides {spec.resource_dir}",
                "Install gpu-workbench again: `pip install --force-reinstall --no-deps gpu-workbench`.",
            )
        return Finding(subject, State.OK, f"“{spec.display_name}” in {spec.resource_dir}")
    return Finding(
        subject,
        State.NOTE,
        f"{spec.resource_dir} runs {python}, not this Python",
        "If that is not what you want, run `workbench install --user` here.",
    )


def _compiler() -> Finding:
    path = shutil.which("c++")
    if path:
        return Finding("C++ compiler", State.OK, path)
    return Finding(
        "C++ compiler",
        State.NOTE,
        "none, so a CPU device on this machine cannot run RawKernel and ElementwiseKernel",
        "On Debian: `sudo apt-get install g++`.",
    )


def _local_gpu() -> Finding:
    gpu = probe()
    if gpu.name:
        return Finding("GPU here", State.OK, f"{gpu.name}, {gpu.library}")
    return Finding("GPU here", State.PROBLEM if gpu.is_outdated else State.NOTE, gpu.reason, gpu.remedy)


def _node() -> Iterator[Finding]:
    try:
        # Only where a pool's side is installed can this machine be a node, or a head.
        from workbench import cluster_diagnosis, head_diagnosis, node_diagnosis
    except ModuleNotFoundError:
        return
    yield from head_diagnosis.findings()
    yield from cluster_diagnosis.of_head()
    yield from node_diagnosis.findings()


def _pool() -> Iterator[Finding]:
    try:
        wanted = settings.load()
        curve.load(wanted.key_file)
    except PoolError as error:
        yield Finding("settings", State.PROBLEM, str(error))
        return
    yield Finding("settings", State.OK, f"{settings.config_path()}, key in {wanted.key_file}")
    if wanted.gateway.startswith("tcp://"):
        firewall = "Ask the pool's operator whether the pool is up and lets this machine reach `listen_port`."
        port = [_port("gateway's port", try_port(wanted.gateway, "the pool", firewall))]
    else:
        port = []  # the pool is one of this machine only
    try:
        view = request(wanted, AskPool(0))
    except PoolError as error:
        # What is to be mended first: a port that is shut explains the rest, an open one explains nothing.
        yield from sorted((*port, _no_answer(wanted.gateway, error)), key=_has_no_problem)
        return
    yield from port
    if isinstance(view, PoolView):
        yield _pool_finding(view, wanted.gateway)
        yield from _walls(view)
        yield from _space(view)
        yield from _unseen(view)
        yield from findings(view.nodes, view.version)
    yield from _session(wanted)


def _no_answer(address: str, error: PoolError) -> Finding:
    found = str(error).removesuffix(" `workbench doctor` says more.")  # which is what asks
    if address.startswith("tcp://") or not isinstance(error, PoolUnreachable):
        return Finding("pool", State.PROBLEM, found)
    return Finding("pool", State.PROBLEM, found, "It is this machine's: `workbench pool up` starts it.")


def _has_no_problem(finding: Finding) -> bool:
    return finding.state is not State.PROBLEM


def _port(subject: str, reached: Reached) -> Finding:
    if reached.problem:
        return Finding(subject, State.PROBLEM, reached.problem, reached.remedy)
    return Finding(subject, State.OK, f"{reached.place} is open from here")


def _executors_port(wanted: ClientSettings, ticket: Ticket) -> Iterator[Finding]:
    """Try the way to an executor that machines other than the pool's own go, also from that one."""
    ways = as_reached(ticket, wanted.executor_host).endpoints
    far = next((one for one in ways if one.startswith(TLS_SCHEME)), "")
    if not far or not wanted.gateway.startswith("tcp://"):
        return  # the pool is one of this machine only
    firewall = "Ask the pool's operator to let this machine reach the ports of `executor_ports` in pool.toml."
    yield _port("executor's port", try_port(far, "the executor", firewall))


def _pool_finding(view: PoolView, address: str) -> Finding:
    devices = ", ".join(f"{one.name} ({bytes_in_words(one.total_bytes)})" for one in view.devices)
    found = f"{view.pool} at {address}, you are {view.user}; devices: {devices or 'none'}"
    if not view.devices:
        return Finding("pool", State.PROBLEM, found, "No node has reported to it. Ask the pool's operator.")
    if view.version != workbench.__version__:
        return Finding(
            "pool", State.NOTE, f"{found}; it runs version {view.version}", "Install the same version on both sides."
        )
    return Finding("pool", State.OK, found)


def _walls(view: PoolView) -> Iterator[Finding]:
    """Tell what keeps the users of each node apart."""
    subject = "walls"
    for node in sorted({device.node for device in view.devices}):
        walls = {device.wall for device in view.devices if device.node == node}
        if all(walls):
            yield Finding(subject, State.OK, f"between sessions on {node}: {'; '.join(sorted(walls))}")
        else:
            yield Finding(
                subject,
                State.NOTE,
                f"none between sessions on {node}: whoever has one can read the others' arrays and the pool's keys",
                "Its operator can have it on a Linux from 5.13 on with Landlock and seccomp, x86-64 or 64-bit ARM, by "
                '`sandbox = "required"` in pool.toml. Until then only the operator should have sessions there.',
            )


def _space(view: PoolView) -> Iterator[Finding]:
    """Tell where sessions share a device at a time, and whether they can."""
    for device in view.devices:
        name = f"{device.node}/{device.kind}{device.ordinal}"
        if device.ailment:
            yield Finding(
                "MPS",
                State.PROBLEM,
                f"no session can begin on {name}, shared by {device.space}: {device.ailment}",
                "Its operator corrects that, or takes the device out of `devices_shared_by_mps` in pool.toml and runs "
                "`workbench pool reload`.",
            )
        elif device.space:
            yield Finding("MPS", State.OK, f"{name} is shared by {device.space}: the fault of a session ends all there")


def _unseen(view: PoolView) -> Iterator[Finding]:
    """Tell where nobody sees from outside who uses a device."""
    for device in view.devices:
        if device.unseen:
            yield Finding(
                "measuring",
                State.NOTE,
                f"who uses {device.node}/{device.kind}{device.ordinal} is known by what executors report, and by "
                f"nothing else: {device.unseen}",
                "Whoever computes there beside their turns is not found out. On a GPU, run the pool where NVML names "
                "processes: not in a container with process numbers of its own.",
            )


def _session(wanted: ClientSettings) -> Iterator[Finding]:
    """Take a session, have it answer, and give it back; try its executor's port meanwhile."""
    wishes, signs = Wishes(), Signs()
    try:
        wish, memory_bytes = wishes.wished(wanted)
        ticket = granted(wanted, OpenSession(0, "workbench doctor", "", memory_bytes, wish), signs)
    except PoolFull as full:
        yield Finding("session", State.NOTE, str(full), "A notebook that is started now waits for a place.")
        return
    except PoolError as error:
        yield Finding("session", State.PROBLEM, str(error))
        return
    try:
        found = list(_executors_port(wanted, ticket))
    except BaseException:  # an interrupt too: nobody would come for the session
        request(wanted, CloseSession(0, ticket.session))
        raise
    yield from found
    yield _answered(lambda: Session(Lease(ticket, wanted, wishes, signs), signs))


def _answered(opened: Callable[[], Session]) -> Finding:
    try:
        session = opened()
    except PoolError as error:
        return Finding("session", State.PROBLEM, str(error))
    try:
        memory = session.memory()
        device = session.device
    except PoolError as error:
        return Finding("session", State.PROBLEM, str(error))
    finally:
        session.close(release=True)
    limit = bytes_in_words(memory["limit_bytes"] or memory["total_bytes"])
    return Finding("session", State.OK, f"granted and answered: {device['name']}, {device['library']}, up to {limit}")


def to_dict(finding: Finding) -> dict[str, str]:
    """Return ``finding`` as plain data."""
    return {
        "subject": finding.subject,
        "state": finding.state.value,
        "found": finding.found,
        "remedy": finding.remedy,
    }
