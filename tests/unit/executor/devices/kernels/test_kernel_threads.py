"""Threads that meet: barriers, shared memory, warps, atomics, locks, cooperative groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.cpu.kernels import CUDADriverError, RawKernel, RawModule

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

template <int Size>
__device__ float tree_sum(float value) {
    __shared__ float s[Size];
    s[threadIdx.x] = value;
    __syncthreads();
    for (int half = Size / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    return s[0];
}

extern "C" {
__global__ void block_sums(const float* x, float* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = tree_sum<256>(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void transpose(const double* in, double* out, int width, int height) {
    __shared__ double tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    int step = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&local[data[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void some_leave_early(int* out) {
    if (threadIdx.x % 3 == 1) return;
    int count = __syncthreads_count(threadIdx.x % 2);
    int all = __syncthreads_and(threadIdx.x < 1000), any = __syncthreads_or(threadIdx.x == 6);
    out[threadIdx.x] = count * 100 + all * 10 + any;
}

__global__ void coordinates(int* out) {
    __syncthreads();
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z;
}

__global__ void shuffles(const float* x, float* out) {
    int lane = threadIdx.x % 32, n = blockDim.x;
    float value = x[threadIdx.x];
    out[threadIdx.x] = __shfl_sync(0xffffffff, value, 3);
    out[n + threadIdx.x] = __shfl_up_sync(0xffffffff, value, 1);
    out[2 * n + threadIdx.x] = __shfl_down_sync(0xffffffff, value, 2, 8);
    out[3 * n + threadIdx.x] = __shfl_xor_sync(0xffffffff, value, 5);
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    if (lane == 0) out[4 * n + threadIdx.x / 32] = value;
}

__global__ void votes(unsigned* out) {
    int lane = threadIdx.x;
    out[lane] = __ballot_sync(0xffffffff, lane % 4 == 1);
    out[32 + lane] = __any_sync(0xffffffff, lane == 7) * 2 + __all_sync(0xffffffff, lane < 40);
    out[64 + lane] = __match_any_sync(0xffffffff, lane / 10);
    int all;
    out[96 + lane] = __match_all_sync(0xffffffff, 7, &all) & (all ? 0xff : 0);
    out[128 + lane] = __reduce_add_sync(0xffffffff, (unsigned)lane) + __reduce_max_sync(0xffffffff, lane);
    if (lane < 8) out[160 + lane] = __shfl_sync(0x000000ff, lane, 7 - lane);
    else out[160 + lane] = __shfl_sync(0xffffff00, lane, 8);
    if (lane % 5 == 0) out[192 + lane] = __activemask();
    else __syncwarp(__activemask());
}

__global__ void lock(int* mutex, int* counter) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    int value = *counter;
    __nanosleep(1);
    *counter = value + 1;
    atomicExch(mutex, 0);
}

__global__ void waits_for_the_last(volatile int* flag, int* mutex) {
    if (threadIdx.x == 0) { while (atomicExch(mutex, 1) == 1) {} *flag = 5; }
    else if (threadIdx.x == 63) atomicExch(mutex, 0);
}

__global__ void last_block_sums(const float* x, float* partial, float* total, unsigned* done, int n) {
    __shared__ bool last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = tree_sum<64>(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) for (int b = 0; b < gridDim.x; ++b) *total += partial[b];
}

__global__ void tiles(const float* x, float* sums, int* groups) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    float mine = x[block.thread_rank()], value = mine;
    for (int half = tile.size() / 2; half > 0; half /= 2) value += tile.shfl_down(value, half);
    float again = cg::reduce(tile, mine, cg::plus<float>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = value == again ? value : -1;
    if (threadIdx.x % 3 == 0) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(groups, active.size());
    }
    cg::sync(block);
}

__global__ void fails_while_others_wait(int* out, int bad) {
    if (threadIdx.x == bad) __trap();
    out[threadIdx.x] = __shfl_sync(0xffffffff, threadIdx.x, 31 - threadIdx.x);
    __syncthreads();
}

__global__ void deadlock(int* out) {
    cg::this_grid().sync();
}
}
"""


