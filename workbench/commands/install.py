"""``workbench install``: make the kernel known to a Jupyter that lives in another environment."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

from workbench.environment import KERNEL_NAME
from workbench.terminal import add_json_option, complain, show

KERNELSPEC = Path(__file__).parents[1] / "kernelspec"


def configure(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Jupyter in gpu-workbench's own environment has the kernel already. This is for any other one."
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--user", action="store_true", help="for every Jupyter of this user")
    where.add_argument("--prefix", type=Path, help="for the Jupyter of the environment at PREFIX")
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: Namespace) -> int:
    """Write the kernelspec, and say where."""
    try:
        place = install(user=arguments.user, prefix=arguments.prefix)
    except OSError as error:
        complain(f"The kernel cannot be installed: {error}. Choose a --prefix that you may write to, or --user.")
        return 1
    text = f'The kernel "Remote GPU (CuPy)" is in {place} and runs {sys.executable}.'
    show(arguments, text, {"kernelspec": str(place), "python": sys.executable})
    return 0


def install(*, user: bool = False, prefix: Path | None = None) -> Path:
    """Write the kernelspec for another environment's Jupyter, and return its directory."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, KERNEL_NAME)
        shutil.copytree(KERNELSPEC, source)
        (source / "kernel.json").write_text(json.dumps(portable_spec(), indent=2) + "\n")
        wanted = {"prefix": str(prefix)} if prefix else {"user": user}
        return Path(KernelSpecManager().install_kernel_spec(str(source), KERNEL_NAME, **wanted))


def portable_spec() -> dict[str, Any]:
    """Return our kernel.json with this Python's path, and without the provisioner.

    Jupyter hides a kernel whose provisioner its own environment does not have; without one the kernel takes its lease
    by itself.
    """
    spec: dict[str, Any] = json.loads((KERNELSPEC / "kernel.json").read_text())
    spec["argv"][0] = sys.executable
    del spec["metadata"]["kernel_provisioner"]
    return spec
