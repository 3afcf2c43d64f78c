"""Functions about dtypes and names that older NumPys had and CuPy still answers, and alignment for the GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpu_backend.opstream.layout import DType
from kernelproxy.calls.argument_types import DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace.refusing import refusing

if TYPE_CHECKING:
    import numpy.typing as npt

#: CUDA's alignment of a number is its size; of vectors of two, such as complex128, at most this.
_MOST_ALIGNMENT = 16


def _removed(name: str, instead: str) -> Callable[..., Any]:
    return refusing(name, f"This function has been removed in NumPy v2.\nUse {instead} instead.\n")


find_common_type = _removed("find_common_type", "`promote_types` or `result_type`")
set_string_function = _removed("set_string_function", "`np.set_printoptions`")
get_array_wrap = _removed("get_array_wrap", "<no replacement>")
disp = _removed("disp", "your own print function")
safe_eval = _removed("safe_eval", "`ast.literal_eval`")


def issubclass_(arg1: object, arg2: type | tuple[type, ...]) -> bool:
    """Tell whether ``arg1`` is a class below ``arg2``; False if it is no class."""
    return isinstance(arg1, type) and issubclass(arg1, arg2)


def obj2sctype(rep: object, default: object = None) -> Any:
    """Return the scalar type of an array, a dtype or what means one; ``default`` if there is none."""
    if isinstance(rep, type) and issubclass(rep, np.generic):
        return rep
    if isinstance(rep, (np.ndarray, ArrayCore)):
        return rep.dtype.type
    try:
        return np.dtype(cast("npt.DTypeLike", rep)).type
    except TypeError:
        return default


def issubsctype(arg1: object, arg2: object) -> bool:
    """Tell whether the scalar type of ``arg1`` is below that of ``arg2``."""
    return issubclass(obj2sctype(arg1), obj2sctype(arg2))


def issctype(rep: object) -> bool:
    """Tell whether ``rep`` is a scalar type or a dtype."""
    found = obj2sctype(rep) if isinstance(rep, (type, np.dtype)) else None
    return found is not None and found is not np.object_


def sctype2char(sctype: DTypeLike) -> str:
    """Return the character of a scalar type.

    Raises
    ------
    ValueError
        If ``sctype`` is none.
    """
    found = obj2sctype(sctype)
    if found is None:
        raise ValueError("unrecognized type")
    return str(np.dtype(found).char)


def who(vardict: Mapping[str, object] | None = None) -> None:
    """Print name, shape, bytes and dtype of the remote arrays in ``vardict``, or among the caller's globals."""
    named = sys._getframe(1).f_globals if vardict is None else vardict
    rows: list[tuple[str, str, str, str]] = []
    seen: dict[int, str] = {}
    total = 0
    for name, value in sorted(named.items()):
        if isinstance(value, ArrayCore):
            layout = value._layout
            shown = f"{name} ({seen[id(value)]})" if id(value) in seen else name
            total += 0 if id(value) in seen else layout.nbytes
            seen.setdefault(id(value), name)
            rows.append((shown, " x ".join(map(str, layout.shape)), str(layout.nbytes), layout.dtype.name))
    widths = [max(10, *(len(row[column]) for row in rows)) if rows else 10 for column in range(3)]
    gaps = [width - len(title) for width, title in zip(widths, ("Name", "Shape", "Bytes"), strict=True)]
    head = f"Name{' ' * (gaps[0] + 6)}Shape{' ' * (gaps[1] + 7)}Bytes{' ' * (gaps[2] + 7)}Type"
    lines = [head, "=" * (len(head) + 5), ""] if rows else []
    starts = (4 + gaps[0] + 6, 5 + gaps[1] + 7, 5 + gaps[2] + 7)
    lines += ["".join(part.ljust(start) for part, start in zip(row, starts, strict=False)) + row[3] for row in rows]
    lines += ["", f"Upper bound on total bytes  =       {total}"]
    print("\n".join(lines))  # noqa: T201 (printing is what it is for)


def make_aligned_dtype(dtype: DTypeLike, *, alignment: int = -1, recurse: bool = True) -> np.dtype[Any]:
    """Return ``dtype`` with its fields placed as a CUDA structure has them.

    Raises
    ------
    ValueError
        If the fields overlap or are out of order, or ``alignment`` is none or too small.
    """
    return _aligned(np.dtype(dtype, align=True), alignment, recurse)[0]


def _aligned(dtype: DType, alignment: int, recurse: bool) -> tuple[np.dtype[Any], int]:
    if alignment != -1 and (alignment <= 0 or alignment.bit_count() != 1):
        raise ValueError("Reasonable alignments must be >0 and a power of 2.")
    if dtype.fields is None:
        least = min(dtype.base.itemsize, _MOST_ALIGNMENT)
        if alignment > dtype.itemsize:
            raise ValueError("Alignment larger than itemsize for non-structured dtype.")
        return dtype, max(least, alignment)
    names, formats, offsets, place, least, end = list(dtype.fields), [], [], 0, 1, 0
    for field in dtype.fields.values():
        kind, offset = field[0], field[1]
        if offset < end:
            raise ValueError(
                "make_aligned_dtype() only supports well behaved in-order fields as it ignores field offsets."
            )
        end = offset + kind.itemsize
        kind, own = _field(kind, recurse)
        place = -(-place // own) * own
        least = max(least, own)
        formats.append(kind)
        offsets.append(place)
        place += kind.itemsize
    if alignment != -1 and alignment < least:
        raise ValueError(f"make_aligned_dtype(): given alignment={alignment} smaller than minimum alignment {least}")
    metadata = {} if alignment == -1 else {"metadata": {"__cuda_alignment__": alignment}}
    least = max(least, alignment)
    itemsize = -(-place // least) * least
    if dtype.itemsize > itemsize:
        raise ValueError("Input descriptor had larger itemsize than inferred.")
    described = {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
    return np.dtype(described, align=True, **metadata), least  # type: ignore[call-overload]


def _field(kind: DType, recurse: bool) -> tuple[np.dtype[Any], int]:
    metadata: Mapping[str, Any] = kind.metadata or {}
    asked = metadata.get("__cuda_alignment__")
    if asked is not None:
        return kind, int(asked)
    if kind.fields is not None and not recurse:
        return kind, kind.alignment
    return _aligned(kind, -1, recurse)
