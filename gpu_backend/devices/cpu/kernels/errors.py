"""What goes wrong with user kernels, by the names that CuPy gives it.

::

    Exception
    ├── CompileException          cupy.cuda.compiler.CompileException: the compiler refused the source
    └── RuntimeError
        ├── CUDADriverError       cupy.cuda.driver.CUDADriverError: a launch or a look-up failed
        └── NoCompilerError       this machine has no C++ compiler, so no user kernel can run

``public_name`` is the name under which an error travels.
"""

from __future__ import annotations

from typing import TextIO


class CompileException(Exception):
    """The compiler refused a kernel's source. The message is the compiler's own text.

    Parameters
    ----------
    msg
        What the compiler printed.
    source
        The kernel's source, before any translation.
    name
        File name that the compiler's messages use.
    options
        The options that the caller gave.
    backend
        Name of the compiler, for the heading of :meth:`dump`.
    """

    public_name = "cupy.cuda.compiler.CompileException"

    def __init__(self, msg: str, source: str, name: str, options: tuple[str, ...], backend: str = "nvrtc") -> None:
        super().__init__(msg)
        self._msg = msg
        self.source = source
        self.name = name
        self.options = options
        self.backend = backend

    def __reduce__(self) -> tuple[type, tuple[str, str, str, tuple[str, ...], str]]:
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self._msg

    def get_message(self) -> str:
        """Return what the compiler printed."""
        return self._msg

    def dump(self, f: TextIO) -> None:
        """Write the message and the numbered source to ``f``."""
        lines = self.source.split("\n")
        width = len(str(len(lines)))
        f.write(f"{self.backend.upper()} compilation error: {self}\n-----\n")
        f.write(f"Name: {self.name}\nOptions: {' '.join(self.options)}\nCUDA source:\n")
        f.writelines(f"{number:0{width}d} {line.rstrip()}\n" for number, line in enumerate(lines, 1))
        f.write("-----\n")
        f.flush()


class CUDADriverError(RuntimeError):
    """What the CUDA driver would refuse: an unknown kernel, an impossible launch, a failed device assertion."""

    public_name = "cupy.cuda.driver.CUDADriverError"

    def __init__(self, code: str, explanation: str) -> None:
        super().__init__(f"{code}: {explanation}")
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.code, str(self)[len(self.code) + 2 :])


class NoCompilerError(RuntimeError):
    """This machine has no C++ compiler."""

    def __init__(self) -> None:
        super().__init__(
            "User kernels on the CPU device need a C++ compiler on the machine that runs them, and there is none: "
            "install g++ or clang++ (on Debian and Ubuntu 'apt install g++'), or 'pip install ziglang'."
        )


CompileException.__module__ = "cupy.cuda.compiler"
CUDADriverError.__module__ = "cupy_backends.cuda.api.driver"
