// What the generated code of ElementwiseKernel and ReductionKernel stands on.
#pragma once

#include "../cupy/atomics.cuh"
#include "../cupy/carray.cuh"
#include "../cupy/complex.cuh"
#include "../cupy/math_constants.h"
#include "half.h"
#include "structure.h"

typedef gpu::Float16<gpu::Half> float16;
typedef gpu::Float16<gpu::Bfloat> bfloat16;

namespace gpu {

/// Goes over the outer N axes of a shape in C order, keeping the byte offset of each of A arrays.
template <int N, int A>
struct Walk {
  const ptrdiff_t *shape;
  const ptrdiff_t *strides;  // [A][stride_axes], in bytes
  int stride_axes;
  ptrdiff_t index[N ? N : 1] = {};
  ptrdiff_t offset[A ? A : 1] = {};

  Walk(const ptrdiff_t *shape, const ptrdiff_t *strides, int stride_axes)
      : shape(shape), strides(strides), stride_axes(stride_axes) {}

  inline void next() {
    for (int d = N; d-- > 0;) {
      if (++index[d] < shape[d]) {
        for (int a = 0; a < A; ++a) offset[a] += strides[a * stride_axes + d];
        return;
      }
      index[d] = 0;
      for (int a = 0; a < A; ++a) offset[a] -= strides[a * stride_axes + d] * (shape[d] - 1);
    }
  }
};

}  // namespace gpu
