"""Work captured as a graph, and launched again and again."""

from __future__ import annotations

import cupy as cp

stream = cp.cuda.Stream(non_blocking=True)
a = cp.zeros(10)
b = cp.empty(10)
kernel = cp.ElementwiseKernel("float64 x", "float64 y", "y = x * 3", "times_three")
c = cp.empty(10)
kernel(a, c)  # compiled before: compiling is no part of a graph
a += 1
cp.multiply(a, 2, out=b)
a[...] = 0
cp.cuda.Device().synchronize()
with stream:
    stream.begin_capture()
    for _ in range(300):
        a += 1
    cp.multiply(a, 2, out=b)
    kernel(b, c)
    assert stream.is_capturing()
    graph = stream.end_capture()
assert isinstance(graph, cp.cuda.Graph)
assert not stream.is_capturing()
assert float(a[0]) == 0, "captured, not run"
for _ in range(3):
    graph.launch(stream=stream)
graph.upload(stream)
stream.synchronize()
assert float(a[0]) == 900
assert float(b[0]) == 1800
assert float(c[0]) == 5400
