"""What an operator does with GPUs that are split (MIG): looks, makes instances, removes them.

The mode in which a GPU can be split is nobody's here to switch: it takes root, and at times a reset of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gpu_backend.engine.detached import read_identity
from gpu_backend.node import launcher, shares
from gpu_backend.node import settings as node_settings
from gpu_backend.node.mig import DriverRefusal, Gpu, Instance, MigDriver, Mode, Profile, Status
from gpu_backend.node.numbering import noted_numbers
from gpu_backend.pool.joined import has_joined, settings_file
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import PoolRefusal

__all__ = ["Place", "Room", "Split", "create", "destroy", "overview", "remedy"]


class Room(NamedTuple):
    """A profile, and how many more instances of it fit; None where only root is told."""

    profile: Profile
    free: int | None


class Place(NamedTuple):
    """An instance and who is on it here: sessions with their users, by the executors of this machine."""

    instance: Instance
    #: Its number among the devices of this machine; None if it is not offered.
    number: int | None
    sessions: tuple[tuple[str, str], ...]
    is_withheld: bool


class Split(NamedTuple):
    """A GPU, what it can be split into, and what it is split into."""

    gpu: Gpu
    rooms: tuple[Room, ...]
    places: tuple[Place, ...]


def overview(state: PoolState, driver: MigDriver) -> list[Split]:
    """Return all GPUs of this machine.

    Raises
    ------
    PoolRefusal
        If the driver does not say.
    """
    with _in_words("look at this machine's GPUs"):
        return [_split(state, driver, gpu) for gpu in driver.gpus()]


def create(state: PoolState, driver: MigDriver, gpu: str, names: Sequence[str]) -> list[Place]:
    """Make instances of a GPU, one after the other as they are named, and return those that are new.

    Parameters
    ----------
    gpu
        Its number as `nvidia-smi` has it, or its UUID.
    names
        Profiles, by their names or numbers.

    Raises
    ------
    PoolRefusal
        If there is no such GPU, or it is not split, or has no such profile: nothing was made. Or if the driver refuses
        one of them; the message says how many were made before.
    """
    found = _gpu(state, driver, gpu)
    _refuse_whole(found.gpu)
    wanted = [_profile(found, name) for name in names]
    for made, profile in enumerate(wanted):
        before = f" {made} of {len(wanted)} were made before." if made else ""
        with _in_words(f"make {profile.name} of GPU {found.gpu.number}", before):
            driver.create(found.gpu, profile)
    there = {place.instance.uuid for place in found.places}
    return [place for place in _gpu(state, driver, found.gpu.uuid).places if place.instance.uuid not in there]


def destroy(state: PoolState, driver: MigDriver, gpu: str = "", instance: str = "") -> list[Place]:
    """Remove an instance, by its UUID or the beginning of that, or all of a GPU; return those that are gone.

    Raises
    ------
    PoolRefusal
        If there is no such instance or GPU, or somebody may be on one of them: nothing was removed. Or if the driver
        refuses.
    """
    if gpu:
        found = _gpu(state, driver, gpu)
        _refuse_whole(found.gpu)
        places = list(found.places)
    else:
        places = [_place(overview(state, driver), instance)]
    for place in places:
        _refuse_used(state, place)
    for place in places:
        with _in_words(f"remove {place.instance.uuid}"):
            driver.destroy(place.instance)
    return places


def remedy(state: PoolState) -> list[str]:
    """Return the commands by which the pool takes in what is new and gives up what is gone; none if it is not up."""
    if read_identity(state.process_file("agent")) is None:
        return []
    return ["workbench node down", "workbench node up"] if has_joined(state) else ["workbench pool reload"]


def _split(state: PoolState, driver: MigDriver, gpu: Gpu) -> Split:
    if gpu.mode is Mode.NEVER:
        return Split(gpu, (), ())
    is_split = gpu.mode is Mode.ON
    profiles = sorted(driver.profiles(gpu), key=lambda one: (one.memory_bytes, one.name))
    rooms = tuple(Room(one, driver.free(gpu, one) if is_split else None) for one in profiles)
    return Split(gpu, rooms, tuple(_placed(state, driver.instances(gpu))))


def _placed(state: PoolState, instances: Sequence[Instance]) -> Iterator[Place]:
    numbers, told = noted_numbers(state.node), _withheld(state)
    for one in instances:
        number = numbers.get(one.uuid)
        on_it = () if number is None else tuple(_sessions(state, number))
        yield Place(one, number, on_it, one.uuid in told)


def _sessions(state: PoolState, number: int) -> Iterator[tuple[str, str]]:
    """Yield the sessions on the device of this number, with their users."""
    if not (state.runtime / launcher.EXECUTORS).is_dir():
        return
    for directory in launcher.directories(str(state.runtime)):
        config, order = launcher.config_in(directory), launcher.assignment_in(directory)
        if config is not None and order is not None and number in config.on_node and launcher.process_in(directory):
            yield order.session, shares.noted(directory, order).user


def _withheld(state: PoolState) -> tuple[str, ...]:
    """Return which devices the agent withholds, by what it was last told."""
    if not (state.node / node_settings.CONFIG).exists():
        return ()
    return node_settings.read(state.node).withheld_devices


def _gpu(state: PoolState, driver: MigDriver, name: str) -> Split:
    found = overview(state, driver)
    for one in found:
        if name in (str(one.gpu.number), one.gpu.uuid):
            return one
    there = ", ".join(f"{one.gpu.number} ({one.gpu.name})" for one in found) or "none"
    raise PoolRefusal(f"There is no GPU {name!r} here; there are: {there}. `workbench pool mig` shows them.")


def _place(found: Sequence[Split], name: str) -> Place:
    places = [place for one in found for place in one.places]
    named = [place for place in places if place.instance.uuid.startswith(name)]
    if len(named) == 1:
        return named[0]
    there = ", ".join(place.instance.uuid for place in places) or "none"
    what = "is more than one" if named else "is none"
    raise PoolRefusal(f"{name!r} {what} of the instances here, which are: {there}.")


def _profile(found: Split, name: str) -> Profile:
    for room in found.rooms:
        if name.removeprefix("MIG ") in (room.profile.name, str(room.profile.number)):
            return room.profile
    there = ", ".join(f"{room.profile.name} ({room.profile.number})" for room in found.rooms) or "none"
    raise PoolRefusal(f"GPU {found.gpu.number} has no profile {name!r}; it has: {there}.")


def _refuse_whole(gpu: Gpu) -> None:
    if gpu.mode is Mode.ON:
        return
    name = f"GPU {gpu.number} ({gpu.name})"
    if gpu.mode is Mode.NEVER:
        raise PoolRefusal(f"{name} cannot be split: its model has no MIG, or its driver none for it.")
    if gpu.pending is Mode.ON:
        raise PoolRefusal(
            f"{name} is to be split and waits for a reset: while nothing runs on it, run `nvidia-smi -i {gpu.number} "
            "--gpu-reset` as root, or restart the machine."
        )
    raise PoolRefusal(
        f"{name} is whole: its MIG mode is off, which is never switched from here. While nothing runs on it, run "
        f"`nvidia-smi -i {gpu.number} -mig 1` as root; some GPUs have to be reset then, or the machine restarted."
    )


def _refuse_used(state: PoolState, place: Place) -> None:
    uuid = place.instance.uuid
    if place.sessions:
        who = ", ".join(f"{session} of {user}" for session, user in place.sessions)
        found = f"{uuid} is in use by {who}."
    elif place.number is not None and not place.is_withheld and remedy(state):
        found = f"{uuid} is offered by the pool, which keeps executors ready on it."
    else:
        return
    if place.is_withheld:
        raise PoolRefusal(f"{found} Nobody else comes; remove it once these kernels are shut down.")
    file, then = state.settings_file, "workbench pool reload"
    if has_joined(state):
        file, then = settings_file(state), "workbench node up"
    raise PoolRefusal(
        f'{found} Put "{uuid}" into withheld_devices in {file} and run `{then}`, so that nobody new comes; remove it '
        "once no kernel is on it."
    )


@contextmanager
def _in_words(what: str, before: str = "") -> Iterator[None]:
    """Say why the driver refused to do ``what``, and what to do about it."""
    try:
        yield
    except DriverRefusal as refusal:
        why = _WHY.get(refusal.status, f"it answers {refusal.status} to {refusal.call}.")
        raise PoolRefusal(f"The driver did not {what}: {why}{before}") from None


_WHY: dict[int, str] = {
    Status.NO_PERMISSION: "that is root's, or theirs who may read /dev/nvidia-caps/nvidia-cap1. Run it as root, with "
    "--state if the pool is another account's.",
    Status.INSUFFICIENT_RESOURCES: "there is no room for it beside what is there. `workbench pool mig` shows how many "
    "of each profile still fit.",
    Status.IN_USE: "a process is still on it, which `nvidia-smi` names. End that first.",
    Status.NOT_SUPPORTED: "it cannot. Is the GPU split, and by this driver?",
}
