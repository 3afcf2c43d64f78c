"""What CuPy is asked to speed up reductions and the like with. Programs set it to compare times, or to get exact sums.

The setting is kept as CuPy keeps it and answered when asked for. The executor's device uses its own.
"""

from __future__ import annotations

from collections.abc import Iterable

ACCELERATOR_CUB = 1
ACCELERATOR_CUTENSOR = 2
ACCELERATOR_CUTENSORNET = 3

_NUMBERS = {
    "cub": ACCELERATOR_CUB,
    "cutensor": ACCELERATOR_CUTENSOR,
    "cutensornet": ACCELERATOR_CUTENSORNET,
}
_chosen: dict[str, list[int]] = {which: [ACCELERATOR_CUB] for which in ("elementwise", "reduction", "routine")}


def _number(accelerator: int | str) -> int:
    if isinstance(accelerator, int):
        return accelerator
    if accelerator not in _NUMBERS:
        raise ValueError(f"Unknown accelerator: {accelerator}")
    return _NUMBERS[accelerator]


def set_elementwise_accelerators(accelerators: Iterable[int | str]) -> None:
    """Note what elementwise operations are to use."""
    _chosen["elementwise"] = [_number(one) for one in accelerators]


def set_reduction_accelerators(accelerators: Iterable[int | str]) -> None:
    """Note what reductions are to use."""
    _chosen["reduction"] = [_number(one) for one in accelerators]


def set_routine_accelerators(accelerators: Iterable[int | str]) -> None:
    """Note what sums, products and scans are to use."""
    _chosen["routine"] = [_number(one) for one in accelerators]


def get_elementwise_accelerators() -> list[int]:
    """Return what elementwise operations use."""
    return _chosen["elementwise"]


def get_reduction_accelerators() -> list[int]:
    """Return what reductions use."""
    return _chosen["reduction"]


def get_routine_accelerators() -> list[int]:
    """Return what sums, products and scans use."""
    return _chosen["routine"]
