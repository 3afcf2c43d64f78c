"""What native code in an executor tries against what it shares: processes that stay, shared memory, a GPU's memory.

This text runs there, behind that of `payloads`, from which it has its names.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import time

# --- staying, and spoiling --------------------------------------------------------------------------------------------


def leave_a_process(seconds):
    """Start a process that is nobody's child and goes on for ``seconds``; return its number, or 0."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            os.setsid()
        if os.fork() == 0:
            os.write(writer, struct.pack("i", os.getpid()))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(0.05)
        os._exit(0)
    os.wait()
    os.close(writer)
    told = os.read(reader, 4)
    os.close(reader)
    return struct.unpack("i", told)[0] if told else 0


def spoil_shared_memory(rounds):
    """Fill whatever memory this process shares with others and may write with noise; return what that was."""
    with open("/proc/self/maps") as file:
        lines = [line.split(maxsplit=5) for line in file]
    spoiled = []
    for line in lines:
        name = line[5].strip() if len(line) > 5 else ""
        if line[1] != "rw-s" or name.startswith("/dev/nvidia"):
            continue
        low, high = (int(edge, 16) for edge in line[0].split("-"))
        if high - low > 1 << 20:  # frames under way with its own notebook
            continue
        for _ in range(rounds):
            ctypes.memmove(low, os.urandom(high - low), high - low)
        spoiled.append(name)
    return spoiled


def grow_descriptors():
    """Try to cut and to grow what this process was handed: shared memory that others map must keep its size."""
    changed = []
    for number in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{number}")
            size = os.fstat(int(number)).st_size
        except OSError:
            continue
        if "memfd:gpu-workbench" not in link:  # its log is its own, and so is what a driver makes
            continue
        for wanted in (0, size + 4096):
            try:
                os.ftruncate(int(number), wanted)
            except OSError:
                continue
            changed.append(f"{link} to {wanted}")
            os.ftruncate(int(number), size)
    return changed


def burn(seconds, on_gpu=False):
    """Compute for so long on the device, whatever the gate says; return for how long it did at least."""
    if on_gpu:
        return turns_of_a_gpu(seconds)
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass
    return time.thread_time() - begun


def turns_of_a_gpu(seconds):
    """Keep a GPU busy for so long; return what its turns took as if all were the shortest: others may have a part."""
    work, begun, turns = work_of_a_gpu(), time.monotonic(), []
    while (before := time.monotonic()) - begun < seconds:
        work()
        turns.append(time.monotonic() - before)
    return len(turns) * min(turns)


def work_of_a_gpu():
    """Return what keeps a GPU busy for some milliseconds, and waits for it."""
    import cupy

    many = cupy.ones(1 << 26)
    return lambda: float(cupy.sin(many).sum())


def spoil_others_pages(pids):
    """Write noise, and absurd amounts, into any shared memory of others that can be opened; return what that was."""
    noise, much = os.urandom(4096), struct.pack("d", 3600.0) * 512
    spoiled = []
    paths = [os.path.join("/dev/shm", name) for name in listed("/dev/shm")]
    for pid in pids:
        for number in listed(f"/proc/{pid}/fd"):
            try:
                link = os.readlink(f"/proc/{pid}/fd/{number}")
            except OSError:
                continue
            if "memfd" in link or "/dev/shm" in link:
                paths.append(f"/proc/{pid}/fd/{number}")
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDWR)
            size = min(os.fstat(descriptor).st_size, 4096)
            for data in (noise, much):
                os.pwrite(descriptor, data[:size], 0)
            os.close(descriptor)
        except OSError:
            continue
        spoiled.append(path)
    return spoiled


def listed(directory):
    """Return what is in a folder, as far as one may know."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


# --- a GPU's memory ---------------------------------------------------------------------------------------------------


#: Blocks of memory that a victim fills, and how large each is: nearly all handles of its memory name one of them.
_BLOCKS, _BLOCK_BYTES = 24, 1 << 21


def fill_memory(secret):
    """Fill blocks of this GPU's memory with ``secret``; return a handle by which others may map one, if any."""
    import cupy

    pattern = cupy.asarray(bytearray(bytes.fromhex(secret)))
    cupy.kept = [cupy.resize(pattern, _BLOCK_BYTES) for _ in range(_BLOCKS)]  # programs have no globals that last
    cupy.cuda.runtime.deviceSynchronize()
    try:
        handle = cupy.cuda.runtime.ipcGetMemHandle(cupy.kept[0].data.ptr).hex()
    except cupy.cuda.runtime.CUDARuntimeError:
        handle = ""
    return {"handle": handle, "pid": os.getpid()}


def filled_memory_is_intact(secret):
    """Tell whether the blocks hold what they were filled with."""
    import cupy

    expected = cupy.resize(cupy.asarray(bytearray(bytes.fromhex(secret))), _BLOCK_BYTES)
    return {"intact": all(bool((block == expected).all()) for block in cupy.kept)}


def open_memory(handles, needles):
    """Try to map the memory that each of ``handles`` may name, read it and write into it.

    Return the handles that could be, and how often one of ``needles`` was found. Memory of this process is its own, and
    may be among it.
    """
    import cupy

    opened, found = [], 0
    for text in handles:
        try:
            place = cupy.cuda.runtime.ipcOpenMemHandle(bytes.fromhex(text), 1)
        except cupy.cuda.runtime.CUDARuntimeError:
            continue
        seen = cupy.ndarray(1 << 16, "u1", cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(place, 1 << 16, None), 0))
        read = seen.get().tobytes()
        found += sum(read.count(bytes.fromhex(needle)) for needle in needles)
        opened.append(text)
        seen.fill(0xEE)
        cupy.cuda.runtime.deviceSynchronize()
        cupy.cuda.runtime.ipcCloseMemHandle(place)
    return {"opened": opened, "found": found}


def reachable_devices():
    """Return the GPUs whose nodes can be opened, and what the process is told that it has."""
    opened = []
    for name in [f"nvidia{number}" for number in range(64)]:  # /dev itself may not be listed
        with contextlib.suppress(OSError):
            os.close(os.open(f"/dev/{name}", os.O_RDWR))
            opened.append(name)
    return {"opened": opened, "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "")}


def search_fresh_memory(needle):
    """Take the memory of the device that is free, as it comes, and look for the bytes ``needle``.

    An eighth of all is left to whoever else is at work there: other tests begin sessions at the same time.
    """
    import cupy

    runtime, step = cupy.cuda.runtime, 1 << 28
    spared = runtime.memGetInfo()[1] // 8
    taken, found, read = [], 0, 0
    try:
        while runtime.memGetInfo()[0] > spared:
            taken.append(runtime.malloc(step))
    except runtime.CUDARuntimeError:
        pass
    for place in taken:
        found += count_on_device(cupy, place, step, needle)
        read += step
        runtime.free(place)
    return {"bytes": read, "found": found}


def count_on_device(cupy, place, size, needle):
    """Return how often ``needle`` begins at a multiple of its length in ``size`` bytes of the device at ``place``."""
    pattern = bytes.fromhex(needle)
    word = next(width for width in (8, 4, 2, 1) if len(pattern) % width == 0)  # others compute there too: be quick
    pattern = cupy.array(list(memoryview(pattern).cast({8: "Q", 4: "I", 2: "H", 1: "B"}[word])), f"u{word}")
    memory = cupy.cuda.UnownedMemory(place, size, None)
    seen = cupy.ndarray((size // pattern.nbytes, len(pattern)), pattern.dtype, cupy.cuda.MemoryPointer(memory, 0))
    return int((seen == pattern).all(axis=1).sum())
