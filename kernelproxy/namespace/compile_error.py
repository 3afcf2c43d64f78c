"""What a kernel that does not compile raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO


class CompileException(Exception):
    """The compiler refused a kernel; the message is the compiler's own."""

    __module__ = "cupy.cuda.compiler"

    def __init__(
        self, msg: str = "", source: str = "", name: str = "", options: Sequence[str] = (), backend: str = "nvrtc"
    ) -> None:
        super().__init__(msg)
        self.source, self.name, self.options, self.backend = source, name, options, backend

    def get_message(self) -> str:
        """Return what the compiler said."""
        return str(self)

    def dump(self, f: TextIO) -> None:
        """Write what the compiler said to a file."""
        f.write(f"{self}\n")
        f.flush()
