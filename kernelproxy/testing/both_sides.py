"""Calls a test with CuPy and then with NumPy, and compares how they failed."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelproxy.testing.pytest_part import skips
from kernelproxy.testing.signatures import Test

#: What a test is given for the names of the array module, of the sparse matrices and of SciPy.
_MODULES = {
    "cupy": ("cupy", "cupyx.scipy.sparse", "cupyx.scipy"),
    "numpy": ("numpy", "scipy.sparse", "scipy"),
}
#: Programs catch errors by these classes: the two sides must agree in each.
_CLASSES = (
    *(AttributeError, IndexError, TypeError, ValueError, NotImplementedError, DeprecationWarning),
    *(Exception, np.exceptions.AxisError, np.linalg.LinAlgError),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test returned or raised."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """The arguments by which a test takes its modules."""

    xp: str
    sp: str | None
    scipy: str | None

    def given(self) -> tuple[str, ...]:
        """Return those that the test has."""
        return tuple(name for name in (self.xp, self.sp, self.scipy) if name)

    def call(
        self, library: Literal["cupy", "numpy"], test: Test, args: tuple[Any, ...], kw: Mapping[str, Any]
    ) -> Outcome:
        """Call ``test`` with the modules of ``library``.

        Raises
        ------
        TypeError
            If the test does not take the arguments, so that it was not even begun.
        """
        names = (self.xp, self.sp, self.scipy)
        modules = {
            name: importlib.import_module(module)
            for name, module in zip(names, _MODULES[library], strict=True)
            if name
        }  # fmt: skip
        try:
            return Outcome(value=test(*args, **{**kw, **modules}))
        except BaseException as error:  # any error is an outcome, to be compared with the other side's; so is a skip
            begun = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if not begun or not isinstance(error, (Exception, *skips())):
                raise
            return Outcome(error=error)


@dataclass(frozen=True, slots=True)
class Both:
    """The outcomes of the two sides."""

    cupy: Outcome
    numpy: Outcome

    @classmethod
    def of(cls, names: Names, test: Test, args: tuple[Any, ...], kw: Mapping[str, Any]) -> Both:
        """Call ``test`` on both sides, CuPy's first."""
        return cls(names.call("cupy", test, args, kw), names.call("numpy", test, args, kw))

    @property
    def raised(self) -> bool:
        """Whether one of them raised something."""
        return self.cupy.error is not None or self.numpy.error is not None

    def check_errors(self, accept: Any) -> None:
        """Raise unless both sides raised errors of one kind that ``accept`` takes: True, or classes.

        Raises
        ------
        AssertionError
            With the tracebacks of both.
        unittest.SkipTest
            Or pytest's, if both raised it with the same reason.
        """
        cupy, numpy = self.cupy.error, self.numpy.error
        if isinstance(cupy, skips()) and isinstance(numpy, skips()):
            _skip(cupy, numpy)
        accepted = Exception if accept is True else accept or ()
        if cupy is None and numpy is None:
            raise AssertionError("Both cupy and numpy are expected to raise errors, but not")
        if cupy is None:
            raise _unexpected("Only numpy raises error", numpy=numpy)
        if numpy is None:
            raise _unexpected("Only cupy raises error", cupy=cupy)
        if any(isinstance(cupy, kind) != isinstance(numpy, kind) for kind in _CLASSES):
            raise _unexpected("Different types of errors occurred", cupy=cupy, numpy=numpy)
        if not (isinstance(cupy, accepted) and isinstance(numpy, accepted)):
            raise _unexpected("Both cupy and numpy raise exceptions", cupy=cupy, numpy=numpy)


def _skip(cupy: BaseException, numpy: BaseException) -> None:
    if type(cupy) is not type(numpy):
        raise AssertionError("Both numpy and cupy were skipped but with different exceptions.")
    if cupy.args != numpy.args:
        raise AssertionError("Both numpy and cupy were skipped but with different causes.")
    raise numpy


def _unexpected(what: str, **errors: BaseException | None) -> AssertionError:
    """Return the failure, with the traceback of the first error for debuggers to stop in."""
    raised = {side: error for side, error in errors.items() if error is not None}
    texts = [f"{side}\n{''.join(traceback.format_exception(error))}" for side, error in raised.items()]
    return AssertionError("\n".join([what, "", *texts])).with_traceback(next(iter(raised.values())).__traceback__)


Check = Callable[[Any, Any], None]
