"""How CuPy computes: by which libraries it reduces, in which precision it multiplies matrices.

Programs choose to compare times, or to have TensorFloat-32. The choice is the executor's, where the computing is done.
Most names are of CuPy's private modules; there are no public ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.calls.doubts import Solvers
from kernelproxy.calls.each_device import on_each_device
from kernelproxy.client import Client

ACCELERATOR_CUB = 1
ACCELERATOR_CUTENSOR = 2
ACCELERATOR_CUTENSORNET = 3

(
    COMPUTE_TYPE_TBD, COMPUTE_TYPE_DEFAULT, COMPUTE_TYPE_PEDANTIC, COMPUTE_TYPE_FP16, COMPUTE_TYPE_FP32,
    COMPUTE_TYPE_FP64, COMPUTE_TYPE_BF16, COMPUTE_TYPE_TF32,
) = range(8)  # fmt: skip

_KINDS = ("elementwise", "reduction", "routine")


def _setting(name: str) -> Callable[..., Any]:
    def setting(*args: object) -> Any:
        if name.startswith("get_"):
            return dispatch.ask_object(f"cupy._core.{name}", *args)
        return on_each_device(lambda _: dispatch.ask_object(f"cupy._core.{name}", *args))

    setting.__name__ = setting.__qualname__ = name
    return setting


get_elementwise_accelerators, get_reduction_accelerators, get_routine_accelerators = (
    _setting(f"get_{kind}_accelerators") for kind in _KINDS
)
set_elementwise_accelerators, set_reduction_accelerators, set_routine_accelerators = (
    _setting(f"set_{kind}_accelerators") for kind in _KINDS
)
get_compute_type, set_compute_type = _setting("get_compute_type"), _setting("set_compute_type")


def set_batched_gesv_limit(limit: int) -> None:
    """Let systems of up to ``limit`` rows be solved all at once; how their solutions lie in memory follows from it."""

    def choose(client: Client) -> None:
        client.part(Solvers).are_chosen = True
        dispatch.ask_object("cupy.cublas.set_batched_gesv_limit", limit)

    on_each_device(choose)
