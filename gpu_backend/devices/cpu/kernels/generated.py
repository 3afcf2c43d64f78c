"""Compiles the text that is generated for elementwise and reduction kernels."""

from __future__ import annotations

from gpu_backend.devices.compiling.options import RefusedOptionError, UnknownOptionError
from gpu_backend.devices.cpu.kernels.errors import CompileException
from gpu_backend.devices.cpu.kernels.launch import KernelEntry
from gpu_backend.devices.cpu.kernels.module import TranslationUnit, build
from gpu_backend.devices.cpu.kernels.options import translate_options
from gpu_backend.devices.cpu.kernels.source import translate

#: The name of the kernel in every generated text.
KERNEL = "_gpu_kernel"


def build_generated(code: str, name: str, options: tuple[str, ...]) -> KernelEntry:
    """Return the loaded kernel of ``code``.

    Parameters
    ----------
    code
        A text that defines ``_gpu_kernel``.
    name
        The kernel's name for people; it is in the compiler's messages.
    options
        Compile options of NVRTC.

    Raises
    ------
    CompileException
        If the compiler refuses the code or an option.
    """
    file_name = f"{name}.cu"
    try:
        flags = translate_options(options)
    except (UnknownOptionError, RefusedOptionError) as error:
        raise CompileException(str(error), code, file_name, options) from None
    unit = TranslationUnit("elementwise.h", translate(code), ((KERNEL, KERNEL),), flags, file_name)
    return build(unit, None, code).kernels[KERNEL]
