"""The page for operators, typed from top to bottom: each of its commands does what it says, after those before it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from gpu_backend.transport import curve
from tests.integration.terminal import operating

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-pool.md"
PLACEHOLDER = re.compile(r"'<[^>]*key[^>]*>'")


def commands() -> list[str]:
    """Return the commands of the page that need a pool which is up."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"workbench pool (?!up\b)", line)]


def test_its_commands_work_in_their_order(tmp_path: Path) -> None:
    public = curve.generate().public.decode()
    typed = commands()
    assert {line.split()[2] for line in typed} >= {"status", "users", "keys", "shares", "quotas", "usage", "top"}
    with operating(tmp_path) as operator:
        for line in typed:
            words = shlex.split(PLACEHOLDER.sub(lambda _: shlex.quote(public), line))[1:]
            done = operator.run(*words)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
        (ada,) = [one for one in operator.json("pool", "quotas")["quotas"] if one["name"] == "ada"]
        assert (ada["group"], ada["sessions"], ada["memory_bytes"]) == ("lab", 4, 40 << 30)
