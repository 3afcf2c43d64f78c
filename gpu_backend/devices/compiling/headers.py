"""Which headers a kernel may include: those of CUDA, of CuPy and of the languages, by their names.

A name says nothing of where its file lies: the compiler finds it in the folders that CuPy passes, and nowhere else.
"""

from __future__ import annotations

import re

#: Folders of headers, with all that is below them.
_FOLDERS = frozenset({
    "cccl", "cooperative_groups", "crt", "cub", "cuda", "cupy", "cutlass", "cute", "gpu", "hip", "hipcub", "nv",
    "thrust",
})  # fmt: skip
#: Headers of CUDA's own include folder.
_OF_CUDA = re.compile(
    r"""
    cu(?:da|rand|fft|blas|sparse|solver|tensor|Complex)\w*\.(?:h|hpp|cuh)
    | (?:math|device|vector|texture|surface|sm_\d+|driver|host)_\w+\.(?:h|hpp)
    | (?:mma|library_types|builtin_types|channel_descriptor|common_functions|nvfunctional|vector_types|fatbinary_section
        |device_types|cooperative_groups|nv_decode|nvToolsExt)(?:\.(?:h|hpp))?
    """,
    re.VERBOSE,
)
#: Headers of C and C++ that say nothing of files and processes.
_OF_THE_LANGUAGES = frozenset(
    """algorithm any array atomic bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono cinttypes
    climits cmath compare complex concepts cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
    deque
    exception functional initializer_list iterator limits list map memory new numbers numeric optional queue random
    ratio set span stack stdexcept string string_view tuple type_traits typeindex typeinfo unordered_map unordered_set
    utility valarray variant vector version mdspan
    assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h
    stdio.h stdlib.h string.h tgmath.h time.h wchar.h""".split()
)
_PART = re.compile(r"\w[\w.+-]*")


def is_served(name: str) -> bool:
    """Tell whether a kernel may include the header ``name``, as it stands between quotes or angle brackets.

    Examples
    --------
    >>> is_served("cuda/std/complex"), is_served("cuda_fp16.h"), is_served("../notes.h"), is_served("/etc/passwd")
    (True, True, False, False)
    """
    folder, *below = name.split("/")
    if below:
        return folder in _FOLDERS and all(_PART.fullmatch(part) and ".." not in part for part in below)
    return name in _OF_THE_LANGUAGES or _OF_CUDA.fullmatch(name) is not None
