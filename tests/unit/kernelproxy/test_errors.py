"""Remote errors become the exceptions that CuPy itself would have raised."""

from __future__ import annotations

import sys
import types
import warnings

import numpy as np
import pytest

from gpu_backend.wire.errors import ErrorRecord, OpCancelled, OpFailed, SessionLost, WarningRecord
from kernelproxy.errors import deferred_exception, remote_exception, session_lost, warn_again, warn_of_experimental
from kernelproxy.namespace.names import make
from kernelproxy.source_lines import user_site


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        ("builtins.ValueError", ValueError),
        ("builtins.ZeroDivisionError", ZeroDivisionError),
        ("numpy.linalg.LinAlgError", np.linalg.LinAlgError),
        ("numpy.exceptions.AxisError", np.exceptions.AxisError),
        ("gpu_backend.wire.errors.OpCancelled", OpCancelled),
        ("gpu_backend.wire.errors.SessionLost", SessionLost),
    ],
)
def test_the_class_and_its_words_are_the_same(kind: str, cls: type[Exception]) -> None:
    error = remote_exception(ErrorRecord(kind, "so it said", "Traceback ...", args=("so it said",)))
    assert type(error) is cls
    assert str(error) == "so it said"
    assert error.remote_traceback == "Traceback ..."  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "kind",
    [
        "somewhere.Strange",
        "builtins.print",
        "builtins.KeyboardInterrupt",
        "builtins.SystemExit",
        "subprocess.CalledProcessError",
        "numpy.ndarray",
        "numpy.nothing.here",
        "numpy.f2py.__main__.x",
        "cupy.testing.x",
        "cupyx.scipy.fft.fft",
        "gpu_backend.wire.errors.annotations",
        "",
    ],
)
def test_what_is_no_exception_known_here_is_named_in_the_message(kind: str) -> None:
    """And an executor can make the notebook neither stop nor import what it likes."""
    error = remote_exception(ErrorRecord(kind, "it broke"))
    assert type(error) is OpFailed
    assert str(error) == f"{kind}: it broke"


def test_an_exception_of_cupys_is_the_one_that_the_notebook_has() -> None:
    error = remote_exception(ErrorRecord("cupy.cuda.memory.OutOfMemoryError", "too much"))
    assert type(error) is make("cupy.cuda.memory.OutOfMemoryError")
    assert type(remote_exception(ErrorRecord("cupy.linalg.LinAlgError", "singular"))) is np.linalg.LinAlgError


def test_a_class_that_wants_other_arguments_still_says_it() -> None:
    error = remote_exception(ErrorRecord("builtins.UnicodeDecodeError", "bad byte", args=("utf-8", 1, 2)))
    assert str(error).endswith("bad byte")


@pytest.mark.parametrize("original", [KeyError("x"), KeyError(("x", 1)), ValueError("a", 2), IndexError()])
def test_arguments_are_kept_where_the_words_stay_the_same(original: Exception) -> None:
    record = ErrorRecord(f"builtins.{type(original).__name__}", str(original), args=original.args)
    assert (str(remote_exception(record)), remote_exception(record).args) == (str(original), original.args)


def test_a_deferred_error_names_its_line() -> None:
    error = deferred_exception(ErrorRecord("builtins.ValueError", "late"), user_site(1))
    assert error.__notes__[0].startswith("Raised by an operation recorded earlier, at ")
    assert "test_errors.py, line" in error.__notes__[0]
    assert not hasattr(deferred_exception(ErrorRecord("builtins.ValueError", "late"), None), "__notes__")


def test_the_loss_of_arrays_says_what_to_do() -> None:
    assert str(session_lost("", 3)) == (
        "The process that held this notebook's arrays ended unexpectedly. The arrays made so far are lost; a fresh "
        "executor (epoch 3) has taken over. Run the cells again that make your arrays."
    )
    assert str(session_lost("The node went down.", 3)).startswith("The node went down. The arrays made so far")


def test_a_remote_warning_is_the_users_to_treat() -> None:
    record = WarningRecord("numpy.exceptions.ComplexWarning", "Casting discards the imaginary part")
    with pytest.warns(np.exceptions.ComplexWarning, match="discards") as seen:
        warn_again((record,))
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(np.exceptions.ComplexWarning):
            warn_again((record,))


def test_a_warning_of_an_unknown_category_is_still_told() -> None:
    with pytest.warns(RuntimeWarning, match="slow"):
        warn_again((WarningRecord("cupy._util.PerformanceWarning", "slow"),))


def test_what_is_experimental_is_warned_of_by_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(FutureWarning, match="^cupyx.jit.rawkernel is experimental.") as seen:
        warn_of_experimental("cupyx.jit.rawkernel")
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning):
            warn_of_experimental("explicit of cupyx.scipy.sparse.csr_matrix.max")
        warnings.filterwarnings("ignore", category=FutureWarning, module="cupy")
        warn_of_experimental("explicit of cupyx.scipy.sparse.csr_matrix.max")
        warnings.simplefilter("error")
        quiet = types.SimpleNamespace(disable_experimental_feature_warning=True)
        monkeypatch.setitem(sys.modules, "cupy", quiet)
        warn_of_experimental("cupyx.jit.rawkernel")


def test_a_terminal_obeys_nothing_of_what_an_executor_says() -> None:
    text = "no\x1b]0;mine\x07\nsecond\tgröße"
    error = remote_exception(ErrorRecord("builtins.ValueError", text, text, args=(text,), note=text))
    assert type(error) is ValueError
    said = [str(error), error.remote_traceback, *error.__notes__]  # type: ignore[attr-defined]
    assert said == ["no ]0;mine \nsecond\tgröße"] * 3
    with pytest.warns(RuntimeWarning) as caught:
        warn_again((WarningRecord("builtins.RuntimeWarning", text),))
    assert str(caught[0].message) == "no ]0;mine \nsecond\tgröße"
