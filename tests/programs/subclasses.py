"""Classes beside arrays that programs derive from CuPy's; what is of them, and what is not."""

from __future__ import annotations

import abc
import copy
import io
import pickle

import cupy as cp
import cupyx.scipy.sparse as sparse
import numpy as np
import scipy.sparse
from cupyx.scipy.interpolate import CubicSpline, PPoly
from cupyx.scipy.sparse.linalg import LinearOperator, cg
from expecting import refused

# --- graphs: matrices that know more ---------------------------------------------------------------------------------


class Describes:
    """A mixin."""

    def describe(self) -> str:
        return f"{self.name}: {self.nnz} edges"  # type: ignore[attr-defined]


class Adjacency(Describes, sparse.csr_matrix):
    """A matrix with a name. Where it sums duplicates, CuPy calls its ``__init__`` again, with a matrix."""

    asked = 0

    def __init__(self, matrix: object, *args: object, name: str | None = None, **kwargs: object) -> None:
        super().__init__(matrix, *args, **kwargs)
        if name is not None:
            self.name = name

    @classmethod
    def of_edges(cls, edges: list[tuple[int, int]], nodes: int, name: str) -> Adjacency:
        rows, columns = zip(*edges, strict=True)
        return cls((cp.ones(len(edges)), (cp.array(rows), cp.array(columns))), shape=(nodes, nodes), name=name)

    def toarray(self, *args: object, **kwargs: object) -> object:
        self.asked += 1
        return super().toarray(*args, **kwargs)

    @property
    def degrees(self) -> object:
        return cp.asarray(self.sum(axis=1)).ravel()


graph = Adjacency.of_edges([(0, 1), (1, 2), (2, 0)], 3, name="ring")
assert (type(graph), graph.name, graph.describe()) == (Adjacency, "ring", "ring: 3 edges")
assert isinstance(graph, sparse.csr_matrix)
assert sparse.isspmatrix_csr(graph)
assert graph.toarray().shape == (3, 3)
assert (graph.asked, graph.degrees.get().tolist()) == (1, [1.0, 1.0, 1.0])
for made in (
    graph * 2,
    -graph,
    abs(graph),
    graph.copy(),
    graph.astype("f"),
    graph[0],
    graph[:, 1],
    graph.multiply(graph),
):
    assert type(made) is Adjacency, made
assert not hasattr(graph * 2, "name")  # its __init__ is not called for such a result
for made in (graph + graph, graph @ graph, graph.tocoo(), graph.T, graph.tocsc()):
    assert not isinstance(made, Adjacency), made
loaded = pickle.loads(pickle.dumps(graph))
assert (type(loaded), loaded.name, loaded.nnz) == (Adjacency, "ring", 3)
assert copy.deepcopy(graph).name == "ring"
graph.label = "any"
assert graph.label == "any"
assert sparse.vstack([graph, graph]).shape == (6, 3)


class NotYet(sparse.csr_matrix):
    def __init__(self) -> None:
        self.name = "empty"


assert NotYet().name == "empty"
refused(AttributeError, lambda: NotYet().nnz)


class Abstract(sparse.csr_matrix, abc.ABC):
    @abc.abstractmethod
    def weight(self) -> float: ...


class Concrete(Abstract):
    __slots__ = ("extra",)

    def weight(self) -> float:
        self.extra = 2.0
        return self.extra * self.nnz


refused(TypeError, lambda: Abstract(cp.eye(2)), "abstract")
assert Concrete(cp.eye(2)).weight() == 4.0

# --- matrices of SciPy beside ours -----------------------------------------------------------------------------------

host = scipy.sparse.csr_matrix(np.eye(3))
mine = sparse.csr_matrix(cp.arange(9.0).reshape(3, 3))
refused(TypeError, lambda: mine + host)
refused(TypeError, lambda: mine @ host)
refused(NotImplementedError, lambda: mine != host)
refused(TypeError, lambda: cp.ones((3, 3)) + host)
# Which of the two depends on SciPy: whether its own side of the product is asked, or CuPy's, which then fails.
refused((TypeError, AttributeError), lambda: host @ mine)
assert mine[host != 0].get().tolist() == [[0.0, 4.0, 8.0]]
refused(IndexError, lambda: mine[host])
refused(IndexError, lambda: cp.ones((3, 3))[host])
assert (sparse.csr_matrix(host) != mine).nnz == 9

# --- random numbers --------------------------------------------------------------------------------------------------


