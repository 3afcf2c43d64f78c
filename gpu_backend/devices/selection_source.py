"""CUDA C for what a mask chooses: count, then gather or scatter, a tile of the mask for each block of threads."""

from __future__ import annotations

from typing import Final

__all__ = ["COUNT", "GATHER", "PLACE", "SCAN_THREADS", "SCATTER", "SELECTION_SOURCE", "THREADS", "TILE", "UNITS"]

#: Elements of a mask that one block looks at, by so many threads.
TILE: Final = 4096
THREADS: Final = 256
#: Threads of the one block that adds up what the tiles have counted.
SCAN_THREADS: Final = 1024
#: In words of so many bytes elements are moved.
UNITS: Final = (8, 4, 2, 1)
COUNT, PLACE, GATHER, SCATTER = "count_tiles", "place_tiles", "gather_", "scatter_"

_MOVES = """
extern "C" __global__ void gather_%(bytes)d(const %(type)s* from, const unsigned char* mask, long long size,
        const long long* places, long long words, %(type)s* into) {
    FOR_EACH_CHOSEN(for (long long word = 0; word < words; ++word) into[rank * words + word] = from[at * words + word];)
}
extern "C" __global__ void scatter_%(bytes)d(const %(type)s* from, const unsigned char* mask, long long size,
        const long long* places, long long words, %(type)s* into) {
    FOR_EACH_CHOSEN(for (long long word = 0; word < words; ++word) into[at * words + word] = from[rank * words + word];)
}
"""
_TYPES = {8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}

SELECTION_SOURCE: Final = (
    f"#define TILE {TILE}\n#define THREADS {THREADS}\n#define SCAN_THREADS {SCAN_THREADS}\n"
    + r"""
#define WARPS (THREADS / 32)

// How many elements of each tile are chosen.
extern "C" __global__ void count_tiles(const unsigned char* mask, long long size, long long* counts) {
    int count = 0;
    for (int row = 0; row < TILE / THREADS; ++row) {
        long long at = (long long)blockIdx.x * TILE + row * THREADS + threadIdx.x;
        count += __syncthreads_count(at < size && mask[at]);
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Each tile's count becomes how many are chosen before it; how many in all goes to the host.
extern "C" __global__ void place_tiles(long long* counts, long long tiles, volatile long long* all) {
    __shared__ long long sums[SCAN_THREADS];
    long long each = (tiles + SCAN_THREADS - 1) / SCAN_THREADS, first = threadIdx.x * each;
    long long end = first + each < tiles ? first + each : tiles, sum = 0;
    for (long long tile = first; tile < end; ++tile) sum += counts[tile];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 1; step < SCAN_THREADS; step *= 2) {
        long long before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    long long place = sums[threadIdx.x] - sum;
    for (long long tile = first; tile < end; ++tile) {
        long long count = counts[tile];
        counts[tile] = place;
        place += count;
    }
    if (threadIdx.x == SCAN_THREADS - 1) {
        *all = sums[threadIdx.x];
        __threadfence_system();
    }
}

// For the element `at` of the mask, if it is chosen: as which one, `rank`.
#define FOR_EACH_CHOSEN(MOVE) \
    __shared__ int found[2][WARPS]; \
    long long base = places[blockIdx.x]; \
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32; \
    for (int row = 0; row < TILE / THREADS; ++row) { \
        long long at = (long long)blockIdx.x * TILE + row * THREADS + threadIdx.x; \
        bool chosen = at < size && mask[at]; \
        unsigned int votes = __ballot_sync(0xffffffffu, chosen); \
        if (lane == 0) found[row % 2][warp] = __popc(votes); \
        __syncthreads(); \
        long long rank = base + __popc(votes & ((1u << lane) - 1)); \
        for (int one = 0; one < WARPS; ++one) { \
            if (one < warp) rank += found[row % 2][one]; \
            base += found[row % 2][one]; \
        } \
        if (chosen) { MOVE } \
    }
"""
    + "".join(_MOVES % {"bytes": size, "type": name} for size, name in _TYPES.items())
)
