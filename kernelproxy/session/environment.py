"""CuPy's environment variables that say how to compute. They are set here; the computing is done in the executor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpu_backend.wire import values as wire

#: What ``CUPY_TF32`` turns on: products of single precision by TensorFloat-32.
_TF32 = 7


def settings(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[wire.Value, ...]]]:
    """Give the ops that bring a fresh executor to what ``environment`` asks for, each as name and arguments."""
    if environment.get("CUPY_TF32", "0").strip() not in ("", "0"):
        yield "cupy._core.set_compute_type", (wire.DType("<f4"), _TF32)
    chosen = environment.get("CUPY_ACCELERATORS")
    if chosen is not None:
        accelerators = wire.Tuple(tuple(name for name in chosen.split(",") if name))
        for kind in ("elementwise", "reduction", "routine"):
            yield f"cupy._core.set_{kind}_accelerators", (accelerators,)
