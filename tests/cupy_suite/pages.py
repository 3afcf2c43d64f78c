"""Pages with Python's prompt as tests: each prompt is one, and those of a page share their names and their process."""

from __future__ import annotations

import doctest
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: What CuPy's documentation has at hand on every page, and how its answers are compared.
_GLOBALS = "import numpy as np\nimport cupy\nimport cupyx\nimport cupy as cp\nnp.random.seed(0)\n"
_FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.DONT_ACCEPT_TRUE_FOR_1


class Pages:
    """The plugin of pytest that finds the pages."""

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a page's prompts."""
        return Page.from_parent(parent, path=file_path) if file_path.suffix == ".rst" else None


class Page(pytest.File):
    """One page. It is run through when the first of its prompts is asked for."""

    _answers: dict[int, str] | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the prompts, named by their lines."""
        for example in self._read({}).examples:
            yield Prompt.from_parent(self, name=f"line {example.lineno + 1}", line=example.lineno)

    def _read(self, names: dict[str, Any]) -> doctest.DocTest:
        return doctest.DocTestParser().get_doctest(self.path.read_text(), names, self.name, str(self.path), 0)

    def answer(self, line: int) -> str | None:
        """Return what is wrong with the answer to a prompt, "" if nothing is; None if it was not asked."""
        if self._answers is None:
            self._answers = {}
            # classes that a page defines look themselves up in their module
            module = types.ModuleType("__main__")
            exec(_GLOBALS, module.__dict__)
            runner = _Runner(self._answers)
            runner.run(self._read(module.__dict__), out=lambda text: None, clear_globs=False)
        return self._answers.get(line)


class _Runner(doctest.DocTestRunner):
    """Notes the answer to each prompt."""

    def __init__(self, answers: dict[int, str]) -> None:
        super().__init__(optionflags=_FLAGS)
        self._answers = answers

    def report_start(self, out: Callable[[str], Any], test: doctest.DocTest, example: doctest.Example) -> None:
        """Say nothing."""

    def report_success(
        self, out: Callable[[str], Any], test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        """Note a right answer."""
        self._answers[example.lineno] = ""

    def report_failure(
        self, out: Callable[[str], Any], test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        """Note a wrong answer."""
        difference = self._checker.output_difference(example, got, _FLAGS)  # type: ignore[attr-defined]
        self._answers[example.lineno] = f"{example.source}{difference}"

    def report_unexpected_exception(
        self, out: Callable[[str], Any], test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        """Note an exception. One that no program raises ends the page: its time is up."""
        kind, error, _ = exc_info
        if not issubclass(kind, Exception):
            raise error
        self._answers[example.lineno] = f"{example.source}{kind.__name__}: {error}"


class Prompt(pytest.Item):
    """One prompt with its answer."""

    def __init__(self, *, line: int, **given: Any) -> None:
        super().__init__(**given)
        self._line = line

    def runtest(self) -> None:
        """Compare the answer."""
        page: Any = self.parent
        wrong = page.answer(self._line)
        if wrong is None:
            pytest.skip("the page says that it is not for testing, or its time was up before")
        if wrong:
            raise WrongAnswer(wrong)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what was expected and what came."""
        return str(excinfo.value) if excinfo.errisinstance(WrongAnswer) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the prompt stands."""
        return self.path, self._line, self.name


class WrongAnswer(Exception):
    """An answer is not the one on the page; the message shows both."""
