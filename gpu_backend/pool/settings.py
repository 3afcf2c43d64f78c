"""What an operator can set: the file ``pool.toml`` in the pool's state directory."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from gpu_backend.arbiter.policies import registry
from gpu_backend.executor.config import KEPT_BYTES, PASSES, PassName
from gpu_backend.gateway.placing import DEFAULT_RULES, RULES
from gpu_backend.pool.setting_kinds import (
    Bytes,
    Count,
    GpuSeconds,
    Host,
    Number,
    Priority,
    Seconds,
    Settings,
    Words,
    most,
)  # fmt: skip
from gpu_backend.pool.wrong_settings import wrongs
from gpu_backend.wire.errors import PoolRefusal


class SharedByMps(Settings):
    """How a GPU is shared by MPS. CUDA keeps the limits; they are of each session."""

    group: str = Field(min_length=1, description="The only group whose users get sessions there.")
    threads_percent: float = Field(
        default=100.0, gt=0, le=100, description="Most of the GPU's multiprocessors at a time, per cent."
    )
    memory_bytes: Bytes = Field(
        default=0, ge=0, description="Most of its memory, with the half GiB that CUDA takes itself; 0 for no limit."
    )

    @field_validator("memory_bytes")
    @classmethod
    def _enough_to_begin(cls, amount: int) -> int:
        if 0 < amount < 1 << 30:
            raise ValueError(f"{amount} bytes are too few to begin with: at least 1 GiB, or 0 for no limit")
        return amount


class PoolSettings(Settings):
    """Settings of a pool. Every setting has its unit in its name; `render` writes them with their descriptions."""

    name: str = Field(default="pool", min_length=1, max_length=60, description="The pool's name, as people see it.")
    listen_host: Host = Field(
        default="",
        description="Address on which notebooks of other machines are heard ('0.0.0.0' for all). Empty: only notebooks "
        "of this machine, through a private socket file.",
    )
    executor_host: Host = Field(
        default="",
        description="Address on which executors are heard by notebooks of other machines; empty for listen_host.",
    )
    executor_ports: str = Field(
        default="",
        description="TCP ports for executors, as '7800-7899', to be let through a firewall: one for each session and "
        "each executor that is kept ready. Empty: any that is free.",
    )
    listen_port: int = Field(
        default=7766, ge=1, le=65535, description="TCP port of the gateway, if listen_host is set."
    )
    advertise_host: Host = Field(
        default="",
        description="Name or address under which other machines reach this one. Needed if listen_host is '0.0.0.0'.",
    )
    nodes_host: Host = Field(
        default="",
        description="Address on which agents of other machines are heard, which join this pool as its nodes: one of a "
        "private network if there is one. Empty: this machine is the pool's only one.",
    )
    nodes_port: int = Field(default=7767, ge=1, le=65535, description="TCP port for them, if nodes_host is set.")
    node_lost_seconds: Seconds = Field(
        default=20.0,
        ge=6,
        description="A machine that joined and was not heard for so long is taken for lost, with the sessions on it.",
    )
    engine: Literal["local", "ray"] = Field(
        default="local",
        description="What keeps the pool's machines together: 'local', each machine by itself, or 'ray', a Ray "
        "cluster, which needs the extra `ray` on all of them. Cannot change while the pool is up.",
    )
    ray_port: int = Field(
        default=7768,
        ge=1,
        le=65535,
        description="TCP port of the pool's own Ray head, at nodes_host; for engine 'ray'.",
    )
    ray_address: str = Field(
        default="",
        description="A Ray cluster that runs already and that this machine is a node of, as 'HOST:PORT'. Empty: the "
        "pool starts a head of its own.",
    )
    ray_token_file: str = Field(
        default="", description="The file that holds the token of the cluster at ray_address, for its owner alone."
    )
    ray_certificates: str = Field(
        default="",
        description="A directory with tls.crt, tls.key and ca.crt of this machine, by which Ray encrypts. Empty: it "
        "does not, and belongs on a network that nobody else reads.",
    )
    devices: Literal["auto", "cuda", "cpu"] = Field(
        default="auto",
        description="'auto' offers the GPUs, or the CPU where CuPy can use no GPU; 'cuda' or 'cpu' insist.",
    )
    cpu_devices: int = Field(
        default=1, ge=1, le=64, description="How many devices the CPU stands for where it is offered."
    )
    withheld_devices: Words = Field(
        default=(),
        description="UUIDs of GPUs, or of instances of one (MIG), on which nobody gets a new session and no executor "
        "is kept ready; sessions that are there go on.",
    )
    policy: str = Field(
        default="fair_share",
        description="How a device is shared: the name of a policy; 'driver' leaves it to the GPU's driver.",
    )
    device_policies: dict[Number, str] = Field(
        default={}, description="Other policies for some of the devices, by their numbers: { 1 = 'tgs' }."
    )
    devices_shared_by_mps: dict[Number, SharedByMps] = Field(
        default={},
        description="GPUs whose sessions compute at the same time, by NVIDIA's MPS, by their numbers: { 0 = { group = "
        "'vision' } }, with threads_percent and memory_bytes of each session if they are to be bounded. One session's "
        "fault ends all on that GPU, so it serves that group alone; nobody has turns there, and no policy holds.",
    )
    sessions_per_device: Count = Field(default=8, ge=1, description="Most sessions on one device at a time.")
    max_sessions_per_user: Count = most(8, "sessions of one user at a time")
    max_memory_bytes_per_user: Bytes = most(0, "device memory that the sessions of one user may hold in all")
    default_memory_bytes: Bytes = Field(
        default=0,
        ge=0,
        description="Memory of a session that asks for none; 0 for what is left of its user's quota, or else no limit.",
    )
    max_sessions_per_group: Count = most(0, "sessions of all users of a group at a time")
    max_memory_bytes_per_group: Bytes = most(0, "device memory that the sessions of a group may hold in all")
    max_gpu_seconds_per_user_and_day: GpuSeconds = most(
        0.0, "seconds of GPU time that a user may use in a day, from midnight on"
    )
    max_gpu_seconds_per_user_and_week: GpuSeconds = most(
        0.0, "seconds of GPU time that a user may use in a week, from Monday on"
    )
    max_gpu_seconds_per_user_and_month: GpuSeconds = most(
        0.0, "seconds of GPU time that a user may use in a month, from the first on"
    )
    max_gpu_seconds_per_group_and_day: GpuSeconds = most(
        0.0, "seconds of GPU time that a group may use in a day, from midnight on"
    )
    max_gpu_seconds_per_group_and_week: GpuSeconds = most(
        0.0, "seconds of GPU time that a group may use in a week, from Monday on"
    )
    max_gpu_seconds_per_group_and_month: GpuSeconds = most(
        0.0, "seconds of GPU time that a group may use in a month, from the first on"
    )
    over_quota: Literal["leftovers", "close"] = Field(
        default="leftovers",
        description="What becomes of running sessions when GPU time is used up: 'leftovers' lets them run on what "
        "others leave, 'close' ends them. New ones are refused.",
    )
    largest_class: Literal["best-effort", "interactive", "production"] = Field(
        default="interactive", description="The largest class that a user may ask for a session."
    )
    largest_request: float = Field(
        default=0.0, ge=0, le=1, description="The largest part of a device's time that a user may have guaranteed."
    )
    largest_limit: float = Field(
        default=1.0, gt=0, le=1, description="The largest part of a device's time that a session may have."
    )
    highest_priority: Priority = Field(
        default=0, ge=0, description="The highest priority that a user may ask for, where a policy looks at it."
    )
    default_class: Literal["", "best-effort", "interactive", "production"] = Field(
        default="", description="The class of a session that asks for none; empty for interactive, if that is allowed."
    )
    default_request: float = Field(
        default=0.0, ge=0, le=1, description="The guaranteed part of a device's time of a session that asks for none."
    )
    default_priority: Priority = Field(default=0, ge=0, description="The priority of a session that asks for none.")
    whole_devices: Count = Field(
        default=0, ge=0, description="Most devices that a user's sessions may have to themselves, if they ask for it."
    )
    placement: Words = Field(
        default=DEFAULT_RULES,
        description="By which rules a session gets one of the devices that have room, the first rule first: "
        f"{', '.join(RULES)}.",
    )
    lease_seconds: Seconds = Field(
        default=600.0,
        ge=1,
        description="How long a notebook may be unheard (asleep, cut off) before its session is freed.",
    )
    warm_executors_per_device: int = Field(
        default=1, ge=0, le=64, description="Executors kept ready per device. Each holds some 560 MB of a GPU's memory."
    )
    orphan_seconds: Seconds = Field(
        default=120.0,
        ge=2,
        description="How long executors go on without their agent, which is restarted when it dies.",
    )
    overrun_seconds: Seconds = Field(
        default=3600.0,
        ge=0,
        description="How long one op that runs when its session's turn ends may go on while others want the device; "
        "then the session's executor is ended. 0 for ever.",
    )
    stop_seconds: Seconds = Field(
        default=5.0, ge=0.1, description="How long an executor has to end before it is killed."
    )
    passes: Annotated[tuple[PassName, ...], Field(strict=False)] = Field(
        default=PASSES,
        description="The optimisations of the op stream that executors use; `[]` for none. Results are the same bits: "
        "what comes out otherwise without one is its defect.",
    )
    kept_upload_bytes_per_session: Bytes = Field(
        default=KEPT_BYTES,
        ge=0,
        description="How much host memory an executor may take to keep what a notebook of another host has uploaded "
        "over a slow link, so that it need not travel again; 0 to keep nothing.",
    )
    start_seconds: Seconds = Field(default=60.0, ge=1, description="How long an executor may take to come up.")
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of this machine, on loopback, at which Prometheus finds the pool's figures; 0 for none.",
    )
    metrics_users: Literal["summed", "named"] = Field(
        default="summed",
        description="How metrics_port tells of users, to every account of this machine: 'summed', or each 'named'.",
    )
    gateway_memory_bytes: Bytes = Field(
        default=1 << 30, ge=64 << 20, description="A gateway that grows beyond this is restarted; no session notices."
    )
    sandbox: Literal["required", "tenants-can-read-each-other"] = Field(
        default="required",
        description="'required' shuts every executor in, and gives nobody but the operator a session where the system "
        "cannot (Linux before 5.13). 'tenants-can-read-each-other' shuts nobody in: whoever has a session can then "
        "read the arrays of all others, this pool's keys, and whatever the account that runs the pool can.",
    )
    several_gpus: Literal["refused", "at-your-own-risk"] = Field(
        default="refused",
        description="Whether a session may have several GPUs; 'at-your-own-risk' lets it. CUDA begins on several only "
        "if it may take over objects of other processes of the same account, which are those of all the pool's users: "
        "such a session is let do that, and it alone.",
    )
    sandbox_reads: Words = Field(
        default=(),
        description="Further directories that executors may read, such as that of a compiler or of CUDA in an unusual "
        "place. What is private or holds something private is left out.",
    )
    executor_command: Words = Field(
        default=(), description="Command that runs an executor, for a wrapper such as numactl; empty for the plain one."
    )

    @field_validator("placement")
    @classmethod
    def _known_rules(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in RULES]
        if unknown:
            raise ValueError(f"there is no rule of placement {unknown[0]!r}; there are {', '.join(RULES)}")
        return names

    @field_validator("ray_address")
    @classmethod
    def _an_address(cls, text: str) -> str:
        if text and not re.fullmatch(r"[\w.\[\]:-]+:\d{1,5}", text, re.ASCII):
            raise ValueError(f"{text!r} is no address of a Ray cluster; write it like '10.0.0.1:6379'")
        return text

    @field_validator("executor_ports")
    @classmethod
    def _a_range(cls, text: str) -> str:
        port_range(text)
        return text

    @field_validator("policy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in registry.names():
            raise ValueError(f"there is no policy {name!r}; installed are {', '.join(registry.names())}")
        return name

    @field_validator("device_policies")
    @classmethod
    def _all_known(cls, policies: dict[int, str]) -> dict[int, str]:
        for name in policies.values():
            cls._known(name)
        return policies

    @model_validator(mode="after")
    def _policies_of_turns(self) -> PoolSettings:
        both = sorted(self.device_policies.keys() & self.devices_shared_by_mps.keys())
        if both:
            raise ValueError(f"device {both[0]} has a policy, and is shared by MPS, where there are no turns")
        beyond = [number for number in self.numbered if number >= self.cpu_devices]
        if self.devices == "cpu" and beyond:
            raise ValueError(f"there is no device {beyond[0]}: cpu_devices is {self.cpu_devices}, counted from 0")
        return self

    @property
    def numbered(self) -> list[int]:
        """The numbers of the devices for which something is set."""
        return sorted(self.device_policies.keys() | self.devices_shared_by_mps.keys())


def port_range(text: str) -> tuple[int, int]:
    """Return the first and the last port of a range like "7800-7899"; 0 and 0, any port, for none.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not text:
        return 0, 0
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    if found is None or not 1024 <= int(found[1]) <= int(found[2]) <= 65535:
        raise ValueError(f"{text!r} is no range of ports between 1024 and 65535; write it like '7800-7899'")
    return int(found[1]), int(found[2])


