"""Attacks on the ways to an executor and to the gateway: strangers, copies, reflections, others in between, noise."""

from __future__ import annotations

import os
import random
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import msgspec
import pytest

from gpu_backend.executor.config import CERTIFICATE, OWN
from gpu_backend.node.certificate import make_certificate
from gpu_backend.pool import people
from gpu_backend.transport import asking, local, secret_proof
from gpu_backend.transport.asking import Door, ask
from gpu_backend.transport.private_files import write_private
from gpu_backend.transport.reaching import Expected, ProofFailed, reach_far, reach_local
from gpu_backend.transport.secret_proof import ANSWER_BYTES, OPENING_BYTES, REFUSAL, VERDICT_BYTES
from gpu_backend.wire import control
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import PoolUnreachable
from gpu_backend.wire.views import PoolView
from kernelproxy.session.handover import TICKET_VARIABLE
from tests.faults.conftest import Faulty
from tests.faults.cutter import flipping
from tests.faults.notebook import Notebook
from tests.integration.conftest import MakePool, make_pool
from tests.integration.notebook_pool import STATE_SECONDS
from tests.spare_ports import spare_port
from tests.unit.transport.ways import SECRET, Ways, received, server_context

__all__ = ["make_pool"]

NOBODY = 65534


@pytest.fixture(params=["local", "socket", "tls", "lanes"])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    made = Ways(request.param)
    yield made
    made.close()


@pytest.fixture
def near_ways() -> Iterator[Ways]:
    made = Ways("local")
    yield made
    made.close()


# --- the proof --------------------------------------------------------------------------------------------------------


def answered(ways: Ways, answer: bytes) -> bytes:
    """Return what the executor says to a bare ``answer``."""
    stranger = ways.stranger()
    heard(ways, stranger, OPENING_BYTES)
    stranger.sendall(answer)
    return heard(ways, stranger, VERDICT_BYTES)


def heard(ways: Ways, stranger: socket.socket, size: int) -> bytes:
    """Return what the executor says to a ``stranger``, whom it lets in at no time."""
    told = b""
    stranger.setblocking(False)
    until = monotonic() + STATE_SECONDS
    while len(told) < size and monotonic() < until:
        assert not ways.entrance.admitted()
        try:
            told += stranger.recv(size - len(told))
        except BlockingIOError:
            continue
    stranger.setblocking(True)
    return told


