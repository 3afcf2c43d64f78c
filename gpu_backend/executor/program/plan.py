"""What is known of an op before it runs, by its name: the function that does it, and what it leaves of its arguments.

A function of CuPy's may return an argument, or an array in an argument's memory, and an object may remember what it was
given. Passes may touch only memory of which nothing of that is true, so what a name means for memory is said here, and
of a name that is not named here the worst is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from gpu_backend.executor.verbs import STORE, STORE_WHERE
from gpu_backend.opstream.contents import KEEP, WRITE_KEPT
from gpu_backend.opstream.draws import is_draw, most_operands
from gpu_backend.opstream.surface import GeneralizedUfunc, Ufunc, load
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND

__all__ = ["CHECKED", "KEEPS", "Plan", "new_memory"]

#: Nothing is known: an argument may be remembered, or be the result.
KEEPS: Container[int] = ()
#: No argument is remembered. Whether the result lies in the memory of one has to be looked at.
CHECKED: Container[int] = frozenset()

#: Functions that give new memory whatever they are given, by how many arguments they may have for that: more could be
#: an output.
_NEW: dict[Container[int], str] = {
    (1,): """ndarray.sum ndarray.prod ndarray.max ndarray.min ndarray.mean ndarray.var ndarray.std ndarray.any
        ndarray.all ndarray.argmax ndarray.argmin sum prod max min amax amin mean var std any all argmax argmin
        ndarray.copy copy ndarray.flatten sort argsort ndarray.argsort nansum nanprod nanmax nanmin nanmean nanvar
        nanstd nanargmax nanargmin count_nonzero bincount trace ndarray.trace linalg.norm linalg.inv linalg.det
        linalg.cholesky""",
    (1, 2): "zeros ones empty eye identity ndarray.astype",
    (2,): "dot ndarray.dot outer take searchsorted digitize linalg.solve",
    (3,): "where interp",
    (1, 2, 3): "arange full",
}
#: Functions whose results are new memory or lie in that of an argument, and that remember nothing.
_CHECKED = """
    array asarray asanyarray ascontiguousarray asfortranarray zeros_like ones_like empty_like full_like diag diagflat
    diagonal tri tril triu meshgrid reshape ravel transpose swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to
    atleast_1d atleast_2d atleast_3d concatenate stack vstack hstack dstack column_stack split array_split hsplit
    vsplit dsplit tile repeat roll rot90 flip fliplr flipud pad delete append resize unique where take take_along_axis
    choose compress extract clip around round round_ real imag conj angle nan_to_num diff gradient ediff1d
    cross interp vdot inner matmul tensordot einsum kron trace convolve correlate cov corrcoef sort argsort
    msort partition argpartition lexsort searchsorted nonzero flatnonzero argwhere count_nonzero sum prod max min amax
    amin mean var std any all argmax argmin nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin
    median nanmedian average percentile quantile ptp cumsum cumprod bincount digitize histogram allclose isclose
    array_equal isin in1d copyto put putmask place fill_diagonal linspace logspace arange zeros ones empty
    full eye identity copy
    ndarray.__getitem__ ndarray.__setitem__ ndarray.__pow__ ndarray.astype ndarray.copy ndarray.reshape ndarray.ravel
    ndarray.flatten ndarray.transpose ndarray.swapaxes ndarray.squeeze ndarray.diagonal ndarray.view ndarray.sum
    ndarray.prod ndarray.max ndarray.min ndarray.mean ndarray.var ndarray.std ndarray.any ndarray.all ndarray.argmax
    ndarray.argmin ndarray.ptp ndarray.cumsum ndarray.cumprod ndarray.trace ndarray.clip ndarray.round
    ndarray.conj ndarray.conjugate ndarray.fill ndarray.take ndarray.repeat ndarray.sort ndarray.argsort
    ndarray.partition ndarray.argpartition ndarray.nonzero ndarray.choose ndarray.compress ndarray.put
    linalg.norm linalg.inv linalg.solve linalg.det linalg.cholesky linalg.eigh linalg.eigvalsh linalg.qr linalg.svd
    linalg.pinv linalg.lstsq linalg.matrix_power
    fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn
    fft.rfftn fft.irfftn fft.fftshift fft.ifftshift fft.fftfreq fft.rfftfreq
    random.permutation
"""
_VERBS = frozenset(".nothing .same .window .layout .write .fail .synchronize .memory .doc".split())
_VERBS |= {STORE, STORE_WHERE, KEEP, WRITE_KEPT, CHANNEL, SEND, RECEIVE}
_UFUNC_METHODS = frozenset(("accumulate", "at", "outer", "reduce", "reduceat"))
_KNOWN: dict[str, Container[int]] = {
    **{f"cupy.{name}": CHECKED for name in _CHECKED.split()},
    **{f"cupy.{name}": counts for counts, names in _NEW.items() for name in names.split()},
    **dict.fromkeys(_VERBS, CHECKED),
}


class Plan:
    """What ops do, by their names; each is found out once.

    Parameters
    ----------
    verbs
        The functions of the protocol's own ops.
    resolve
        Gives the function, class or object of a public name.
    """

    def __init__(self, verbs: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        self._resolve = resolve
        #: What to call.
        self.functions: dict[str, Any] = dict(verbs)
        #: With how many arguments an op gives new memory and remembers none of them; or `CHECKED`, or `KEEPS`.
        self.new_memory: dict[str, Container[int]] = {}
        #: How many operands a ufunc with one result takes; -1 for all else.
        self.operands: dict[str, int] = {}

    def learn(self, name: str) -> None:
        """Find out what ``name`` is, so that all dictionaries here have it. Raises what ``resolve`` does."""
        if name not in self.functions:
            self.functions[name] = self._resolve(name)
        self.new_memory[name] = new_memory(name)
        self.operands[name] = _operands(name)


def _operands(name: str) -> int:
    described = load().get(name)
    return described.nin if isinstance(described, Ufunc) and described.nout == 1 else -1


def new_memory(name: str) -> Container[int]:
    """Return with how many arguments the op ``name`` gives new memory; or `CHECKED`, or `KEEPS`."""
    described = load().get(name)
    if isinstance(described, Ufunc):
        return (described.nin,) if described.nout == 1 else CHECKED
    if is_draw(name):
        return range(most_operands(name) + 1)
    owner, _, last = name.rpartition(".")
    if isinstance(described, GeneralizedUfunc) or (last in _UFUNC_METHODS and isinstance(load().get(owner), Ufunc)):
        return CHECKED
    return _KNOWN.get(name, KEEPS)
