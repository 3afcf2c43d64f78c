// bfloat16, the type of CuPy's kernels for ml_dtypes.bfloat16.
#pragma once

#include "../cuda_bf16.h"

typedef gpu::Float16<gpu::Bfloat> bfloat16;
