"""The examples, run as a person runs them: Jupyter starts the kernel, its arrays live in a pool on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
WITH_A_PLOT = {"02_image_processing", "03_heat_equation", "04_pca_and_kmeans"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("examples")) as own:
        yield own


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_runs_through_the_pool(path: Path, pool: PoolState) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=280, iopub_timeout=280, resources={"metadata": {"path": str(EXAMPLES)}})
    watching = nbformat.v4.new_code_cell(
        "import kernelproxy\n"
        "session = kernelproxy.current_session()\n"
        "print(session.device['kind'], session.counters.ops, session.counters.round_trips)"
    )
    notebook.cells.append(watching)

    client.execute()

    # Joined: what is printed may come in several pieces.
    said = "".join(one.text for one in outputs(notebook) if one.output_type == "stream" and one.name == "stdout")
    assert not [output.text for output in outputs(notebook) if output.get("name") == "stderr"]
    kind, ops, round_trips = said.splitlines()[-1].split()
    assert kind == "cpu"
    assert int(ops) > 20, "the arrays were somewhere else"
    assert int(round_trips) < int(ops)
    plots = [output for output in outputs(notebook) if "image/png" in output.get("data", {})]
    assert bool(plots) == (path.stem in WITH_A_PLOT)
    wait_until(lambda: sessions(pool) == ())  # the kernel is gone, and its session closes
