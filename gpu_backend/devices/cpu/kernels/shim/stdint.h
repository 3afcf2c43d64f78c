// The integers of fixed size, as CUDA's own standard library has them: those of 64 bits are `long long`, which CuPy's
// int64 is as well, where the host's header would say `long`.
#pragma once

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

typedef int8_t int_fast8_t, int_least8_t;
typedef int16_t int_fast16_t, int_least16_t;
typedef int32_t int_fast32_t, int_least32_t;
typedef int64_t int_fast64_t, int_least64_t, intmax_t;
typedef uint8_t uint_fast8_t, uint_least8_t;
typedef uint16_t uint_fast16_t, uint_least16_t;
typedef uint32_t uint_fast32_t, uint_least32_t;
typedef uint64_t uint_fast64_t, uint_least64_t, uintmax_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

// Headers of the host that want these types do not define them again.
#define _BITS_STDINT_INTN_H 1
#define _BITS_STDINT_UINTN_H 1
#define _BITS_STDINT_LEAST_H 1
#define __intptr_t_defined

#define INT8_MIN (-128)
#define INT16_MIN (-32767 - 1)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define SIZE_MAX UINT64_MAX

#define INT64_C(c) c##LL
#define UINT64_C(c) c##ULL
#define INT32_C(c) c
#define UINT32_C(c) c##U
