"""``cupyx.scipy.stats`` on SciPy's."""

from __future__ import annotations

import scipy.stats

from gpu_backend.executor.devices.cpu.scipy_functions import define_scipy

define_scipy("cupyx.scipy.stats", scipy.stats)
