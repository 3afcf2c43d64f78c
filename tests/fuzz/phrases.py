"""What statements are made of: phrases with places for operands, by what comes out.

A place is one word in braces: ``x`` is an array of n rows and m columns, or a view of one; ``y`` that, or what is
spread over one, or a number; ``r`` a row of m and ``w`` one of n; ``t`` an array of n by m that is written into;
``k`` a mask; ``o`` an array other than ``t``: CuPy copies rows onto rows of the same array, and runs kernels of the
user's, without looking whether they overlap, and then what comes out is the one thing now and the other then. ``CUT``
and ``CUT2`` are windows of the same shape. All others are words of a list below.
"""

from __future__ import annotations

__all__ = ["CUTS", "PHRASES", "USUAL", "WORDS"]

#: Windows of one shape, by families.
CUTS = (
    ("[1:-1]", "[2:]", "[:-2]"), ("[:, 1:-1]", "[:, 2:]", "[:, :-2]"), ("[1:, 1:]", "[:-1, :-1]", "[1:, :-1]"),
    ("[::2]", "[::-2]" , "[::2]"), ("[:, ::2]", "[:, ::-2]"), ("[j % n]", "[0]", "[-1]", "[(j + 1) % n]"),
    ("[:, j % m]", "[:, 0]", "[:, -1]"), ("[::-1]", "[:, ::-1]", "[::-1, ::-1]", "[:]"),
    ("[j % n:j % n + 1]", "[:1]", "[-1:]"),
)  # fmt: skip
_NUMBERS = (
    "0", "1", "2", "3", "-1", "7", "0.5", "-1.25", "-0.0", "0.0", "2.5", "True", "nan", "inf", "1e-5", "300", "1e30",
    "1j", "(0.5-2j)", "np.float32(0.1)", "np.int8(-3)", "np.uint16(9)", "np.float64(-0.0)", "np.float16(0.25)",
    "np.int64(5)", "np.bool_(True)", "np.complex64(1-1j)", "j", "j * 0.5",
)  # fmt: skip
#: Words that stand for themselves.
WORDS = {
    "num": _NUMBERS,
    "dt": tuple(f"'{char}'" for char in "?bBhHiIqQefdFD"),
    "sign": ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<", "<=", ">", "==", "!=", "<<", ">>"),
    "change": ("+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "+=", "*=", "-=", "**="),
    "usual": ("add", "subtract", "multiply", "true_divide", "maximum", "minimum", "less", "equal", "power"),
    "whole": ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"),
    "axis": ("0", "1", "-1"),
    "running": ("cumsum", "cumprod"),
}  # fmt: skip
#: What most of a user's programs are: arithmetic, and what puts it into windows.
USUAL: dict[str | None, tuple[str, ...]] = {
    "nm": (
        "cp.{one}({x})", "cp.{two}({x}, {y})", "cp.{two}({y}, {x})", "cp.{usual}({x}, {y})", "cp.{usual}({x}, {x})",
        "{x} {sign} {y}", "{x} {sign} {x}", "{y} {sign} {x}", "cp.where({k}, {x}, {y})",
        "cp.where({x} > {num}, {y}, {x})", "{x} * {num} + {x} * {num}",
        "{x}.astype({dt})", "{x}.copy()", "-{x}", "abs({x})", "{x} / ({x} + {num})",
    ),
    None: (
        "{t} {change} {y}", "{t} {change} {x}", "{t}{CUT} {change} {x}{CUT2}", "{t}{CUT} = {o}{CUT2}",
        "{t}{CUT} = {x}{CUT2} {sign} {x}{CUT2}", "{t}{CUT} = cp.{two}({x}{CUT2}, {num})",
        "{t}{CUT} = {num} * {x}{CUT2} + {x}{CUT2}", "{t} = {t} {sign} {y}", "{t} = {t} * {num} + {x}",
        "for h in range(5): {t} = {t} * 0.5 + {x}", "cp.{two}({x}, {y}, out={t})", "{t}{CUT} = cp.{one}({x}{CUT2})",
        "del {temporary}",
    ),
}  # fmt: skip
#: By what comes out: "nm" for n rows and m columns, "m", "n", "nn", "" for one number; None where nothing does, and "?"
#: for a shape that only the device knows, or none of these.
PHRASES: dict[str | None, tuple[str, ...]] = {
    "nm": (
        "cp.array({x}, order='F')", "cp.array({x}, order='C')", "cp.clip({x}, -2, 3)",
        "cp.{running}({x}, axis={axis})", "cp.sort({x}, axis={axis})", "cp.argsort({x}, axis={axis})",
        "{x}[i]", "cp.take({x}, i, axis=0)", "cp.roll({x}, {small})", "cp.roll({x}, {small}, axis={axis})",
        "cp.concatenate([{x}[:1], {x}[1:]], axis=0)", "cp.vstack([{x}[1:], {r}])", "cp.flip({x}, {axis}).copy()",
        "cp.fft.fft({x}, axis={axis})", "cp.fft.ifft({x}, axis={axis})", "cp.fft.fft2({x})",
        "cp.fft.fftshift({x})", "cp.{pair}({x})[0]", "cp.{pair}({x})[1]", "cp.divmod({x}, {y})[1]",
        "scaled({x}, {x}, {num})", "cp.tril({x})", "cp.triu({x}, 1)", "cp.round({x}, 1)", "cp.isclose({x}, {x})",
        "cp.nan_to_num({x})", "cp.outer({w}, {r})", "{w}[:, None] * {r}", "cp.broadcast_to({r}, (n, m)) + {x}",
        "cp.zeros((n, m), {dt})", "cp.ones((n, m), {dt})", "cp.full((n, m), {num})", "cp.zeros_like({x})",
        "cp.arange(n * m).reshape(n, m)", "cp.random.standard_normal((n, m))", "cp.random.rand(n, m)",
        "cp.random.randint(0, 9, (n, m))", "rng.random((n, m))", "rng.standard_normal((n, m))", "q @ {x}",
        "cp.matmul(q, {x})", "cp.dot(q, {x})", "{x}.T.copy().T", "{x}.reshape(-1)[::-1].reshape(n, m).copy()",
        "cp.diff({x}, axis=0, prepend=0)", "cp.pad({x}[1:, 1:], ((1, 0), (0, 1)))", "cp.stack([{r}] * n)",
        "cp.where({k}, {num}, {x})", "cp.maximum(cp.minimum({x}, {num}), {num})",
    ),
    "m": (
        "{x}.{whole}(axis=0)", "cp.{whole}({x}, axis=0)", "{x}[j % n] {sign} {r}", "cp.{one}({r})",
        "cp.{usual}({r}, {num})", "{x}[0] + {x}[-1]", "{w} @ {x}", "cp.sort({r})", "squares({x}, axis=0)",
        "cp.linspace(0, 1, m)", "cp.arange(m)", "cp.random.permutation(m)", "{x}.sum(axis=0, keepdims=True)[0]",
        "cp.fft.fft({r})", "{r}[::-1] * {r}", "cp.nanmax({x}, axis=0)", "cp.count_nonzero({x}, axis=0)",
        "cp.searchsorted(cp.sort(d), {r})",
    ),
    "n": (
        "{x}.{whole}(axis=1)", "cp.{whole}({x}, axis=1)", "{x} @ {r}", "q @ {w}", "cp.dot(q, {w})", "{w}[i]",
        "cp.{usual}({w}, {num})", "{w} {sign} {w}", "cp.{running}({w})", "cp.sort({w})", "cp.argsort({w})",
        "cp.{one}({w})", "cp.roll({w}, {small})", "cp.diag(q)", "{x}[:, j % m] * {w}", "squares({x}, axis=1)",
        "cp.linalg.norm({x}, axis=1)", "cp.take({w}, i)", "cp.bincount(i, minlength=n)", "cp.where({l}, {w}, {num})",
        "cp.linalg.solve(q + 90 * cp.eye(n), {w})", "cp.random.random(n)", "cp.ptp({x}, axis=1)",
    ),
    "nn": (
        "q @ q", "cp.matmul(q, q.T)", "cp.outer({w}, {w})", "q + cp.eye(n)", "{x} @ {x}.T", "cp.tril(q)", "q.T * q",
        "cp.linalg.inv(q + 90 * cp.eye(n))",
    ),
    "": (
        "{x}.{whole}()", "cp.{whole}({x})", "{r}.{whole}()", "cp.{whole}(v)", "cp.dot({w}, {w})", "cp.vdot({r}, {r})",
        "cp.linalg.norm({r})", "cp.trace(q)", "squares({x})", "{x}[0, 0] + z", "cp.count_nonzero({x})", "z * {num}",
        "cp.{one}(z)", "cp.nansum({x})", "{x}[{k}].sum()", "{x}.sum(dtype={dt})", "cp.inner({w}, {w})", "q[0, -1]",
    ),
    "?": (
        "{x}[{k}]", "{r}[{r} > {num}]", "cp.nonzero({k})[0]", "cp.unique(v)", "cp.histogram(v, bins=6)[0]",
        "cp.bincount(cp.abs(v).astype('q'))", "cp.fft.rfft({x}, axis=1)", "{x}.view('u1')", "cp.tile({r}, 3)",
        "cp.repeat({w}, 2)", "cp.stack([{x}, {x}])", "cp.concatenate([{r}, {w}])", "cp.hstack([{x}, {x}])",
        "{x}.T + 1", "{x}.T.sum(axis=0)", "{x}.ravel()", "{x}[:, None] + {r}[None]", "cp.kron({r}[:3], {w}[:3])",
        "cp.cumsum(v)", "cp.sort(v)", "cp.argsort(v)", "cp.diff({x})", "e * {num} + f", "e.sum()", "cp.exp(e)", "v[i]",
        "cp.take(v, i)", "e[::3] - f[::3]", "{any} * {num}", "{any}.sum()", "cp.{one}({any})", "{any}[::-1].copy()",
        "cp.concatenate([e, f, v])", "cp.where(e > f, e, v)", "cp.correlate(c, c)", "cp.einsum('ij,kj->ik', {x}, {x})",
    ),
    None: (
        "{t}{CUT} = {num}", "{t}{CUT} {change} {num}", "{t}[...] = {y}",
        "cp.{one}({x}, {t})", "cp.{usual}({x}{CUT}, {x}{CUT2}, {t}{CUT})",
        "{t}.fill({num})", "cp.copyto({t}, {x})", "{t}[{k}] = {num}", "{t}[{k}] {change} {num}", "{t}[i] = {x}",
        "{t}[i] {change} {num}", "{t}[{l}] = {num}", "{t}.sort(axis={axis})", "{t}[j % n] = {r}",
        "{t}[:, j % m] {change} {w}", "doubled({t})", "scaled({o}, {o}, {num}, {t})", "{t}[j % n, j % m] = {num}",
        "for h in range(1, min(n, 7)): {t}[h] = {t}[h - 1] * {num} + {r}",
        "for h in range(min(n, 6)): {t}[h] {change} {r}",
        "for h in range(4): {t}[1:-1] += {num} * ({x}[2:] - {x}[:-2])",
        "for h in range(min(m, 5)): {t}[:, h] = {x}[:, h] {sign} {w}", "e += f * {num}", "e[1:] = f[:-1] {sign} e[1:]",
        "raw((4,), (64,), (e, f, e.size, np.float32({plain})))",
        "raw((3,), (32,), (f[2:], e[:-2], e.size - 2, np.float32(0.5)))",
        "raw((2,), (64,), (v, e, e.size, np.float32(-1)))", "f *= 0.5", "float({x}.sum())", "{x}.get()",
        "bool({k}.all())",
        "int(cp.count_nonzero({x}))", "{r}[0].item()", "{t}[::2] = {t}[::2][::-1]",
        "{t}[1:] += {t}[:-1]", "q[...] = q.T", "q += 0.25 * q.T",
    ),
}  # fmt: skip
