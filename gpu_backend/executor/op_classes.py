"""Which class an op belongs to, by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpu_backend.opstream.surface import Ufunc, load
from gpu_backend.wire.messages import Op
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass

__all__ = ["HOST", "OpClasses"]

#: How many ops of a run are looked at, at least; all of a shorter one.
_LOOKS: Final = 8
#: The place, behind the classes, of ops that give the device nothing to do.
HOST: Final = len(OP_CLASSES)

_LINALG_MODULES = (
    "cupy.linalg.", "cupy.fft.", "cupyx.scipy.linalg.", "cupyx.scipy.fft.", "cupyx.scipy.fftpack.", "cupyx.linalg.",
    "cupyx.scipy.sparse.linalg.", "cupyx.cusolver.", "cupyx.cusparse.", "cupyx.lapack.", "cupyx.cutensor.",
)  # fmt: skip
_HOST_NAMES = frozenset(
    """.nothing .keep .window .layout .fail .doc .memory .ways .cached_codes .compile .python_kernel .module_of_file
    .getattr .setattr .synchronize .wait_event
    cupy.RawKernel cupy.RawModule cupy.ElementwiseKernel cupy.ReductionKernel""".split()
)
#: Questions that are answered from what the host knows, whatever is asked about.
_QUESTIONS: Final = frozenset((".cached_codes", ".doc", ".layout", ".memory", ".ways"))
_KERNEL_NAMES: Final = frozenset((".call", ".launch"))
_BY_LAST_NAME: dict[OpClass, str] = {
    OpClass.LINALG: """dot matmul vdot inner outer tensordot einsum kron cross convolve correlate __matmul__ __rmatmul__
        __imatmul__ polyfit roots fftconvolve cov corrcoef""",
    OpClass.REDUCTION: """all any amax amin max min argmax argmin nanargmax nanargmin nanmax nanmin sum nansum prod
        product nanprod mean nanmean median nanmedian average std nanstd var nanvar ptp percentile quantile
        count_nonzero cumsum nancumsum cumprod nancumprod cumproduct cumulative_sum cumulative_prod trace allclose
        array_equal array_equiv bincount histogram histogram2d histogramdd trapezoid reduce accumulate reduceat
        logsumexp""",
    OpClass.MEMORY: """.same .store .store_where .write array asarray asanyarray asarray_chkfinite ascontiguousarray
        asfortranarray asnumpy copy copyto __copy__ __deepcopy__ get set tobytes tolist __getitem__ __setitem__ take
        take_along_axis put put_along_axis putmask place choose compress extract concatenate stack vstack hstack dstack
        column_stack row_stack repeat tile roll rot90 pad resize delete append fill full full_like zeros zeros_like ones
        ones_like empty empty_like frombuffer from_dlpack diag diagflat tril triu .write_kept""",
    OpClass.ELEMENTWISE: """clip where astype round round_ around real imag conj conjugate angle isclose nan_to_num
        real_if_close fix i0 sinc iscomplex isreal isneginf isposinf gradient diff __abs__ __add__ __and__ __div__
        __divmod__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__ __imod__
        __imul__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __mod__
        __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__ __rfloordiv__ __rlshift__ __rmod__
        __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__""",
}
_CLASS_OF: Final = {name: kind for kind, names in _BY_LAST_NAME.items() for name in names.split()}


class OpClasses(dict[str, int]):
    """The place of each op's class in `OP_CLASSES`, or `HOST`, by the op's name; found out once."""

    def __init__(self) -> None:
        self._turn = 0

    def __missing__(self, name: str) -> int:
        place = self[name] = _place(name)
        return place

    def count(self, ops: Sequence[Op], start: int, end: int, counts: list[int]) -> bool:
        """Add the ops from ``start`` up to ``end`` to ``counts``, by class; tell whether it is a question and no more.

        Of a long run of ops every n-th is looked at and stands for n, each time beginning with another one: looking at
        each would cost a fiftieth of what it takes to launch it. What lies beyond the last of ``ops`` was launched with
        it, and is not looked at.
        """
        if end == start + 1:  # as nearly all that somebody waits for
            name = ops[start].name
            counts[self[name]] += 1
            return name in _QUESTIONS
        step = (end - start) // _LOOKS or 1
        self._turn += 1
        for place in range(start + self._turn % step, min(end, len(ops)), step):
            counts[self[ops[place].name]] += step
        return False


def _place(name: str) -> int:
    if name in _HOST_NAMES or name.startswith("cupy.cuda."):
        return HOST
    return OP_CLASSES.index(_class_of(name))


def _class_of(name: str) -> OpClass:
    if name in _KERNEL_NAMES:
        return OpClass.KERNEL
    if name.startswith(_LINALG_MODULES):
        return OpClass.LINALG
    owner, _, last = name.rpartition(".")
    if isinstance(load().get(name), Ufunc):
        return OpClass.ELEMENTWISE
    if owner in ("cupy", "cupy.ndarray") or name.startswith(".") or isinstance(load().get(owner), Ufunc):
        is_verb = name.startswith(".")
        return _CLASS_OF.get(name if is_verb else last, OpClass.OTHER)
    return OpClass.OTHER
