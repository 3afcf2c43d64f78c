"""``cupyx.scipy.ndimage`` on SciPy's."""

from __future__ import annotations

import scipy.ndimage

from gpu_backend.executor.devices.cpu.scipy_functions import define_scipy

define_scipy("cupyx.scipy.ndimage", scipy.ndimage, without=("generic_filter", "generic_filter1d"))
