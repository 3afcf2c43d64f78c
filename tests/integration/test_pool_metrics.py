"""A real pool tells Prometheus its figures where its settings say so."""

from __future__ import annotations

from urllib.error import URLError
from urllib.request import urlopen

from tests.spare_ports import spare_port

from .conftest import MakePool, until


def test_figures_are_there_again_after_the_gateway_was_killed(make_pool: MakePool) -> None:
    port = spare_port()
    pool = make_pool(metrics_port=port, metrics_users="named")
    pool.open()

    def is_told() -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                return b'gpu_workbench_sessions{state="serving",user="ada"} 1.0' in answer.read()
        except (URLError, ConnectionError):
            return False

    until(is_told)
    pool.kill("gateway")
    until(is_told)
