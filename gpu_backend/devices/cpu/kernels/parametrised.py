"""What kernels of two lists of parameters have in common, whether they go through elements or reduce them."""

from __future__ import annotations

from typing import Any

from gpu_backend.devices.cpu.kernels.cached_codes import CachedCodes
from gpu_backend.devices.cpu.kernels.parameters import check_kernel_name, parse_parameters
from gpu_backend.devices.cpu.kernels.plans import Plans


class ParametrisedKernel(CachedCodes):
    """A kernel with inputs and outputs, whose C++ text and plan are made at the first call with each kind of arguments.

    Parameters
    ----------
    in_params, out_params
        Comma-separated parameters; see :mod:`.parameters`.
    name
        A name for people.
    """

    def __init__(self, in_params: str, out_params: str, name: str) -> None:
        check_kernel_name(name)
        self.in_params = parse_parameters(in_params, True)
        self.out_params = parse_parameters(out_params, False)
        self.nin = len(self.in_params)
        self.nout = len(self.out_params)
        self.nargs = self.nin + self.nout
        self.name = self.__name__ = name
        self._plans = Plans()
        self._cached_codes: dict[tuple[Any, ...], str] = {}

    def _codes(self) -> dict[tuple[Any, ...], str]:
        return dict(self._cached_codes)
