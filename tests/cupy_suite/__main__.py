"""``python -m tests.cupy_suite``: fetch, run, compare and table."""

from __future__ import annotations

from tests.cupy_suite.command import main

raise SystemExit(main())
