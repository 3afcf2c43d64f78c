"""Builds the compiled core into the wheel, and in place for editable installs, where there is a C compiler.

`GPU_WORKBENCH_BUILD_CORE` says "auto" (the default: without a compiler the wheel is pure, and says so), "on" (no
wheel without the core) or "off" (a pure wheel, for any Python and machine).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_VARIABLE = "GPU_WORKBENCH_BUILD_CORE"
_SOURCE, _MODULE = "kernelproxy/csrc/core.c", "kernelproxy/_core"


class CompiledCore(BuildHookInterface[Any]):
    """The hook that hatchling calls for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the core, and have it in the wheel.

        Raises
        ------
        ValueError
            If the environment says something else than "auto", "on" or "off".
        RuntimeError
            If it is asked for and cannot be compiled.
        """
        said = os.environ.get(_VARIABLE) or "auto"
        if said not in ("auto", "on", "off"):
            raise ValueError(f"{_VARIABLE} is {said!r}. It may be auto, on or off.")
        if self.target_name != "wheel" or said == "off":
            return
        made = f"{_MODULE}{sysconfig.get_config_var('EXT_SUFFIX')}"
        failure = _compile(Path(self.root), made)
        if not failure:
            build_data["artifacts"].append(f"/{made}")
            build_data["pure_python"], build_data["infer_tag"] = False, True
        elif said == "on":
            raise RuntimeError(f"The compiled core cannot be built: {failure}")
        else:
            self.app.display_warning(
                f"The compiled core is left out, and recording is done in Python, which is slower: {failure}"
            )


def _compile(root: Path, made: str) -> str:
    """Compile the core into the file ``made``, whole or not at all; return what was in the way, "" if nothing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    fresh = root / f"{made}.{os.getpid()}"
    include = sysconfig.get_path("include")
    flags = ["-O2", "-DNDEBUG", "-fPIC", "-shared", f"-I{include}"]
    try:
        run = subprocess.run(
            [*compiler, *flags, str(root / _SOURCE), "-o", str(fresh)], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{compiler[0]} cannot be run ({error.strerror})"
    if run.returncode:
        fresh.unlink(missing_ok=True)
        return f"{compiler[0]} says: {run.stderr.strip()[-500:]}"
    fresh.replace(root / made)
    return ""
