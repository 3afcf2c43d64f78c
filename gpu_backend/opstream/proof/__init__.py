"""The proving engine: what a call on the CuPy surface gives, worked out without asking. Pure functions, no I/O.

Whatever is claimed here, the device confirms; whatever cannot be claimed is `Unproved`, and the client asks.
"""

from __future__ import annotations

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import (  # noqa: F401 (the families register their rules)
    converting,
    creation,
    einsum,
    elementwise,
    fft,
    filling,
    joining,
    linalg,
    manipulation,
    objects,
    polynomials,
    products,
    random,
    random_generator,
    reductions,
    registry,
    scipy_fft,
    scipy_interpolation,
    scipy_linalg,
    scipy_morphology,
    scipy_ndimage,
    scipy_signal,
    scipy_sparse,
    scipy_special,
    selecting,
    sorting,
    statistics,
    ufuncs,
    value_shapes,
)
from gpu_backend.opstream.proof.outcome import ArrayProof, Later, Made, Proof, Returned, Unproved, View, Warned, Window

__all__ = [
    "ArrayProof",
    "Made",
    "Proof",
    "Returned",
    "Unproved",
    "View",
    "Warned",
    "Window",
    "infer",
    "infer_inplace",
    "prove",
    "ufunc_rule",
]  # fmt: skip


def prove(qualname: str, args: tuple[object, ...], kwargs: dict[str, object] | None = None) -> Proof:
    """Return what is proved of the call ``qualname(*args, **kwargs)``.

    Parameters
    ----------
    qualname
        A public name: "cupy.sum", "cupy.ndarray.sum", "cupy.linalg.svd", ...
    args, kwargs
        What the user passed, with each remote array, also in lists and tuples, replaced by its layout.

    Returns
    -------
    Layout
        A new array of this layout.
    View
        A window on the memory of an argument.
    Returned
        An argument itself.
    tuple, list
        Several of these, in the type of CuPy's result.
    Later
        New arrays whose shapes depend on values.
    Made
        A new object that stays remote.
    Warned
        The call surely warns, and then gives what is proved.
    None
        The call succeeds and returns None.
    Unproved
        The executor must be asked.

    Raises
    ------
    Exception
        Exactly what CuPy raises, if failure is proved.
    """
    return registry.apply(qualname, args, kwargs or {})


def infer(
    qualname: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> Layout | tuple[Layout, ...] | Unproved | None:
    """Return what is proved of a call whose results are new arrays, or its ``out=``; `prove` tells views too.

    Raises
    ------
    Exception
        Exactly what CuPy raises, if failure is proved.
    """
    proof = registry.apply(qualname, args, kwargs)
    if proof is None or isinstance(proof, (Layout, Unproved)):
        return proof
    if isinstance(proof, (Made, Later, Warned)):
        return Unproved("an object, an unknown shape, or a warning")
    several = [proof] if isinstance(proof, (View, Returned)) else list(proof)
    layouts: list[Layout] = []
    for one in several:
        if isinstance(one, Returned) and one.of == "out" and isinstance(kwargs["out"], Layout):
            layouts.append(kwargs["out"])
        elif isinstance(one, Layout):
            layouts.append(one)
        else:
            return Unproved("a view of an argument, or an argument")
    return layouts[0] if isinstance(proof, Returned) else tuple(layouts)


def infer_inplace(qualname: str, target: Layout, operand: object) -> Unproved | None:
    """Prove that ``target op= operand`` succeeds, for the ufunc ``qualname``: None if it does.

    Raises
    ------
    Exception
        Exactly what CuPy raises, if failure is proved.
    """
    return ufuncs.rule_for(qualname).inplace(target, operand)


def ufunc_rule(qualname: str) -> ufuncs.UfuncRule:
    """Return the rule of a ufunc, to be asked again and again: ``rule.result(x, y)`` costs one look-up.

    Raises
    ------
    KeyError
        If the surface has no ufunc of that name.
    """
    return ufuncs.rule_for(qualname)
