"""The provisioner's lease: when it is taken, kept, given back, and how a refusal reads."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jupyter_client.kernelspec import KernelSpec
from tornado.web import HTTPError

from gpu_backend.wire.control import (
    CloseSession,
    Denied,
    FromGateway,
    OpenSession,
    Queued,
    RenewTicket,
    RestartSession,
    Ticket,
)
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.wish import Wish
from kernelproxy import settings
from kernelproxy.session.handover import TICKET_VARIABLE, read, write
from kernelproxy.settings import CONFIG_VARIABLE
from tests.unit.workbench.scripted_gateway import ScriptedGateway, a_ticket, obliging
from workbench.environment import PREVIOUS_END_VARIABLE
from workbench.provisioner import RemoteGpuProvisioner


@pytest.fixture
def provisioner(gateway: ScriptedGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteGpuProvisioner:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    spec = KernelSpec(argv=["sleep", "60"], display_name="x", language="python")
    return RemoteGpuProvisioner(kernel_id="k1", kernel_spec=spec)


def environment(label: str = "") -> dict[str, str]:
    return {**os.environ, "JPY_SESSION_NAME": label}


def test_the_lease_carries_the_notebooks_name(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    kwargs = asyncio.run(provisioner.pre_launch(env=environment("work/fit.ipynb")))
    (asked,) = gateway.asked_for(OpenSession)
    assert asked.label == "work/fit.ipynb"
    path = Path(kwargs["env"][TICKET_VARIABLE])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path).session == "s1"


def test_no_environment_is_no_obstacle(provisioner: RemoteGpuProvisioner) -> None:
    """A program may start a kernel with no arguments at all."""
    assert TICKET_VARIABLE in asyncio.run(provisioner.pre_launch())["env"]


def test_a_restart_keeps_the_session_and_moves_its_epoch(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    async def restart() -> dict[str, object]:
        await provisioner.pre_launch(env=environment())
        await provisioner.shutdown_requested(restart=True)
        await provisioner.cleanup(restart=True)
        return await provisioner.pre_launch(env=environment())

    asyncio.run(restart())
    assert not gateway.asked_for(CloseSession)
    assert [asked.session for asked in gateway.asked_for(RestartSession)] == ["s1"]
    handed = read(provisioner.ticket_file)
    assert isinstance(handed, Ticket)
    assert handed.epoch == 2


def test_a_restart_after_the_session_has_ended_takes_a_new_one(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    def forgetful(message: object) -> Ticket | Denied:
        if isinstance(message, RestartSession):
            return Denied(0, RefusalCode.UNKNOWN_SESSION, "No such session.")
        return a_ticket(f"s{len(gateway.asked)}")

    gateway.answer = forgetful

    async def restart() -> None:
        await provisioner.pre_launch(env=environment())
        await provisioner.cleanup(restart=True)
        await provisioner.pre_launch(env=environment())

    asyncio.run(restart())
    assert provisioner.ticket is not None
    assert provisioner.ticket.session == "s3"


@pytest.mark.parametrize("code", [RefusalCode.STARTING, RefusalCode.POOL_FULL])
def test_what_takes_a_while_is_the_kernels_to_wait_for(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, code: RefusalCode
) -> None:
    gateway.answer = lambda _: Denied(0, code, "Not yet.")
    kwargs = asyncio.run(provisioner.pre_launch(env={**environment("a"), TICKET_VARIABLE: "/of/another/kernel"}))
    handed = read(Path(kwargs["env"][TICKET_VARIABLE]))
    assert isinstance(handed, OpenSession)
    assert handed.label == "a"
    assert not any(asked.waiter for asked in gateway.asked_for(OpenSession))


def test_a_session_that_the_kernel_took_by_itself_is_kept_and_given_back(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    gateway.answer = lambda _: Denied(0, RefusalCode.POOL_FULL, "The pool is full.")

    async def wait_restart_and_end() -> None:
        await provisioner.pre_launch(env=environment())
        gateway.answer = obliging
        write(a_ticket("s7"), provisioner.ticket_file)  # as the kernel does once it has a place
        await provisioner.cleanup(restart=True)
        await provisioner.pre_launch(env=environment())
        await provisioner.cleanup(restart=False)

    asyncio.run(wait_restart_and_end())
    assert [asked.session for asked in gateway.asked_for(RestartSession)] == ["s7"]
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["s7"]


def test_a_kernel_that_ended_before_it_had_a_place_leaves_nothing_to_give_back(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    gateway.answer = lambda _: Denied(0, RefusalCode.POOL_FULL, "The pool is full.")

    async def wait_and_end() -> None:
        await provisioner.pre_launch(env=environment())
        await provisioner.cleanup(restart=False)

    asyncio.run(wait_and_end())
    assert not gateway.asked_for(CloseSession)
    assert not provisioner.ticket_file.exists()


def test_the_lease_asks_for_what_settings_and_environment_say(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.save(msgspec.structs.replace(settings.load(), session_class="production", limit=0.5, memory="2 GiB"))
    monkeypatch.setenv("GPU_WORKBENCH_CLASS", "best-effort")
    asyncio.run(provisioner.pre_launch(env=environment()))
    (asked,) = gateway.asked_for(OpenSession)
    assert asked.wish == Wish("best-effort", 0.0, 0.5, 0)
    assert asked.memory_bytes == 2 << 30
    monkeypatch.setenv("GPU_WORKBENCH_LIMIT", "half")

    async def take_another() -> None:
        await provisioner.cleanup(restart=False)
        await provisioner.pre_launch(env=environment())

    with pytest.raises(HTTPError, match=r"GPU_WORKBENCH_LIMIT is\s+not\s+right"):
        asyncio.run(take_another())


@pytest.mark.parametrize("not_yet", [Denied(0, RefusalCode.STARTING, "Not yet."), Queued(0, 1, 1, -1.0, "Full.")])
def test_a_restart_whose_executor_is_not_there_yet_hands_over_the_session(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, not_yet: FromGateway
) -> None:
    def slow(message: object) -> FromGateway:
        if isinstance(message, RestartSession):
            return not_yet
        return obliging(message)

    gateway.answer = slow

    async def restart_and_end() -> object:
        await provisioner.pre_launch(env=environment())
        await provisioner.cleanup(restart=True)
        kwargs = await provisioner.pre_launch(env=environment())
        handed = read(Path(kwargs["env"][TICKET_VARIABLE]))
        await provisioner.cleanup(restart=False)
        return handed

    assert asyncio.run(restart_and_end()) == RenewTicket(0, "s1", may_wait=True)
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["s1"]


def test_shutdown_gives_the_lease_back_once(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    async def shut_down() -> None:
        await provisioner.pre_launch(env=environment())
        await provisioner.kill(restart=False)  # a crash calls this too, and restarts
        assert not gateway.asked_for(CloseSession)
        await provisioner.cleanup(restart=False)
        await provisioner.cleanup(restart=False)

    asyncio.run(shut_down())
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["s1"]
    assert not provisioner.ticket_file.exists()


def test_a_kernel_that_cannot_be_launched_gives_its_lease_back(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    async def launch() -> None:
        kwargs = await provisioner.pre_launch(env=environment())
        with pytest.raises(FileNotFoundError):
            await provisioner.launch_kernel(["/nowhere/python"], env=kwargs["env"])

    asyncio.run(launch())
    assert len(gateway.asked_for(CloseSession)) == 1


def test_a_refusal_is_readable(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    gateway.answer = lambda _: Denied(
        0, RefusalCode.QUOTA, "You have 2 sessions of at most 2, 100% of them.", "Close a notebook."
    )
    with pytest.raises(HTTPError) as refused:
        asyncio.run(provisioner.pre_launch(env=environment()))
    assert refused.value.status_code == 503
    assert refused.value.reason == "The GPU pool gave no session"
    said = "\nYou have 2 sessions of at most 2, 100 percent of them. Close a notebook."
    assert refused.value.log_message == said


def test_a_long_refusal_fits_the_dialog(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    words = "All 8 sessions that you may have are taken by your notebooks. " * 6
    gateway.answer = lambda _: Denied(0, RefusalCode.QUOTA, words)
    with pytest.raises(HTTPError) as refused:
        asyncio.run(provisioner.pre_launch(env=environment()))
    lines = str(refused.value.log_message).splitlines()
    assert max(map(len, lines)) <= 90
    assert " ".join(lines).split() == words.split()


@pytest.mark.parametrize("has_session", [True, False])
def test_a_restart_that_the_pool_refuses_is_left_to_the_kernel(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, has_session: bool
) -> None:
    """The server keeps to itself why a restart failed."""

    async def restart() -> object:
        await provisioner.pre_launch(env=environment("fit.ipynb"))
        if not has_session:
            gateway.answer = lambda _: Denied(0, RefusalCode.UNKNOWN_SESSION, "It has ended.")
        else:
            gateway.allowed.replace([])
        await provisioner.cleanup(restart=True)
        kwargs = await provisioner.pre_launch(env=environment("fit.ipynb"))
        return read(Path(kwargs["env"][TICKET_VARIABLE]))

    handed = asyncio.run(restart())
    if has_session:
        assert handed == RenewTicket(0, "s1", may_wait=True)
    else:
        assert isinstance(handed, OpenSession)
        assert handed.label == "fit.ipynb"


def test_a_restart_with_settings_that_are_not_right_hands_nothing_over(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def restart() -> dict[str, str]:
        gateway.answer = lambda _: Denied(0, RefusalCode.POOL_FULL, "All places are taken.")
        await provisioner.pre_launch(env=environment())
        monkeypatch.setenv("GPU_WORKBENCH_LIMIT", "much")
        await provisioner.cleanup(restart=True)
        env = environment()
        return dict((await provisioner.pre_launch(env=env))["env"])

    assert TICKET_VARIABLE not in asyncio.run(restart())


def test_a_ticket_that_cannot_be_kept_is_told_and_its_session_given_back(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    with pytest.raises(HTTPError, match="Not a directory") as refused:
        asyncio.run(provisioner.pre_launch(env=environment()))
    assert refused.value.reason == "The kernel cannot be started on this machine"
    assert "JUPYTER_RUNTIME_DIR say: have these, or HOME" in " ".join(str(refused.value.log_message).split())
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["s1"]


def test_no_pool_at_all_says_what_to_run(provisioner: RemoteGpuProvisioner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, "/nowhere/client.toml")
    with pytest.raises(HTTPError, match=r"`workbench\s+connect`"):
        asyncio.run(provisioner.pre_launch(env=environment()))


def test_a_key_the_pool_does_not_know(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    gateway.allowed.replace([])
    with pytest.raises(HTTPError, match="does not know this key"):
        asyncio.run(provisioner.pre_launch(env=environment()))


def test_the_next_kernel_is_told_why_the_last_one_died(provisioner: RemoteGpuProvisioner) -> None:
    async def die_and_restart() -> dict[str, str]:
        kwargs = await provisioner.pre_launch(env=environment())
        await provisioner.launch_kernel(["sleep", "60"], env=kwargs["env"], start_new_session=True)
        assert await provisioner.poll() is None
        provisioner.process.send_signal(signal.SIGKILL)
        while await provisioner.poll() is None:
            await asyncio.sleep(0.01)
        await provisioner.kill(restart=False)
        await provisioner.wait()
        await provisioner.cleanup(restart=True)
        first = await provisioner.pre_launch(env=environment())
        second = await provisioner.pre_launch(env={**environment(), PREVIOUS_END_VARIABLE: "old news"})
        assert PREVIOUS_END_VARIABLE not in second["env"]
        return dict(first["env"])

    told = asyncio.run(die_and_restart())[PREVIOUS_END_VARIABLE]
    assert "was killed (SIGKILL)" in told
    assert "Run your cells again" in told


@pytest.mark.parametrize("is_started_again", [True, False])
def test_a_kernel_that_died_gives_its_lease_back_unless_it_is_started_again(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway, is_started_again: bool
) -> None:
    """The server gives up after some crashes, and tells the provisioner nothing."""

    async def die() -> None:
        kwargs = await provisioner.pre_launch(env=environment())
        await provisioner.launch_kernel(["false"], env=kwargs["env"], start_new_session=True)
        while await provisioner.poll() is None:
            await asyncio.sleep(0.01)
        waiting = provisioner._giving_back
        assert waiting is not None
        if is_started_again:
            await provisioner.pre_launch(env=environment())
        await asyncio.wait([waiting], timeout=90)
        assert waiting.cancelled() == is_started_again
        await provisioner.wait()

    provisioner.crash_patience = 90.0 if is_started_again else 0.0
    asyncio.run(die())
    assert bool(gateway.asked_for(CloseSession)) != is_started_again
    assert bool(gateway.asked_for(RestartSession)) == is_started_again


def test_what_the_kernel_took_itself_is_given_back_too(
    provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway
) -> None:
    """It had given back what it was handed, because it could not reach it."""

    async def live() -> None:
        await provisioner.pre_launch(env=environment())
        write(a_ticket("another"), provisioner.ticket_file)
        await provisioner.cleanup(restart=False)

    asyncio.run(live())
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["another"]


def test_a_wanted_end_is_no_news(provisioner: RemoteGpuProvisioner) -> None:
    async def restart_now() -> dict[str, str]:
        kwargs = await provisioner.pre_launch(env=environment())
        await provisioner.launch_kernel(["sleep", "60"], env=kwargs["env"], start_new_session=True)
        await provisioner.kill(restart=True)
        await provisioner.wait()
        await provisioner.cleanup(restart=True)
        return dict((await provisioner.pre_launch(env=environment()))["env"])

    assert PREVIOUS_END_VARIABLE not in asyncio.run(restart_now())


def test_no_secret_is_handed_to_another_server(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    async def info() -> dict[str, Any]:
        provisioner.ticket = msgspec.structs.replace(a_ticket("s1"), beside=(a_ticket("s2"),))
        return await provisioner.get_provisioner_info()

    assert a_ticket("s2").secret
    assert a_ticket("s2").secret not in str(asyncio.run(info()))


def test_another_server_takes_the_lease_over(provisioner: RemoteGpuProvisioner, gateway: ScriptedGateway) -> None:
    async def hand_over() -> RemoteGpuProvisioner:
        await provisioner.pre_launch(env=environment())
        info = msgspec.json.decode(msgspec.json.encode(await provisioner.get_provisioner_info()))
        successor = RemoteGpuProvisioner(kernel_id="", kernel_spec=provisioner.kernel_spec)
        await successor.load_provisioner_info(info)
        await successor.cleanup(restart=False)
        return successor

    successor = asyncio.run(hand_over())
    assert successor.kernel_id == "k1"
    assert [asked.session for asked in gateway.asked_for(CloseSession)] == ["s1"]
