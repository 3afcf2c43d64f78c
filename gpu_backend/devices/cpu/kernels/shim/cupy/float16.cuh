// float16, the type of CuPy's kernels for numpy.float16.
#pragma once

#include "../cuda_fp16.h"

typedef gpu::Float16<gpu::Half> float16;
