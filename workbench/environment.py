"""Names on which the parts of an install agree. Light, for the kernel's start."""

from __future__ import annotations

#: The kernel, as Jupyter knows it.
KERNEL_NAME = "remote-gpu"
#: The variable in which the provisioner tells the kernel that it starts: why the one before it ended, in a sentence.
PREVIOUS_END_VARIABLE = "GPU_WORKBENCH_PREVIOUS_END"
