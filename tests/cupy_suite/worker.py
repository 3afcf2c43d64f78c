"""A worker's process: `worker_plugin` before all else, then pytest.

The plugin decides which CuPy is meant. pytest, which reads warnings of CuPy's in CuPy's settings, would import the one
that is installed before it loads a plugin that is named on its command line.
"""

from __future__ import annotations

import sys

import pytest

from tests.cupy_suite import worker_plugin

if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:], plugins=[worker_plugin]))
