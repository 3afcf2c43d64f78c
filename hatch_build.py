"""Builds what is compiled into the wheel, and in place for editable installs, where there is a C compiler.

Two things are: what is written in C (the core of recording and of trips, ops that recur in an executor, launches that a
thread of their own makes, and waiting for what two processes share), and the modules on the path of an op (listed in
pyproject.toml), which mypyc compiles from their own Python source. All works in Python as well.

`GPU_WORKBENCH_BUILD_CORE` says "auto" (the default: without a compiler the wheel is pure, and says so), "on" (no
wheel without what is compiled) or "off" (a pure wheel, for any Python and machine).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_VARIABLE = "GPU_WORKBENCH_BUILD_CORE"
#: What is written in C: each source with the module that is made of it.
_CORES = {
    "kernelproxy/csrc/core.c": "kernelproxy/_core",
    "gpu_backend/devices/csrc/launching.c": "gpu_backend/devices/_launching",
    "gpu_backend/executor/program/csrc/recurring.c": "gpu_backend/executor/program/_recurring",
    "gpu_backend/transport/csrc/copying.c": "gpu_backend/transport/_copying",
    "gpu_backend/transport/csrc/waiting.c": "gpu_backend/transport/_waiting",
    "gpu_backend/transport/csrc/whole.c": "gpu_backend/transport/_whole",
}
#: Holds the code of all compiled modules; what lies beside each module's source only points into it.
_PACKAGE, _GROUP = "gpu_backend", "gpu_backend.native"
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
#: Run where the packages are, so that no path of this machine gets into what is compiled. The types of the libraries
#: that the modules deal with must be there (see what the build requires): mypyc takes what it does not find for any.
_SETUP = """
import sys
from mypyc.build import mypycify
from setuptools import setup
modules = mypycify(["--config-file=mypy.ini", *sys.argv[2:]], opt_level="2", debug_level="0", group_name=sys.argv[1])
setup(name="compiled", ext_modules=modules, script_args=["-q", "build_ext", "--build-lib=made", "--build-temp=objects"])
"""
_MYPY = "[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n"


class Compiled(BuildHookInterface[Any]):
    """The hook that hatchling calls for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have what was made in the wheel.

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
        root = Path(self.root)
        for what, failure, made in (
            ("What is written in C", *_compile_cores(root)),
            ("What mypyc compiles", *_compile_modules(root, self.config["compiled"])),
        ):
            if not failure:
                build_data["artifacts"] += [f"/{one}" for one in made]
                build_data["pure_python"], build_data["infer_tag"] = False, True
            elif said == "on":
                raise RuntimeError(f"{what} cannot be built: {failure}")
            else:
                self.app.display_warning(f"{what} is left out, and done in Python, which is slower: {failure}")


def _compile_cores(root: Path) -> tuple[str, list[str]]:
    """Compile what is written in C, all or nothing; return what was in the way, "" if nothing, and what was made."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_path("include")
    flags = ["-O2", "-DNDEBUG", "-fPIC", "-shared", "-pthread", f"-I{include}"]
    made = {f"{core}{_SUFFIX}": root / f"{core}{_SUFFIX}.{os.getpid()}" for core in _CORES.values()}
    try:
        for source, fresh in zip(_CORES, made.values(), strict=True):
            run = subprocess.run(
                [*compiler, *flags, str(root / source), "-o", str(fresh)], capture_output=True, text=True, check=False
            )
            if run.returncode:
                return f"{compiler[0]} says: {run.stderr.strip()[-500:]}", []
        for one, fresh in made.items():
            fresh.replace(root / one)
    except OSError as error:
        return f"{compiler[0]} cannot be run ({error.strerror})", []
    finally:
        for fresh in made.values():
            fresh.unlink(missing_ok=True)
    return "", list(made)


def _compile_modules(root: Path, modules: list[str]) -> tuple[str, list[str]]:
    """Compile ``modules``, all or none; return what was in the way, "" if nothing, and what was made.

    What is newer than all sources there stays as it is: it takes a minute to make.
    """
    names = [_GROUP + "__mypyc", *[module.removesuffix(".py").replace("/", ".") for module in modules]]
    made = [f"{name.replace('.', '/')}{_SUFFIX}" for name in names]
    if _is_fresh(root, made):
        return "", made
    for old in _compiled(root):
        old.unlink()  # first: what is stale must not be taken for its source
    with tempfile.TemporaryDirectory() as place:
        os.symlink(root / _PACKAGE, Path(place, _PACKAGE))
        Path(place, "mypy.ini").write_text(_MYPY)
        run = subprocess.run(
            [sys.executable, "-c", _SETUP, _GROUP, *modules], cwd=place, capture_output=True, text=True, check=False
        )
        if run.returncode:
            return f"mypyc says: {(run.stderr + run.stdout).strip()[-500:]}", []
        for one in made:
            shutil.copyfile(Path(place, "made", one), root / one)
    return "", made


def _compiled(root: Path) -> set[Path]:
    """Return what is compiled there of the modules, for this Python."""
    return set((root / _PACKAGE).rglob(f"*{_SUFFIX}")) - {root / f"{core}{_SUFFIX}" for core in _CORES.values()}


def _is_fresh(root: Path, made: list[str]) -> bool:
    """Tell whether ``made`` are just what is there, and newer than all sources."""
    there = _compiled(root)
    if there != {root / one for one in made}:
        return False
    sources = [root / "pyproject.toml", root / "hatch_build.py"]
    sources += (root / _PACKAGE).rglob("*.py")
    return min(one.stat().st_mtime for one in there) > max(one.stat().st_mtime for one in sources)
