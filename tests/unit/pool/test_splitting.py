"""What an operator does with GPUs that are split, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.executor.config import CONFIG, PROCESS, Descriptors, ExecutorConfig
from gpu_backend.node import launcher, shares
from gpu_backend.node.inventory import Found
from gpu_backend.node.mig_nvml import NvmlMig
from gpu_backend.node.numbering import renumber
from gpu_backend.node.shares import Share
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool import splitting
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.setup import prepare
from gpu_backend.pool.splitting import Place
from gpu_backend.pool.state import PoolState, at
from gpu_backend.wire.control import Terms
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.orders import Assign
from tests.played_nvml import PlayedGpu, PlayedNvml, recorded


class Machine:
    """One with an H100 that is split and an A100 that is whole, and the state of its pool."""

    def __init__(self, root: Path) -> None:
        self.h100, self.a100 = PlayedGpu(recorded("h100_80gb")), PlayedGpu(recorded("a100_40gb"), is_split=False)
        self.library = PlayedNvml([self.h100, self.a100])
        self.driver = NvmlMig(self.library)
        self.state: PoolState = at(root / "pool")
        prepare(self.state, PoolSettings())

    def create(self, *names: str, gpu: str = "0") -> list[Place]:
        return splitting.create(self.state, self.driver, gpu, names)

    def places(self) -> tuple[Place, ...]:
        return splitting.overview(self.state, self.driver)[0].places

    def offer(self) -> None:
        """Do as an agent that finds its devices, and runs."""
        found = [
            Found(n, "cuda", one.instance.profile, one.instance.uuid, 1, one.instance.uuid)
            for n, one in enumerate(self.places())
        ]
        renumber(self.state.node, found, str(self.state.runtime))
        write_identity(self.state.process_file("agent"), ProcessId.mine())

    def serve(self, number: int, session: str, user: str) -> Path:
        """Do as an executor on the device of this number."""
        directory = launcher.executors_dir(str(self.state.runtime)) / session
        directory.mkdir()
        config = ExecutorConfig(
            device_kind="cuda", on_node=(number,), own="", agent_key="", endpoints=(), secret="", certificate="",
            descriptors=Descriptors(local=0, control=0, far=0, report=0),
        )  # fmt: skip
        (directory / CONFIG).write_bytes(msgspec.json.encode(config))
        launcher.note_assignment(directory, Assign(session, 1, "key", 0, 60.0))
        shares.note(directory, Share(user, Terms()))
        write_identity(directory / PROCESS, ProcessId.mine())
        return directory

    def withhold(self, *uuids: str) -> None:
        settings = PoolSettings(withheld_devices=uuids)
        self.state.settings_file.write_text(pool_settings.render(settings))
        prepare(self.state, settings)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_instances_are_made_as_they_are_named_and_shown_with_what_still_fits(machine: Machine) -> None:
    made = machine.create("3g.40gb", "14")
    assert [place.instance.profile for place in made] == ["3g.40gb", "2g.20gb"]
    [h100, a100] = splitting.overview(machine.state, machine.driver)
    assert {room.profile.name: room.free for room in h100.rooms}["1g.10gb"] == 2
    assert {room.free for room in a100.rooms} == {None}
    assert {place.instance.uuid for place in h100.places} == {place.instance.uuid for place in made}
    assert [place.instance.profile for place in machine.create("1g.10gb")] == ["1g.10gb"]


def test_a_profile_that_is_not_there_is_refused_with_those_that_are_before_anything_is_made(machine: Machine) -> None:
    with pytest.raises(PoolRefusal, match=r"GPU 0 has no profile '1g\.5gb'; it has: 1g\.10gb \(19\), .*7g\.80gb \(0\)"):
        machine.create("1g.10gb", "1g.5gb")
    assert not machine.places()


def test_a_gpu_that_is_whole_is_left_so_and_it_is_said_who_splits_it(machine: Machine) -> None:
    with pytest.raises(PoolRefusal, match=r"GPU 1 .*MIG mode is off.*`nvidia-smi -i 1 -mig 1` as root"):
        machine.create("1g.5gb", gpu="1")
    machine.a100.is_to_be_split = True
    with pytest.raises(PoolRefusal, match=r"waits for a reset.*`nvidia-smi -i 1 --gpu-reset` as root"):
        machine.create("1g.5gb", gpu="1")
    machine.a100.can_be_split = False
    with pytest.raises(PoolRefusal, match=r"GPU 1 \(NVIDIA A100-SXM4-40GB\) cannot be split"):
        splitting.destroy(machine.state, machine.driver, gpu="1")
    assert not machine.a100.is_split


def test_there_are_only_the_gpus_that_there_are(machine: Machine) -> None:
    with pytest.raises(PoolRefusal, match=r"There is no GPU '2' here; there are: 0 \(NVIDIA H100.*, 1 \("):
        machine.create("1g.10gb", gpu="2")
    uuid = machine.h100.recorded["gpu"]["uuid"]
    assert len(machine.create("1g.10gb", gpu=uuid)) == 1


def test_where_there_is_no_room_it_is_said_what_was_made_before(machine: Machine) -> None:
    with pytest.raises(
        PoolRefusal, match=r"did not make 4g\.40gb of GPU 0: there is no room.* 1 of 3 were made before"
    ):
        machine.create("4g.40gb", "4g.40gb", "3g.40gb")
    assert [place.instance.profile for place in machine.places()] == ["4g.40gb"]


def test_who_is_not_root_is_told_who_may(machine: Machine) -> None:
    machine.create("1g.10gb")
    machine.library.is_root = False
    with pytest.raises(PoolRefusal, match=r"did not make 1g\.10gb of GPU 0: that is root's, .*nvidia-cap1.*as root"):
        machine.create("1g.10gb")
    with pytest.raises(PoolRefusal, match=r"did not remove MIG-.*that is root's"):
        splitting.destroy(machine.state, machine.driver, gpu="0")
    assert len(machine.places()) == 1


def test_another_answer_of_the_driver_is_told_by_its_number(machine: Machine) -> None:
    machine.library.failing["nvmlDeviceCreateGpuInstance"] = 999
    with pytest.raises(PoolRefusal, match="it answers 999 to nvmlDeviceCreateGpuInstance"):
        machine.create("1g.10gb")


def test_an_instance_is_removed_by_the_beginning_of_its_name(machine: Machine) -> None:
    one, other = machine.create("1g.10gb", "2g.20gb")
    gone = splitting.destroy(machine.state, machine.driver, instance=one.instance.uuid[:12])
    assert [place.instance for place in gone] == [one.instance]
    assert [place.instance for place in machine.places()] == [other.instance]
    with pytest.raises(PoolRefusal, match=rf"'MIG-nothing' is none of the instances here, .*{other.instance.uuid}"):
        splitting.destroy(machine.state, machine.driver, instance="MIG-nothing")
    machine.create("1g.10gb")
    with pytest.raises(PoolRefusal, match="'MIG-' is more than one of the instances"):
        splitting.destroy(machine.state, machine.driver, instance="MIG-")


def test_all_of_a_gpu_are_removed(machine: Machine) -> None:
    machine.create("1g.10gb", "1g.10gb", "3g.40gb")
    assert len(splitting.destroy(machine.state, machine.driver, gpu="0")) == 3
    assert not machine.h100.instances


def test_what_a_session_uses_stays_and_so_do_all_that_were_named_with_it(machine: Machine) -> None:
    free, used = machine.create("1g.10gb", "3g.40gb")
    machine.offer()
    numbers = {place.instance.uuid: place.number for place in machine.places()}
    number = numbers[used.instance.uuid]
    assert number is not None
    machine.serve(number, "s1", "ada")
    assert {place.instance.uuid: place.sessions for place in machine.places()} == {
        free.instance.uuid: (), used.instance.uuid: (("s1", "ada"),),
    }  # fmt: skip
    (machine.serve(number, "s2", "bob") / PROCESS).unlink()  # its executor has ended
    assert [session for place in machine.places() for session, _ in place.sessions] == ["s1"]
    machine.withhold(free.instance.uuid)
    said = rf'{used.instance.uuid} is in use by s1 of ada\. Put "MIG-.*" into withheld_devices in .*pool\.toml'
    with pytest.raises(PoolRefusal, match=said):
        splitting.destroy(machine.state, machine.driver, gpu="0")
    assert len(machine.places()) == 2
    machine.withhold(free.instance.uuid, used.instance.uuid)
    with pytest.raises(PoolRefusal, match="Nobody else comes; remove it once these kernels are shut down"):
        splitting.destroy(machine.state, machine.driver, gpu="0")


def test_what_a_pool_offers_is_withheld_before_it_is_removed(machine: Machine) -> None:
    [made] = machine.create("1g.10gb")
    machine.offer()
    with pytest.raises(PoolRefusal, match=r"is offered by the pool.*withheld_devices.*`workbench pool reload`"):
        splitting.destroy(machine.state, machine.driver, gpu="0")
    machine.withhold(made.instance.uuid)
    assert machine.places()[0].is_withheld
    assert splitting.destroy(machine.state, machine.driver, gpu="0")


def test_a_pool_that_is_down_uses_nothing(machine: Machine) -> None:
    machine.create("1g.10gb")
    machine.offer()
    machine.state.process_file("agent").unlink()
    assert splitting.remedy(machine.state) == []
    assert splitting.destroy(machine.state, machine.driver, gpu="0")


def test_what_others_than_the_pool_compute_on_stays(machine: Machine) -> None:
    machine.create("1g.10gb")
    machine.h100.instances[0].is_busy = True
    with pytest.raises(PoolRefusal, match=r"did not remove MIG-.*a process is still on it, which `nvidia-smi` names"):
        splitting.destroy(machine.state, machine.driver, gpu="0")
    assert len(machine.places()) == 1


def test_the_pool_is_told_of_changes_by_the_command_that_is_right_here(machine: Machine) -> None:
    machine.offer()
    assert splitting.remedy(machine.state) == ["workbench pool reload"]
    (machine.state.root / "joined.json").write_text("{}")
    assert splitting.remedy(machine.state) == ["workbench node down", "workbench node up"]


def test_a_machine_without_a_pool_can_be_looked_at(tmp_path: Path) -> None:
    driver = NvmlMig(PlayedNvml([PlayedGpu(recorded("a100_40gb"))]))
    driver.create(driver.gpus()[0], driver.profiles(driver.gpus()[0])[0])
    [split] = splitting.overview(at(tmp_path / "nowhere"), driver)
    [place] = split.places
    assert (place.number, place.sessions, place.is_withheld) == (None, (), False)
    assert not (tmp_path / "nowhere").exists()
