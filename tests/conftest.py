"""For all tests: Ctrl-C means something."""

from __future__ import annotations

import signal

# Where tests run in the background of a script Ctrl-C is ignored, and every process that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
