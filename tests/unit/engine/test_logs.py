"""Logs: one line a record whatever is in its words, and files that do not grow without end."""

from __future__ import annotations

import logging
from pathlib import Path

from gpu_backend.engine.logs import BoundedHandler, LineFormatter

FORMAT = LineFormatter("%(name)s %(message)s")


def record(words: str, error: Exception | None = None) -> logging.LogRecord:
    about = (type(error), error, None) if error is not None else None
    return logging.LogRecord("node", logging.INFO, "", 0, "said: %s", (words,), about)


def test_words_of_a_peer_make_no_line_of_their_own() -> None:
    assert FORMAT.format(record("a\r\n2026 node FORGED\x1b[2J größe")) == "node said: a  2026 node FORGED [2J größe"
    assert len(FORMAT.format(record("x" * 1_000_000))) < 3_000


def test_lines_of_an_error_cannot_pass_for_records() -> None:
    lines = FORMAT.format(record("", ValueError("bad\n2026 node FORGED\x1b[2J"))).splitlines()
    assert lines[0].startswith("node said:")
    assert lines[1:] == ["    ValueError: bad", "    2026 node FORGED [2J"]


def test_a_log_is_cut_to_its_newest_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("a", encoding="utf-8") as file:
        handler = BoundedHandler(file, most_bytes=1_000)
        handler.setFormatter(FORMAT)
        for number in range(1_000):
            handler.emit(record(str(number)))
        file.write("of somebody else\n")
    lines = path.read_text().splitlines()
    assert path.stat().st_size < 1_100
    assert lines[-2:] == ["node said: 999", "of somebody else"]
    assert all(line.startswith("node said: ") for line in lines[:-1]), "none is cut in the middle"


def test_what_has_no_lines_is_not_cut_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("a", encoding="utf-8") as file:
        handler = BoundedHandler(file, most_bytes=100_000)
        handler.setFormatter(FORMAT)
        file.write("." * 200_000)
        handler.emit(record("and then"))
    kept = path.read_text()
    assert kept.endswith("..node said: and then\n")
    assert len(kept) == 50_000


def test_a_file_that_is_not_appended_to_is_left_alone(tmp_path: Path) -> None:
    """What follows would be written to where the end was, behind a hole."""
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8") as file:
        handler = BoundedHandler(file, most_bytes=100)
        for number in range(100):
            handler.emit(record(str(number)))
    assert len(path.read_text().splitlines()) == 100
