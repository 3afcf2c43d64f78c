// C's <math.h> alone: libstdc++'s would pull in all of <cmath>, whose overloads device_math.h already has.
// The shim includes it first, for the functions, and takes the constants away; a kernel that includes it gets them.
#ifndef GPU_MATH_H
#define GPU_MATH_H

// Old names of the host's that no GPU has: they are free for kernels.
#define gamma gpu_host_gamma
#define gammaf gpu_host_gammaf
#define drem gpu_host_drem
#define significand gpu_host_significand
#define scalb gpu_host_scalb
#define signgam gpu_host_signgam
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include_next <math.h>
#undef gamma
#undef gammaf
#undef drem
#undef significand
#undef scalb
#undef signgam

#elif !defined(M_E)

#undef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
