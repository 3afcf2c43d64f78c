"""JupyterLab on a pool that is there already, as `workbench lab` starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.notebook_pool import wait_until
from tests.integration.running_lab import TOKEN
from workbench.commands.lab import jupyter_options

#: How long JupyterLab has to end.
_PATIENCE_SECONDS = 90


@contextmanager
def lab_server(notebooks: Path, settings: Path) -> Iterator[str]:
    """Give the address of a JupyterLab that serves ``notebooks``, with a user's ``settings``."""
    options = jupyter_options(Namespace(port=None, no_browser=True, jupyter=[]), notebooks, "")
    variables = {**os.environ, "JUPYTER_TOKEN": TOKEN, "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    command = [sys.executable, "-m", "jupyterlab", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables) as process:
        try:
            served = Path(os.environ["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{process.pid}.json"
            wait_until(lambda: _address(served))
            set_up(settings, "apputils-extension/notification", fetchNews="false")
            # JupyterLab asks for a name at the first save, unless that was one of those that it makes by itself; and
            # two saves at once are a conflict to it. Nobody is here to answer.
            set_up(settings, "docmanager-extension/plugin", autosave=False, renameUntitledFileOnSave=False)
            yield _address(served)
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:  # JupyterLab is through, and a thread of AnyIO's keeps its process
                process.kill()


def _address(served: Path) -> str:
    """Return where the server is; "" while it has not written that down to the end."""
    try:
        return str(json.loads(served.read_text())["url"])
    except (OSError, ValueError):
        return ""


def set_up(settings: Path, plugin: str, **values: str | bool) -> None:
    """Write a user's settings of JupyterLab, which count from the next page on."""
    file = settings / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(values))
