"""CUDA C for counting numbers into bins: the least and the greatest of them first, then how often each comes."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BIN_SOURCE", "COUNT", "EXTREMES", "EXTREMES_OF_ALL", "FEW_BINS", "MOST_BLOCKS", "THREADS",
    "kernel_name",
]  # fmt: skip

THREADS: Final = 256
#: Blocks that look for extremes at most: one block looks at what they found.
MOST_BLOCKS: Final = 256
#: So many bins a block has to itself until it is done.
FEW_BINS: Final = 2048
#: What names of kernels begin with; the character of the numbers' dtype follows, but for the one that looks at all.
EXTREMES, EXTREMES_OF_ALL, COUNT = "extremes_", "extremes_of_all", "count_"

_TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long", "L": "unsigned long", "q": "long long", "Q": "unsigned long long",
}  # fmt: skip
#: Names of kernels are of letters.
_NAMES = {"?": "bool"}

_OF_TYPE = """
extern "C" __global__ void extremes_%(name)s(const %(type)s* x, long long size, long long* found) {
    Extremes own = {static_cast<long long>(x[0]), static_cast<long long>(x[0])};
    FOR_EACH(at, size) own.take(static_cast<long long>(x[at]), static_cast<long long>(x[at]));
    own.gather();
    if (threadIdx.x == 0) own.give(found + 2 * blockIdx.x);
}
// Numbers without a bin are passed over: the program may write them meanwhile, in another stream.
extern "C" __global__ void count_%(name)s(
        const %(type)s* x, long long size, unsigned long long* bins, unsigned long long count) {
    __shared__ unsigned int own[FEW_BINS];
    for (int bin = threadIdx.x; bin < count; bin += THREADS) own[bin] = 0;
    __syncthreads();
    FOR_EACH(at, size) {
        const unsigned long long bin = static_cast<unsigned long long>(x[at]);
        if (bin < count) atomicAdd(own + bin, 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < count; bin += THREADS) {
        if (own[bin]) atomicAdd(bins + bin, static_cast<unsigned long long>(own[bin]));
    }
}
"""


def kernel_name(verb: str, dtype_char: str) -> str:
    """Return the name of the kernel that does ``verb`` to numbers of a type."""
    return verb + _NAMES.get(dtype_char, dtype_char)


BIN_SOURCE: Final = (
    f"#define THREADS {THREADS}\n#define FEW_BINS {FEW_BINS}\n"
    + r"""
#define FOR_EACH(at, size) \
    for (long long at = (long long)blockIdx.x * THREADS + threadIdx.x; at < size; at += (long long)gridDim.x * THREADS)

struct Extremes {
    long long low, high;

    __device__ void take(long long least, long long most) {
        low = least < low ? least : low;
        high = most > high ? most : high;
    }

    // Those of all threads of the block, for its first thread.
    __device__ void gather() {
        __shared__ long long lows[THREADS / 32], highs[THREADS / 32];
        for (int step = 16; step; step /= 2) {
            take(__shfl_down_sync(0xffffffffu, low, step), __shfl_down_sync(0xffffffffu, high, step));
        }
        if (threadIdx.x % 32 == 0) {
            lows[threadIdx.x / 32] = low;
            highs[threadIdx.x / 32] = high;
        }
        __syncthreads();
        for (int warp = 1; threadIdx.x == 0 && warp < THREADS / 32; ++warp) take(lows[warp], highs[warp]);
    }

    __device__ void give(volatile long long* into) const {
        into[0] = low;
        into[1] = high;
    }
};

// Of what the blocks have found; it goes to the host.
extern "C" __global__ void extremes_of_all(const long long* found, long long blocks, volatile long long* all) {
    Extremes own = {found[0], found[1]};
    for (long long block = threadIdx.x; block < blocks; block += THREADS) {
        own.take(found[2 * block], found[2 * block + 1]);
    }
    own.gather();
    if (threadIdx.x == 0) {
        own.give(all);
        __threadfence_system();
    }
}
"""
    + "".join(_OF_TYPE % {"name": _NAMES.get(char, char), "type": kind} for char, kind in _TYPES.items())
)
