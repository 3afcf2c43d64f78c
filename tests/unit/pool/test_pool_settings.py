"""What an operator can set, and where a pool keeps its things."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from gpu_backend.node import settings as node_settings
from gpu_backend.node.mps_files import MpsSharing
from gpu_backend.pool import commands, people, setup, state
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.settings import PoolSettings, SharedByMps
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from kernelproxy import settings as client_settings


@pytest.fixture
def pool(tmp_path: Path) -> state.PoolState:
    return state.at(tmp_path / "pool")


def test_rendered_settings_are_read_back(tmp_path: Path) -> None:
    written = PoolSettings(name='a "pool"', lease_seconds=12.5, executor_command=("numactl", "-N0", "python"))
    (tmp_path / "pool.toml").write_text(pool_settings.render(written))
    assert pool_settings.read(tmp_path / "pool.toml") == written


def test_every_setting_stands_in_the_file_with_its_description() -> None:
    text = pool_settings.render(PoolSettings())
    assert tomllib.loads(text) == {}, "defaults are comments"
    for name, field in PoolSettings.model_fields.items():
        assert f"# {field.description}\n# {name} = " in text


def test_what_is_wrong_with_a_setting_is_said_without_a_word_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text('policy = "tsg"\n')
    with pytest.raises(PoolRefusal, match=r"is not right: policy: there is no policy 'tsg'; installed are "):
        pool_settings.read(tmp_path / "pool.toml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cpu_devices": "8"}, "cpu_devices: it is to be a whole number, not '8'"),
        ({"devices": "gpu"}, "devices: it is to be 'auto', 'cuda' or 'cpu', not 'gpu'"),
        ({"placement": "spread"}, "placement: it is to be a list between brackets, not 'spread'"),
        ({"passes": ["fast"]}, "passes.0: it is to be 'store', "),
        ({"device_policies": {"x": "tgs"}}, "device_policies.x: it is to be a whole number, not 'x'"),
        ({"device_policies": 3}, "device_policies: it is to be a table between braces, not 3"),
        ({"lease_seconds": float("inf")}, "lease_seconds: it is to be a number with an end, not inf"),
        ({"name": ""}, "name: it is to be a text that is not empty, not ''"),
        ({"name": 61 * "x"}, "name: it is to be a text of 60 characters or less, not 'x"),
        ({"largest_limit": 2}, "largest_limit: it is to be 1.0 or less, not 2"),
    ],
)
def test_a_value_of_another_kind_is_told_in_our_words_with_what_there_is(given: dict[str, object], said: str) -> None:
    with pytest.raises(PoolRefusal) as told:
        pool_settings.made_of(given)
    assert f"these settings: {said}" in str(told.value)


@pytest.mark.parametrize("field", ["name", "ray_token_file", "policy", "sandbox_reads"])
@pytest.mark.parametrize("mark", ["\n", "\t", "\x1b[2J", "\x00", "\u2028", "\u202e"])
def test_a_text_that_is_no_line_is_refused_by_name(field: str, mark: str) -> None:
    given = f"a{mark}b"
    with pytest.raises(PoolRefusal, match=rf"settings: {field}: .* has a character that cannot be shown") as told:
        pool_settings.made_of({field: (given,) if field == "sandbox_reads" else given})
    assert mark not in str(told.value)


def test_a_text_of_mps_and_a_policy_of_a_device_are_lines_too() -> None:
    for given in ({"devices_shared_by_mps": {0: {"group": "a\nb"}}}, {"device_policies": {0: "a\nb"}}):
        with pytest.raises(PoolRefusal, match=r"cannot be shown|there is no policy"):
            pool_settings.made_of(given)


@pytest.mark.parametrize("field", ["listen_host", "executor_host", "advertise_host", "nodes_host"])
def test_what_is_no_host_is_refused_by_name(field: str) -> None:
    for host in ("a b", "a/b", "a\nb", "tcp://a"):
        with pytest.raises(PoolRefusal, match=rf"{field}: "):
            pool_settings.made_of({field: host})
    for host in ("gpu.example.org", "::1", "[fe80::1%eth0]", "*", "10.0.0.1", "gpu_1"):
        assert getattr(pool_settings.made_of({field: host}), field) == host


@pytest.mark.parametrize("text", ["7800", "7800-", "7899-7800", "80-90", "7800-70000", "all", "-1-5"])
def test_what_is_no_range_of_ports_is_told_so(text: str) -> None:
    with pytest.raises(PoolRefusal, match=r"executor_ports: .* is no range of ports"):
        pool_settings.made_of({"executor_ports": text})


def test_what_is_set_for_executors_reaches_the_node(pool: state.PoolState) -> None:
    setup.prepare(pool, PoolSettings(executor_ports="7800-7899", kept_upload_bytes_per_session=5))
    node = node_settings.read(pool.node)
    assert (node.executor_ports, node.kept_bytes) == ((7800, 7899), 5)
    setup.prepare(pool, PoolSettings())
    assert node_settings.read(pool.node).executor_ports == (0, 0)


def test_devices_that_are_shared_by_mps_are_read_back_and_reach_the_node(pool: state.PoolState) -> None:
    shared = SharedByMps(group="vision", threads_percent=25, memory_bytes=3 << 30)
    written = PoolSettings(devices_shared_by_mps={1: shared, 2: SharedByMps(group="speech")})
    setup.prepare(pool, written)
    assert pool_settings.read(pool.settings_file) == written
    node = node_settings.read(pool.node)
    assert node.mps_devices == {
        1: MpsSharing(group="vision", memory_bytes=3 << 30, threads_percent=25.0), 2: MpsSharing(group="speech"),
    }  # fmt: skip
    assert [node.policy_of(n) for n in (0, 1, 2)] == ["fair_share", "driver", "driver"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{ 0 = { } }", r"devices_shared_by_mps.0.group: it is missing"),
        ("{ 0 = { group = '' } }", r"devices_shared_by_mps.0.group: "),
        ("{ 0 = { group = 'a', threads_percent = 0 } }", r"threads_percent: "),
        ("{ 0 = { group = 'a', memory_bytes = 1000 } }", r"memory_bytes: 1000 bytes are too few to begin with"),
        ("{ 1 = { group = 'a' } }", r"device 1 has a policy, and is shared by MPS, where there are no turns"),
    ],
)
def test_what_is_wrong_with_sharing_by_mps_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pool.toml").write_text(f"device_policies = {{ 1 = 'tgs' }}\ndevices_shared_by_mps = {text}\n")
    with pytest.raises(PoolRefusal, match=said):
        pool_settings.read(tmp_path / "pool.toml")


def test_every_setting_stands_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "pool.md").read_text()
    missing = [
        name
        for name, field in PoolSettings.model_fields.items()
        if f"| `{name}` | `{pool_settings.as_toml(field.default)}` | {field.description} |" not in page
    ]
    assert not missing


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("lease_seconds = -1", "lease_seconds"),
        ("lease = 5", "there is no setting 'lease'"),
        ("name = ", "cannot be read"),
        ("devices = 'tpu'", "devices"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, line: str, named: str) -> None:
    (tmp_path / "pool.toml").write_text(line)
    with pytest.raises(PoolRefusal, match=named):
        pool_settings.read(tmp_path / "pool.toml")


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(PoolRefusal, match=r"listen_port: it is to be 1 or more, not .* Nothing was started"):
        pool_settings.made_of({"listen_port": 0})
    assert pool_settings.made_of({"listen_port": 8801}).listen_port == 8801


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert pool_settings.read(tmp_path / "pool.toml") == PoolSettings()


def test_listening_everywhere_needs_a_name(pool: state.PoolState) -> None:
    with pytest.raises(PoolRefusal, match="advertise_host"):
        setup.prepare(pool, PoolSettings(listen_host="0.0.0.0"))


def test_socket_paths_fit_however_deep_the_state_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("deep" * 20) / ("deeper" * 20)
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    runtime = state.at(deep).runtime
    assert len(os.fsencode(runtime / "x" / "01234567" / "control")) <= 107
    assert runtime != state.at(tmp_path).runtime


def test_the_sockets_are_found_again_from_another_login(pool: state.PoolState, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.make()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert state.at(pool.root) == pool


def test_a_directory_that_others_can_enter_is_refused(pool: state.PoolState) -> None:
    pool.make()
    pool.runtime.chmod(0o755)
    with pytest.raises(PoolRefusal, match="chmod 700"):
        pool.make()


def test_a_planted_link_is_refused(pool: state.PoolState, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    pool.runtime.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PoolRefusal, match="not a directory of yours"):
        pool.make()


def test_preparing_twice_changes_nothing(pool: state.PoolState) -> None:
    setup.prepare(pool, PoolSettings())
    files = {path: path.read_bytes() for path in pool.root.rglob("*") if path.is_file() and "sqlite" not in path.name}
    setup.prepare(pool, PoolSettings())
    assert files == {path: path.read_bytes() for path in files}
    assert [person.is_operator for person in people.people(pool)] == [True]


def test_nothing_that_is_secret_can_be_read_by_others(pool: state.PoolState) -> None:
    setup.prepare(pool, PoolSettings())
    commands.write_client_file(pool, pool.root / "client.toml")
    people.add_user(pool, "ada")
    people.make_key(pool, "ada", pool.root / "ada.key")
    readable = [path for path in pool.root.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
    assert [path.name for path in readable if path.suffix in (".key", ".sqlite", ".json", ".toml")] == []


def test_the_client_file_is_what_clients_read(pool: state.PoolState) -> None:
    setup.prepare(pool, PoolSettings())
    path = commands.write_client_file(pool, pool.root / "client.toml")
    settings = client_settings.load(path)
    door = commands.operator_door(pool)
    assert (settings.gateway, settings.server_key.encode()) == (door.endpoint, door.server_key)
    assert curve.load(settings.key_file) == door.keys


def test_the_address_is_the_network_s_if_the_pool_listens_there(pool: state.PoolState) -> None:
    setup.prepare(pool, PoolSettings(listen_host="0.0.0.0", listen_port=7001, advertise_host="gpu.lab"))
    assert people.address(pool).gateway == "tcp://gpu.lab:7001"


def test_a_pool_that_never_was_says_what_to_run(pool: state.PoolState) -> None:
    with pytest.raises(PoolUnreachable, match="workbench pool up"):
        commands.status(pool)
    commands.down(pool)  # nothing to do, and no error