def test_an_answer_that_was_overheard_is_of_no_use(near_ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    overheard: list[bytes] = []
    verdict = secret_proof.Listening.verdict

    def overhear(self: secret_proof.Listening, answer: bytes) -> bytes:
        overheard.append(answer)
        return verdict(self, answer)

    monkeypatch.setattr(secret_proof.Listening, "verdict", overhear)
    near_ways.pair()
    assert answered(near_ways, overheard[0]) == REFUSAL


def test_what_the_executor_itself_says_is_no_answer(near_ways: Ways) -> None:
    opening = heard(near_ways, near_ways.stranger(), OPENING_BYTES)
    assert answered(near_ways, (opening + opening)[:ANSWER_BYTES]) == REFUSAL
    assert answered(near_ways, bytes(ANSWER_BYTES)) == REFUSAL


# --- others of the same host ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_another_account_has_the_fast_way_and_only_with_the_secret(near_ways: Ways) -> None:
    far: list[object] = []
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            try:
                reach_local(near_ways.endpoint, Expected(bytes(32), ""), STATE_SECONDS)
            except ProofFailed:
                near = reach_local(near_ways.endpoint, near_ways.expected, STATE_SECONDS)
                near.send([b"head", bytes(1 << 20)])
                status = 0 if bytes(received(near, near)[1]) == bytes(1 << 20) else 2
        finally:
            os._exit(status)
    peer = near_ways.admit()
    message = received(peer, peer)
    far.append(message)
    assert hasattr(message[1], "obj")
    assert not isinstance(message[1].obj, bytes)  # it passed through shared memory
    process = peer.take_process()
    assert process is not None
    assert not process.has_ended()
    peer.send([b"back", message[1]])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.has_ended()
    process.close()


def test_a_name_of_another_host_is_not_tried(near_ways: Ways) -> None:
    """There, anybody may have taken it, and pass on what is said to the executor."""
    name = near_ways.endpoint.rpartition("/")[2]
    assert local.is_here(near_ways.endpoint)
    assert not local.is_here(f"{local.SCHEME}0123456789abcdef/{name}")
    assert not local.is_here(f"{local.SCHEME}/{name}")


# --- somebody in between ----------------------------------------------------------------------------------------------


def test_another_certificate_is_refused_before_anything_is_proved() -> None:
    heard = bytearray()
    listening = socket.create_server(("127.0.0.1", 0))
    context: ssl.SSLContext = server_context(make_certificate())

    def be_in_between() -> None:
        connected, _ = listening.accept()
        with context.wrap_socket(connected, server_side=True) as wrapped:
            wrapped.sendall(b"\x67\x03" + os.urandom(32))
            try:
                while piece := wrapped.recv(4096):
                    heard.extend(piece)
            except OSError:
                return

    between = threading.Thread(target=be_in_between)
    between.start()
    endpoint = f"tls://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ProofFailed, match="another certificate"):
        reach_far(endpoint, Expected(SECRET, make_certificate().fingerprint), STATE_SECONDS)
    between.join()
    listening.close()
    assert not heard


def test_older_tls_is_not_spoken() -> None:
    ways = Ways("tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    failures: list[Exception] = []
    stranger = ways.stranger()

    def shake_hands() -> None:
        try:
            context.wrap_socket(stranger)
        except OSError as error:
            failures.append(error)

    shaking = threading.Thread(target=shake_hands)
    shaking.start()
    while shaking.is_alive():
        assert not ways.entrance.admitted()
    ways.close()
    assert failures


# --- in a pool --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty(make_pool: MakePool) -> Iterator[Faulty]:
    with tempfile.TemporaryDirectory(prefix="gwb") as directory:
        heard = {"listen_host": "127.0.0.1", "listen_port": spare_port()}
        yield Faulty(make_pool, Path(directory), warm_executors_per_device=1, **heard)


def handed(ticket: Ticket, directory: Path) -> Path:
    path = directory / "ticket.json"
    write_private(path, msgspec.json.encode(ticket))
    return path


CELL = """
x, expected = cp.arange(50), np.arange(50)
for step in range(1500):
    x *= 3          # in place: done twice or not at all, it would show
    x %= 1_000_003
    expected = expected * 3 % 1_000_003
    if step % 53 == 0:
        assert (x.get() == expected).all(), step
host = np.arange(300_000)
assert (cp.asarray(host).get() == host).all()
(x.get() == expected).all(), current_session().epoch
"""


def test_altered_bytes_are_a_pause_and_no_wrong_number(faulty: Faulty, tmp_path: Path) -> None:
    ticket = faulty.pool.open()
    chance = random.Random(7)
    with flipping(ticket.endpoints[-1], [chance.randrange(2_000, 40_000) for _ in range(12)]) as flipper:
        way = handed(msgspec.structs.replace(ticket, endpoints=(flipper.endpoint,)), tmp_path)
        with Notebook(faulty.config(), **{TICKET_VARIABLE: str(way)}) as notebook:
            assert notebook.value(CELL) == "(np.True_, 1)"
            assert flipper.connections > 3
    ask(faulty.pool.ada, control.CloseSession(0, ticket.session))


def test_altered_bytes_to_the_gateway_end_neither_who_asks_nor_the_gateway(faulty: Faulty) -> None:
    gateway = faulty.pool.process("gateway")
    chance = random.Random(3)
    outcomes: list[object] = []
    with flipping(network_endpoint(faulty), [chance.randrange(1_500, 6_000) for _ in range(8)]) as flipper:
        door = Door(flipper.endpoint, faulty.pool.ada.server_key, faulty.pool.ada.keys)
        while flipper.cuts_left:
            try:
                outcomes.append(ask(door, control.AskPool(0), 2.0))
            except PoolUnreachable as error:
                outcomes.append(error)
        assert isinstance(ask(door, control.AskPool(0), STATE_SECONDS), PoolView)
    assert any(isinstance(outcome, PoolUnreachable) for outcome in outcomes)
    assert faulty.pool.process("gateway") == gateway


def network_endpoint(faulty: Faulty) -> str:
    return people.address(faulty.pool.state).gateway


def test_a_process_that_dies_of_asking_is_asked_again(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as directory:
        mark = Path(directory) / "died"
        dies = f"import os\nif not os.path.exists({str(mark)!r}): open({str(mark)!r}, 'w').close(); os.abort()\n"
        monkeypatch.setattr(asking, "_PROGRAM", dies + asking._PROGRAM)
        door = faulty.pool.ada._replace(endpoint=network_endpoint(faulty))
        assert ask(door, control.AskPool(0), STATE_SECONDS)
        assert mark.exists()
        mark.unlink()
        with pytest.raises(PoolUnreachable, match="broke down"):  # it would be given another one
            ask(door, control.OpenSession(0, "nameless"), STATE_SECONDS)


def test_a_cut_as_a_connection_is_made_is_no_wrong_key(faulty: Faulty) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    target = network_endpoint(faulty).rpartition(":")[2]
    stop = threading.Event()

    def cut_the_first() -> None:
        for _ in range(2):
            connected, _ = listening.accept()
            connected.recv(10)
            connected.close()
        near, _ = listening.accept()
        far = socket.create_connection(("127.0.0.1", int(target)))
        with near, far:
            relays = [threading.Thread(target=relay, args=way, daemon=True) for way in ((near, far), (far, near))]
            for one in relays:
                one.start()
            stop.wait()

    cutting = threading.Thread(target=cut_the_first, daemon=True)
    cutting.start()
    door = faulty.pool.ada._replace(endpoint=f"tcp://127.0.0.1:{listening.getsockname()[1]}")
    assert ask(door, control.AskPool(0), STATE_SECONDS)
    stop.set()
    cutting.join()
    listening.close()


def relay(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(4096):
            sink.sendall(data)
    except OSError:
        return


def test_secrets_are_in_no_log_no_argument_and_no_environment(faulty: Faulty) -> None:
    with faulty.notebook() as notebook:
        notebook.value("float(cp.ones(3).sum())")
        told = notebook.value("repr(current_session().ticket)")
        ticket_secret = notebook.value("current_session().ticket.secret").strip("'")
        assert ticket_secret not in told
        executor = int(notebook.value("__import__('tests.executor_of').executor_of.pid_of(current_session().ticket)"))
        directory = Path(f"/proc/{executor}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode()
        key = (Path(directory) / OWN / CERTIFICATE).read_bytes().split(b"\n")[1]
        for pid in [path.name for path in Path("/proc").glob("[0-9]*")]:
            for kind in ("cmdline", "environ"):
                try:
                    seen = Path(f"/proc/{pid}/{kind}").read_bytes()
                except OSError:
                    continue
                assert ticket_secret.encode() not in seen
        logs = [*faulty.pool.state.logs.glob("*.log"), Path(directory) / "log"]
        assert logs
        for log in logs:
            assert ticket_secret.encode() not in log.read_bytes()
            assert key not in log.read_bytes()
        for path in Path(directory).iterdir():
            if path.is_file():
                assert path.stat().st_mode & 0o077 == 0, path
