"""Gets tests that no package index has: by git, one pinned commit, only the folders that are wanted."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.cupy_suite.sources import CannotFetch

_FETCH_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit of a repository."""

    #: Its folder in the cache. One that was put there by hand is taken as it is.
    name: str
    url: str
    commit: str
    #: The folders that are wanted; all of it, with its submodules, without any.
    folders: tuple[str, ...] = ()

    def get(self, cache: Path) -> Path:
        """Return the folder with the commit's files, fetched if it is not in ``cache`` yet.

        Raises
        ------
        CannotFetch
            If git cannot get them; the message says where to put them by hand, and ends with git's own words.
        """
        there = cache / self.name
        if not there.is_dir():
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                fresh = Path(folder, self.name)
                self._fetch(fresh)
                fresh.rename(there)
        return there

    def _fetch(self, into: Path) -> None:
        into.mkdir()
        # a commit by its name cannot be another than the one that was pinned
        steps = [["init", "--quiet"], ["fetch", "--quiet", "--depth", "1", self.url, self.commit]]
        if self.folders:
            steps += [["sparse-checkout", "set", *self.folders], ["checkout", "--quiet", "FETCH_HEAD"]]
        else:
            steps += [
                ["checkout", "--quiet", "FETCH_HEAD"],
                ["submodule", "--quiet", "update", "--init", "--depth", "1"],
            ]
        try:
            for step in steps:
                subprocess.run(
                    ["git", *step], cwd=into, check=True, capture_output=True, text=True, timeout=_FETCH_SECONDS
                )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, FileNotFoundError) as error:
            why = error.stderr.strip()[-600:] if isinstance(error, subprocess.CalledProcessError) else str(error)
            raise CannotFetch(
                f"git cannot get commit {self.commit[:12]} of {self.url}. Put its files, with those of its submodules, "
                f"into {into.parents[1] / self.name}. {why}"
            ) from None
