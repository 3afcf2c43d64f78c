"""The kernelspec: what Jupyter is told, and what `workbench install` makes of it elsewhere."""

from __future__ import annotations

import json
import struct
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpec

import workbench.provisioner
from workbench.cli import main
from workbench.commands.install import KERNELSPEC


def test_jupyter_is_told_all() -> None:
    spec = KernelSpec.from_resource_dir(str(KERNELSPEC))
    assert spec.display_name == "Remote GPU (CuPy)"
    assert spec.interrupt_mode == "signal"
    assert spec.metadata["supported_encryption"] == ["curve"]
    assert spec.argv[0] == "python"  # Jupyter puts its own interpreter here
    assert "{connection_file}" in spec.argv


def test_the_named_provisioner_is_registered() -> None:
    spec = KernelSpec.from_resource_dir(str(KERNELSPEC))
    name = spec.metadata["kernel_provisioner"]["provisioner_name"]
    (entry,) = entry_points(group="jupyter_client.kernel_provisioners", name=name)
    assert entry.load() is workbench.provisioner.RemoteGpuProvisioner


@pytest.mark.parametrize("size", [32, 64])
def test_logos_have_their_size(size: int) -> None:
    data = (KERNELSPEC / f"logo-{size}x{size}.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (size, size)


def test_the_drawing_is_self_contained() -> None:
    drawing = (KERNELSPEC / "logo-svg.svg").read_text()
    assert drawing.startswith("<svg")
    assert "href" not in drawing
    assert "script" not in drawing


def test_installed_elsewhere_it_names_this_python_and_needs_no_provisioner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--prefix", str(tmp_path), "--json"]) == 0
    place = Path(json.loads(capsys.readouterr().out)["kernelspec"])
    assert place == tmp_path / "share" / "jupyter" / "kernels" / "remote-gpu"
    spec = KernelSpec.from_resource_dir(str(place))
    assert spec.argv[0] == sys.executable
    assert "kernel_provisioner" not in spec.metadata
    assert (place / "logo-64x64.png").exists()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["install", "--prefix", str(tmp_path / "file")]) == 1
    assert "--user" in capsys.readouterr().err
