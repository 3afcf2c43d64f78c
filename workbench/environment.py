"""Environment variables by which the provisioner speaks to the kernel it starts. Light, for the kernel's start."""

from __future__ import annotations

#: Why the kernel before this one ended, in a sentence for the user.
PREVIOUS_END_VARIABLE = "GPU_WORKBENCH_PREVIOUS_END"