@pytest.fixture(scope="module")
def run() -> Any:
    module = RawModule(code=SOURCE)

    def launch(name: str, grid: tuple[int, ...], block: tuple[int, ...], *args: object) -> None:
        module.get_function(name)(grid, block, args)

    return launch


@pytest.mark.parametrize("n", [1, 255, 256, 5000])
def test_a_reduction_in_shared_memory(run: Any, n: int) -> None:
    x = np.arange(n, dtype=np.float32) % 7
    blocks = -(-n // 256)
    sums = np.zeros(blocks, np.float32)
    run("block_sums", (blocks,), (256,), x, sums, n)
    np.testing.assert_array_equal(sums, [x[b * 256 : (b + 1) * 256].sum() for b in range(blocks)])


def test_a_transpose_by_tiles_in_two_dimensions(run: Any) -> None:
    x = np.arange(37 * 50.0).reshape(37, 50)
    out = np.zeros((50, 37))
    run("transpose", (4, 3), (16, 16), x, out, 50, 37)
    np.testing.assert_array_equal(out, x.T)


def test_a_histogram_by_atomics(run: Any) -> None:
    data = np.random.default_rng(0).integers(0, 256, 10000).astype(np.uint8)
    bins = np.zeros(256, np.uint32)
    run("histogram", (7,), (256,), data, data.size, bins)
    np.testing.assert_array_equal(bins, np.bincount(data, minlength=256))


def test_threads_that_have_ended_are_not_waited_for(run: Any) -> None:
    out = np.zeros(100, np.int32)
    run("some_leave_early", (2,), (100,), out)
    there = [t for t in range(100) if t % 3 != 1]
    expected = sum(t % 2 for t in there) * 100 + 11
    assert {int(out[t]) for t in there} == {expected}


def test_coordinates_survive_a_barrier_in_three_dimensions(run: Any) -> None:
    out = np.zeros(2 * 3 * 2 * 4 * 3 * 2, np.int32)
    run("coordinates", (2, 3, 2), (4, 3, 2), out)
    block = [x * 100 + y * 10 + z for z in range(2) for y in range(3) for x in range(4)]
    assert out.tolist() == block * 12


def test_shuffles(run: Any) -> None:
    n = 96
    x = np.random.default_rng(1).integers(0, 50, n).astype(np.float32)
    out = np.zeros(5 * n, np.float32)
    run("shuffles", (1,), (n,), x, out)
    lanes = np.arange(32)
    warps = x.reshape(-1, 32)
    np.testing.assert_array_equal(out[:n].reshape(-1, 32), np.repeat(warps[:, 3:4], 32, 1))
    np.testing.assert_array_equal(out[n : 2 * n].reshape(-1, 32), warps[:, np.maximum(lanes - 1, 0)])
    down = np.where(lanes % 8 + 2 < 8, lanes + 2, lanes)
    np.testing.assert_array_equal(out[2 * n : 3 * n].reshape(-1, 32), warps[:, down])
    np.testing.assert_array_equal(out[3 * n : 4 * n].reshape(-1, 32), warps[:, lanes ^ 5])
    np.testing.assert_array_equal(out[4 * n : 4 * n + 3], warps.sum(1))


def test_votes_matches_and_divergent_masks(run: Any) -> None:
    out = np.zeros((7, 32), np.uint32)
    run("votes", (1,), (32,), out)
    lanes = np.arange(32)
    assert set(out[0]) == {0x22222222}
    assert set(out[1]) == {3}
    assert out[2].tolist() == [sum(1 << o for o in range(32) if o // 10 == lane // 10) for lane in range(32)]
    assert set(out[3]) == {0xFF}
    assert set(out[4]) == {496 + 31}
    assert out[5, :8].tolist() == (7 - lanes[:8]).tolist()
    assert set(out[5, 8:]) == {8}
    assert set(out[6, ::5]) == {sum(1 << lane for lane in range(0, 32, 5))}


def test_a_lock_that_threads_spin_on(run: Any) -> None:
    mutex, counter = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run("lock", (3,), (100,), mutex, counter)
    assert counter[0] == 300


def test_waiting_for_a_thread_that_has_not_started(run: Any) -> None:
    mutex, flag = np.ones(1, np.int32), np.zeros(1, np.int32)
    run("waits_for_the_last", (1,), (64,), flag, mutex)
    assert flag[0] == 5


def test_the_last_block_adds_up_what_all_left(run: Any) -> None:
    x = np.ones(1000, np.float32)
    partial, total, done = np.zeros(16, np.float32), np.zeros(1, np.float32), np.zeros(1, np.uint32)
    run("last_block_sums", (16,), (64,), x, partial, total, done, 1000)
    assert total[0] == 1000


def test_tiles_and_coalesced_threads(run: Any) -> None:
    x = np.arange(128, dtype=np.float32)
    sums, groups = np.zeros(16, np.float32), np.zeros(1, np.int32)
    run("tiles", (1,), (128,), x, sums, groups)
    np.testing.assert_array_equal(sums, x.reshape(16, 8).sum(1))
    assert groups[0] == sum(t % 3 == 0 for t in range(128))


def test_a_grid_that_cannot_meet_is_an_error_and_not_a_hang(run: Any) -> None:
    with pytest.raises(CUDADriverError, match="enable_cooperative_groups=True"):
        run("deadlock", (2,), (8,), None)


def test_a_launch_that_failed_leaves_nothing_behind(run: Any) -> None:
    out = np.zeros(32, np.int32)
    for bad in (20, 0, 31):
        with pytest.raises(CUDADriverError, match="CUDA_ERROR_LAUNCH_FAILED"):
            run("fails_while_others_wait", (1,), (32,), out, bad)
        run("fails_while_others_wait", (2,), (32,), out, 99)
        assert out.tolist() == list(range(31, -1, -1))


def test_a_thread_has_room_for_large_local_arrays_beside_a_barrier() -> None:
    kernel = RawKernel(
        r"""extern "C" __global__ void local(int* out) {
            volatile int mine[16384];
            for (int i = 0; i < 16384; ++i) mine[i] = i + threadIdx.x;
            __syncthreads();
            int sum = 0;
            for (int i = 0; i < 16384; i += 4096) sum += mine[i];
            out[threadIdx.x] = sum;
        }""",
        "local",
    )
    out = np.zeros(64, np.int32)
    kernel((1,), (64,), (out,))
    np.testing.assert_array_equal(out, 4096 * 6 + 4 * np.arange(64))


GRID = r"""
#include <cooperative_groups.h>
extern "C" __global__ void shift(const float* x, float* y, int n) {
    __shared__ float mine;
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    int size = gridDim.x * blockDim.x, tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (threadIdx.x == 0) mine = blockIdx.x;
    for (int i = tid; i < n; i += size) y[i] = x[i];
    cooperative_groups::sync(grid);
    for (int i = n - 1 - tid; i >= 0; i -= size) y[i] += x[n - 1 - i];
    grid.sync();
    if (threadIdx.x == 0 && mine != blockIdx.x) y[0] = -1;
}
"""


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (40, 64)])
def test_a_cooperative_grid_meets(blocks: int, threads: int) -> None:
    n = 3000
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    RawKernel(GRID, "shift", enable_cooperative_groups=True)((blocks,), (threads,), (x, y, n))
    np.testing.assert_array_equal(y, x + x[::-1])


def test_a_cooperative_grid_that_is_too_large_is_reduced_with_cupys_warning() -> None:
    n = 3000
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    kernel = RawKernel(GRID, "shift", enable_cooperative_groups=True)
    with pytest.warns(UserWarning, match="The grid size will be reduced from 100 to 64"):
        kernel((100,), (32,), (x, y, n))
    np.testing.assert_array_equal(y, x + x[::-1])
    with pytest.raises(ValueError, match="exceeds the limit"):
        kernel((10, 10), (32,), (x, y, n))
