"""The command ``workbench``. Each sub-command is one file in `workbench.commands`.

Exit status: 0 done, 1 not done (one sentence on stderr says why), 2 wrong usage, 130 interrupted. ``workbench run``
ends with the status of its program.
"""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import workbench
from gpu_backend.wire.errors import WorkbenchError
from workbench.terminal import complain
from workbench.wrong_usage import WrongUsage

#: Sub-command and what `workbench --help` says of it. Only the one that is used is imported.
_COMMANDS = {
    "lab": "open JupyterLab with a pool of this machine's own",
    "run": "run a Python program with remote CuPy",
    "connect": "use a pool on another machine",
    "pool": "run a pool on this machine",
    "node": "add machines to a pool, and look after them",
    "doctor": "check everything between the notebook and the pool",
    "install": "make the kernel known to a Jupyter in another environment",
}
#: Sub-commands of `pool` that ask the pool that one is connected to; they need no more than the notebook's side.
_OF_CLIENTS = (["pool", "usage"], ["pool", "top"])
#: Commands of a pool's side, and the extra with which it is installed.
_EXTRAS = {"lab": "lab", "pool": "pool", "node": "pool"}
_KEY_OPTIONS = ("--key", "--server-key")


class _Parser(ArgumentParser):
    """A command's words. What it does not know it refuses itself: its usage helps, that of ``workbench`` does not."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return what was said, and nothing that is left over."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["run"]:  # what follows is Python's own command line, not ours to parse
            return int(_module("run").execute(words[1:]))
        arguments = parsed(words)
        return int(arguments.execute(arguments))
    except WorkbenchError as error:
        complain(str(error))
        return 2 if isinstance(error, WrongUsage) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever reads what we print has seen enough
        raise
    except OSError as error:
        from workbench.keeping import refused_by_system  # not needed by `workbench run`, which is to start quickly

        complain(refused_by_system(error))
        return 1


def parsed(words: Sequence[str]) -> Namespace:
    """Return what is asked for by ``words``, with the function that does it as ``execute``.

    Raises
    ------
    SystemExit
        If they are no command line (status 2; stderr says why), or ask for help or the version (0).
    """
    return _parser(words).parse_args(with_keys_attached(words))


def with_keys_attached(words: Sequence[str]) -> list[str]:
    """Return ``words`` with each public key attached to its option: one key in 85 starts with a hyphen."""
    attached: list[str] = []
    for word in words:
        if attached and attached[-1] in _KEY_OPTIONS:
            attached[-1] += f"={word}"
        else:
            attached.append(word)
    return attached


def _parser(words: Sequence[str]) -> ArgumentParser:
    from workbench import catalog_cli  # not needed by `workbench run`, which is to start quickly

    parser = _Parser(
        prog="workbench", description="CuPy in JupyterLab on a GPU that a whole group shares.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"gpu-workbench {workbench.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, help_text in _COMMANDS.items():
        one = commands.add_parser(name, help=help_text)
        if [name] == list(words[:1]):
            _module("pool_client" if list(words[:2]) in _OF_CLIENTS else name).configure(one)
    catalog_cli.register(commands)
    return parser


def _module(command: str) -> ModuleType:
    try:
        return importlib.import_module(f"workbench.commands.{command}")
    except ModuleNotFoundError as error:
        if command not in _EXTRAS:
            raise
        raise WorkbenchError(
            f"`workbench {command}` needs {error.name}, and only the notebook's side is installed here. "
            f"Run `pip install 'gpu-workbench[{_EXTRAS[command]}]'`, or use a pool elsewhere with `workbench connect`."
        ) from error
