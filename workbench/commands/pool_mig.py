"""``workbench pool mig``: GPUs that are split in hardware (MIG). What is on them is shown; instances come and go."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from gpu_backend.node.mig import MigDriver, Mode
from gpu_backend.node.mig_nvml import NvmlMig
from gpu_backend.pool import splitting
from gpu_backend.pool.splitting import Place, Room, Split
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.errors import PoolRefusal
from workbench.display import Columns, bytes_in_words
from workbench.terminal import show
from workbench.wrong_usage import WrongUsage

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Finish = Callable[[ArgumentParser, object], None]


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add the command; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    one = parts.add_parser("mig", help="list, create or destroy instances of GPUs that are split (MIG)")
    one.description = "The MIG mode of a GPU is not switched: `nvidia-smi -i GPU -mig 1` does that, as root."
    one.add_argument(
        "action", nargs="?", choices=("list", "create", "destroy"), default="list", help="list, which is the default"
    )
    one.add_argument("names", nargs="*", metavar="NAME", help="create: a GPU, then profiles; destroy: an instance")
    one.add_argument("--all", default="", metavar="GPU", help="destroy: all instances of a GPU")
    finish(one, execute)


def execute(arguments: Namespace) -> int:
    """Carry out ``mig``, then list what there is."""
    return carry_out(arguments, _driver())


def carry_out(arguments: Namespace, driver: MigDriver) -> int:
    """Do and show what ``arguments`` say, by this driver."""
    state = at(arguments.state)
    changed = _change(arguments, state, driver)
    found = splitting.overview(state, driver)
    then = splitting.remedy(state) if changed else []
    for_programs = {"gpus": [_as_dict(one) for one in found], "changed": [p.instance.uuid for p in changed]}
    show(arguments, _for_people(found, _said(arguments.action, changed, then)), {**for_programs, "then": then})
    return 0


def _driver() -> MigDriver:
    driver = NvmlMig.of()
    if isinstance(driver, str):
        raise PoolRefusal(f"GPUs cannot be looked at: {driver}. Is NVIDIA's driver installed on this machine?")
    return driver


def _change(arguments: Namespace, state: PoolState, driver: MigDriver) -> list[Place]:
    action, names = arguments.action, arguments.names
    if action == "create":
        if len(names) < 2 or arguments.all:
            raise WrongUsage("Say of which GPU, and what: `workbench pool mig create GPU PROFILE …`.")
        return splitting.create(state, driver, names[0], names[1:])
    if action == "destroy":
        if (len(names) != 1) == (not arguments.all) or (names and arguments.all):
            raise WrongUsage("Say which: `workbench pool mig destroy INSTANCE`, or `… destroy --all GPU`.")
        return splitting.destroy(state, driver, arguments.all, *names)
    if names or arguments.all:
        raise WrongUsage("`workbench pool mig list` shows all GPUs, and takes no names.")
    return []


def _said(action: str, changed: Sequence[Place], then: Sequence[str]) -> str:
    if not changed:
        return ""
    done = "made" if action == "create" else "removed"
    names = ", ".join(f"{place.instance.profile} ({place.instance.uuid})" for place in changed)
    return f"{done}: {names}." + (f" The pool heeds it after `{'` and `'.join(then)}`." if then else "")


def _as_dict(split: Split) -> dict[str, Any]:
    gpu = split.gpu
    return {
        "gpu": gpu.number,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "mode": gpu.mode.value,
        "pending": gpu.pending.value,
        "profiles": [{**room.profile._asdict(), "free": room.free} for room in split.rooms],
        "instances": [
            {**place.instance._asdict(), "device": place.number, "is_withheld": place.is_withheld,
             "sessions": [{"session": session, "user": user} for session, user in place.sessions]}
            for place in split.places
        ],
    }  # fmt: skip


def _for_people(found: Sequence[Split], said: str) -> Group:
    gpus = Columns("GPU", "name", "MIG")
    for one in found:
        waits = "" if one.gpu.pending is one.gpu.mode else f", {one.gpu.pending.value} after a reset"
        gpus.add_row(str(one.gpu.number), Text(one.gpu.name), one.gpu.mode.value + waits)
    blocks: list[RenderableType] = [Text(said)] if said else []
    blocks += [gpus if found else Text("There is no GPU here.")]
    rooms = [(one, room) for one in found for room in one.rooms]
    if rooms:
        blocks += [Text(), _table_of_profiles(rooms)]
    places = [(one, place) for one in found for place in one.places]
    if places:
        blocks += [Text(), _table_of_instances(places)]
    return Group(*blocks)


def _table_of_profiles(rooms: Sequence[tuple[Split, Room]]) -> Columns:
    table = Columns("GPU", "profile")
    for heading in ("number", "memory", "SMs", "free", "at most"):
        table.add_column(heading, justify="right")
    for one, (profile, free) in rooms:
        unknown = "root knows" if one.gpu.mode is Mode.ON else "-"
        table.add_row(
            str(one.gpu.number), profile.name, str(profile.number), bytes_in_words(profile.memory_bytes),
            str(profile.multiprocessors), unknown if free is None else str(free), str(profile.most),
        )  # fmt: skip
    return table


def _table_of_instances(places: Sequence[tuple[Split, Place]]) -> Columns:
    table = Columns("GPU", "profile")
    table.add_column("instance", no_wrap=True)
    table.add_column("memory", justify="right")
    table.add_column("device", justify="right")
    table.add_column("sessions")
    for one, place in places:
        instance, number = place.instance, "-" if place.number is None else str(place.number)
        on_it = ", ".join(f"{session} of {user}" for session, user in place.sessions) or "none"
        table.add_row(
            str(one.gpu.number), instance.profile, instance.uuid, bytes_in_words(instance.total_bytes), number,
            Text(on_it + (", and no others (withheld)" if place.is_withheld else "")),
        )  # fmt: skip
    return table