class Recorder(cp.random.RandomState):
    """A state that remembers its seed and what it drew."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.first_seed = seed
        self.drawn: list[tuple[int, ...]] = []

    def rand(self, *size: int) -> object:  # type: ignore[override]
        self.drawn.append(size)
        return super().rand(*size)


state = Recorder(7)
assert cp.array_equal(state.rand(3), cp.random.RandomState(7).rand(3))
assert (state.first_seed, state.drawn, isinstance(state, cp.random.RandomState)) == (7, [(3,)], True)
before = cp.random.get_random_state()
cp.random.set_random_state(state)
assert cp.random.get_random_state() is state
cp.random.set_random_state(before)


class Chooser(cp.random.Generator):
    def __init__(self, seed: int, kinds: int) -> None:
        super().__init__(cp.random.XORWOW(seed))
        self.kinds = kinds

    def kind(self) -> int:
        return int(self.integers(0, self.kinds, 1)[0])


assert 0 <= Chooser(3, kinds=4).kind() < 4

# --- kernels, streams, memory ----------------------------------------------------------------------------------------


class Scaling(cp.ElementwiseKernel):
    """A kernel of a library, made of less and called with more."""

    def __init__(self, factor: float) -> None:
        super().__init__("float64 x", "float64 y", f"y = x * {factor}", "scaling")
        self.factor = factor

    def __call__(self, *args: object) -> object:
        return super().__call__(*(cp.asarray(one) for one in args))


twice = Scaling(2.0)
assert (type(twice), twice.name, twice.factor, twice.nin) == (Scaling, "scaling", 2.0, 1)
assert twice([1.0, 2.0]).get().tolist() == [2.0, 4.0]


class SumOf(cp.ReductionKernel):
    def __init__(self, expression: str) -> None:
        super().__init__("T x", "T y", expression, "a + b", "y = a", "0", "sum_of")


assert float(SumOf("x * x")(cp.arange(4.0))) == 14.0


class Source(cp.RawKernel):
    def launch(self, array: cp.ndarray) -> cp.ndarray:
        self((1,), (array.size,), (array,))
        return array


ones = Source('extern "C" __global__ void ones(double* x) { x[threadIdx.x] = 1; }', "ones")
assert ones.launch(cp.zeros(4)).get().tolist() == [1.0] * 4


class Named(cp.cuda.Stream):
    def __init__(self, name: str) -> None:
        super().__init__(non_blocking=True)
        self.name = name


with Named("copies") as stream:
    assert cp.cuda.get_current_stream() is stream
    on_it = cp.arange(3) + 1
stream.synchronize()
assert (stream.name, on_it.get().tolist()) == ("copies", [1, 2, 3])
assert repr(stream).startswith("<Named")
assert cp.cuda.Stream(null=True) == cp.cuda.Stream.null


class Mark(cp.cuda.Event):
    label = "mark"


mark = Mark()
mark.record()
mark.synchronize()
assert (type(mark), mark.label, mark.done) == (Mark, "mark", True)


class Counting(cp.cuda.MemoryPool):
    taken = 0

    def malloc(self, size: int) -> object:
        type(self).taken += 1
        return super().malloc(size)


pool = Counting()
used = pool.used_bytes()
block = pool.malloc(1024)
assert (Counting.taken, pool.used_bytes() - used) == (1, 1024)
del block
assert pool.used_bytes() == used

# --- splines, operators ----------------------------------------------------------------------------------------------


class Track(CubicSpline):
    """A spline with a unit."""

    unit = "m"

    def speed(self) -> Track:
        return self.derivative()


x = cp.linspace(0, 1, 6)
track = Track(x, x**2)
assert (type(track), type(track.speed()), track.speed().unit) == (Track, Track, "m")
assert cp.allclose(track.speed()(x), 2 * x)
assert type(Track.from_bernstein_basis) is not type(None)


class Pieces(PPoly):
    pass


assert type(Pieces(cp.ones((2, 1)), cp.array([0.0, 1.0])).antiderivative()) is Pieces


class Diagonal(LinearOperator):
    def __init__(self, diagonal: cp.ndarray) -> None:
        self.diagonal = diagonal
        super().__init__(diagonal.dtype, (diagonal.size, diagonal.size))

    def _matvec(self, vector: cp.ndarray) -> cp.ndarray:
        return self.diagonal * vector.ravel()


solved, info = cg(Diagonal(cp.arange(1.0, 5.0)), cp.ones(4))
assert info == 0
assert cp.allclose(solved, 1 / cp.arange(1.0, 5.0))

# --- pickles of everything, by name ----------------------------------------------------------------------------------


class Whole:
    """A model of a library, with CuPy's classes in its state."""

    def __init__(self) -> None:
        self.kind, self.weights, self.graph = sparse.csr_matrix, cp.arange(3.0), graph


stored = io.BytesIO()
pickle.dump(Whole(), stored)
stored.seek(0)
whole = pickle.load(stored)
assert whole.kind is sparse.csr_matrix
assert cp.array_equal(whole.weights, cp.arange(3.0))
assert whole.graph.name == "ring"
