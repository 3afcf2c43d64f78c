// cuda_bf16.h: bfloat16.
#pragma once

#include "gpu/half.h"

typedef gpu::Float16<gpu::Bfloat> __nv_bfloat16;
typedef __nv_bfloat16 nv_bfloat16;

inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(static_cast<float>(x)); }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16::from_bits(x); }
