"""The files that deploy a pool say what they must: their commands are ours, and no secret is where it shows."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from workbench import cli

FILES = Path(__file__).parents[3] / "docs" / "how-to" / "deploy"
UNITS = sorted((FILES / "systemd").glob("*.service"))
COMPOSE = sorted((FILES / "compose").glob("*.yaml"))
MANIFESTS = sorted((FILES / "kubernetes").glob("*.yaml"))
PROGRAM = "/opt/gpu-workbench/bin/workbench"
#: Our commands in a shell, up to what follows them there.
IN_SHELL = re.compile(r'"?(?:\$workbench|\bworkbench)"? ((?:pool|node) [a-z].*)')


class Strict(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML's own loader keeps the last in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: a key is there twice"
        return super().construct_mapping(node, deep)


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), Strict))  # a SafeLoader


def unit(path: Path) -> configparser.SectionProxy:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("Environment=")]
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string("\n".join(lines))
    return parser["Service"]


def manifests(kind: str) -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from (one for one in documents(path) if one["kind"] == kind)


def parsed(words: list[str]) -> Any:
    return cli.parsed(words).execute


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_lets_sessions_outlive_it(path: Path) -> None:
    service = unit(path)
    # `mixed` or `control-group`, the default, would end the executors with it, and their sockets would go.
    assert (service["Type"], service["KillMode"], service["RuntimeDirectoryPreserve"]) == ("notify", "process", "yes")
    assert "PrivateTmp" not in service
    assert service["User"] != "root"
    for name in ("ExecStart", "ExecReload"):
        if name in service:
            program, *words = shlex.split(service[name])
            assert program == PROGRAM
            assert parsed(words).__name__ == {"ExecStart": "serve", "ExecReload": "reload"}[name]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_takes_a_unit(path: Path, tmp_path: Path) -> None:
    here = tmp_path / path.name
    here.write_text(path.read_text().replace(PROGRAM, shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_keeps_one_of_ours_in_the_foreground(path: Path) -> None:
    (file,) = documents(path)
    (service,) = file["services"].values()
    assert parsed(service["command"]).__name__ == "serve"
    assert parsed(service["healthcheck"]["test"][2:]).__name__ == "status"
    assert [parsed(hook["command"][1:]).__name__ for hook in service["pre_stop"]] == ["down"]
    assert service["init"] is True, "executors are nobody's children"
    assert service["restart"] == "on-failure", "status 0 is an end that was asked for"
    assert not {"environment", "env_file", "privileged"} & service.keys()
    assert [one.partition(":")[0] for one in service["volumes"]] == list(file["volumes"])


def test_manifests_are_gathered_by_one_kustomization() -> None:
    (gathering,) = (one for path in MANIFESTS for one in documents(path) if one["kind"] == "Kustomization")
    assert sorted(gathering["resources"]) == sorted(
        path.name for path in MANIFESTS if path.name != "kustomization.yaml"
    )
    assert not list(manifests("Secret")), "made by hand, from files, and in no manifest"


def test_pods_run_what_is_ours_and_have_no_rights() -> None:
    services = {one["metadata"]["name"]: one["spec"] for one in manifests("Service")}
    sets = list(manifests("StatefulSet"))
    assert len(sets) == 2
    for one in sets:
        spec, pod = one["spec"], one["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        words = container.get("args") or shlex.split(_last_line(container["command"][-1]))[2:]
        assert parsed(words).__name__ == "serve"
        assert parsed(container["readinessProbe"]["exec"]["command"][1:]).__name__ == "status"
        labels = pod["metadata"]["labels"]
        assert spec["selector"]["matchLabels"] == labels == services[spec["serviceName"]]["selector"]
        assert pod["spec"]["shareProcessNamespace"] is True
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert "env" not in container
        claimed = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
        volumes = claimed | {volume["name"] for volume in pod["spec"].get("volumes", ())}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("path", [*COMPOSE, *MANIFESTS, *sorted(FILES.glob("slurm/*"))], ids=lambda path: path.name)
def test_commands_in_shells_are_ours(path: Path) -> None:
    text = re.sub(r" *\\\n *", " ", path.read_text())
    found = [match[1] for match in IN_SHELL.finditer(text) if path.suffix == ".sbatch" or "exec " in match[0]]
    if path.suffix == ".sbatch":
        assert len(found) > 5
    for words in found:
        parsed(shlex.split(re.split(r"[<>|&]", words.replace("||", "|"))[0].replace('"$', '"').replace("$", "")))


def _last_line(script: str) -> str:
    return script.strip().splitlines()[-1]