def made_of(given: dict[str, Any]) -> PoolSettings:
    """Return the settings that are ``given``, and the defaults of all others.

    Raises
    ------
    PoolRefusal
        If they do not fit; the message names each wrong setting.
    """
    try:
        return PoolSettings(**given)
    except ValidationError as error:
        raise PoolRefusal(
            f"The pool cannot have these settings: {wrongs(error, PoolSettings)}. Nothing was started."
        ) from None


def read(path: Path, names: Sequence[str] = ()) -> PoolSettings:
    """Return the settings in ``path``; the defaults if there is no such file.

    ``names`` are those that may be there, if not all.

    Raises
    ------
    PoolRefusal
        If the file does not fit; the message names each wrong setting.
    """
    try:
        given = tomllib.loads(path.read_text())
        if names and (others := [name for name in given if name in PoolSettings.model_fields and name not in names]):
            raise PoolRefusal(f"{path} is not right: {', '.join(others)} can be set on the pool's head alone.")
        return PoolSettings.model_validate(given)
    except FileNotFoundError:
        return PoolSettings()
    except ValidationError as error:
        raise PoolRefusal(
            f"{path} is not right: {wrongs(error, PoolSettings)}. Correct it, or remove it for the defaults."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: no text, no TOML, or a number of thousands of digits
        raise PoolRefusal(f"{path} cannot be read: {error}. Correct it, or remove it for the defaults.") from None


def render(settings: PoolSettings, names: Sequence[str] = ()) -> str:
    """Return ``settings`` as TOML, each with its description; those at their defaults are commented out.

    ``names`` are those of a machine that has joined a pool; without them it is the pool's.
    """
    whose, when = ("a node of a", "workbench node up") if names else ("a", "workbench pool up` or `reload")
    lines = [f"# Settings of {whose} gpu-workbench pool. They count from the next `{when}`.", ""]
    for name, field in PoolSettings.model_fields.items():
        if names and name not in names:
            continue
        value = getattr(settings, name)
        mark = "# " if value == field.default else ""
        lines += [f"# {field.description}", f"{mark}{name} = {as_toml(value)}", ""]
    return "\n".join(lines)


def as_toml(value: object) -> str:
    """Return a setting's value as TOML writes it."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return f"[{', '.join(as_toml(item) for item in value)}]"
    if isinstance(value, BaseModel):
        return as_toml(value.model_dump())
    if isinstance(value, dict):
        items = ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    return str(value)
