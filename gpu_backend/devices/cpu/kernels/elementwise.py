"""``ElementwiseKernel``: one C++ expression for every element of broadcast arrays.

Sources:
    signature, attributes, rules and error messages are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/user_guide/kernel.html#basics-of-elementwise-kernels).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels import loops
from gpu_backend.devices.cpu.kernels.elementwise_code import Body, Operand, Spec, elementwise_code
from gpu_backend.devices.cpu.kernels.generated import build_generated
from gpu_backend.devices.cpu.kernels.parameters import (
    Types,
    check_scalar,
    decide_types,
    parse_parameters,
)
from gpu_backend.devices.cpu.kernels.parametrised import ParametrisedKernel
from gpu_backend.devices.cpu.kernels.plans import (
    Array,
    Plan,
    argument_kind,
    broadcast_shape,
    check_outputs,
    make_outputs,
    run_plan,
    stand_in,
)


class ElementwiseKernel(ParametrisedKernel):
    """An elementwise kernel with broadcasting.

    Parameters
    ----------
    in_params, out_params
        Comma-separated parameters; see :mod:`.parameters`.
    operation
        C++ statements that compute the outputs of element ``i`` from its inputs.
    name
        A name for people.
    reduce_dims
        Join axes where the arrays allow it: ``_ind`` and the arrays in the loop (``_raw_x``) have the axes that are
        left. If False, they have those of the broadcast shape.
    preamble
        C++ text before the kernel.
    no_return
        Return None.
    return_tuple
        Return a tuple even for one output.
    options
        Compile options of NVRTC.
    loop_prep, after_loop
        C++ statements before and after the loop. On a GPU every thread runs them once, here the whole call does,
        unless the code speaks of threads.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_params, out_params, name)
        self.params = self.in_params + self.out_params + parse_parameters("CIndexer _ind", False)
        self.operation = operation
        self.reduce_dims = reduce_dims
        self.preamble = preamble
        self.no_return = no_return
        self.return_tuple = return_tuple
        self.kwargs = kwargs
        if any(param.name == "i" for param in self.params):
            raise ValueError("Can not use 'i' as a parameter name")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel.

        Parameters
        ----------
        args
            Inputs, or inputs and outputs: arrays, and scalars for inputs.
        size
            Number of elements; needed if and only if all arrays are ``raw``.
        block_size
            Threads of a block, for code that speaks of threads.

        Returns
        -------
        The output, a tuple of outputs, or None; see ``no_return`` and ``return_tuple``.

        Raises
        ------
        TypeError, ValueError
            As in CuPy, if the arguments do not fit the parameters or one another.
        CompileException
            If the code does not compile for these types; at the first call with them.
        """
        size = operator.index(kwargs.pop("size", -1))
        kwargs.pop("stream", None)
        block_size = operator.index(kwargs.pop("block_size", 128))
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if block_size <= 0:
            raise ValueError("block_size must be greater than zero")
        if len(args) != self.nin and len(args) != self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} "
                f"(with outputs), but given {len(args)}."
            )
        key = (size, block_size, *[argument_kind(arg) for arg in args])
        plan = self._plans.get(key, lambda: self._plan(args, size, block_size))
        outputs = args[self.nin :] or make_outputs(plan)
        run_plan(plan, args[: self.nin], outputs)
        if self.no_return:
            return None
        return outputs[0] if self.nout == 1 and not self.return_tuple else outputs

    def _plan(self, args: Sequence[object], size: int, block_size: int) -> Plan:
        for arg in args:
            if not isinstance(arg, np.ndarray):
                check_scalar(arg)
        shape = broadcast_shape(args, self.params, size)
        given = args[self.nin :]
        types = decide_types(
            self.in_params,
            self.out_params,
            [arg.dtype if isinstance(arg, np.ndarray) else None for arg in args[: self.nin]],
            [np.asarray(arg).dtype for arg in given],
        )
        check_outputs(given, self.out_params, shape, size != -1)
        scalars = tuple(
            (n, types.inputs[n]) for n, arg in enumerate(args[: self.nin]) if not isinstance(arg, np.ndarray)
        )
        made = () if given else types.outputs
        if 0 in shape:
            return Plan(None, np.empty(0, np.int64), scalars, shape, made, 0, 0)
        outputs = given or [stand_in(shape, dtype) for dtype in types.outputs]
        spec, layout = self._spec([*args[: self.nin], *outputs], types, shape)
        code = elementwise_code(spec)
        self._cached_codes.setdefault(tuple(a.dtype for a in [*args, *made] if isinstance(a, np.ndarray)), code)
        entry = build_generated(code, self.name, tuple(self.kwargs.get("options", ())))
        count = int(np.prod(shape, dtype=np.int64))
        block = min(block_size, count) if spec.threads else 1
        grid = -(-count // block) if spec.threads else 1
        return Plan(entry, layout, scalars, shape, made, grid, block)

    def _spec(self, arrays: Sequence[Any], types: Types, shape: tuple[int, ...]) -> tuple[Spec, Array]:
        body = Body(self.operation, self.preamble, self._text("loop_prep"), self._text("after_loop"))
        walked = [
            n for n, (arg, param) in enumerate(zip(arrays, self.params, strict=False))
            if isinstance(arg, np.ndarray) and not param.raw
        ]  # fmt: skip
        spread = [np.broadcast_to(arrays[n], shape) for n in walked]
        free = not body.mentions("i|_ind|printf") and not body.needs_threads
        nest = loops.joined(shape, [array.strides for array in spread], any_order=free)
        steps = dict(zip(walked, nest.steps([array.itemsize for array in spread]), strict=True))
        threads = body.needs_threads
        ind_shape = self._kernel_shape(shape, spread, len(arrays)) if self.reduce_dims else shape
        layout = [int(np.prod(shape, dtype=np.int64)), *ind_shape]
        if not threads:
            layout += nest.numbers
        operands = []
        dtypes = (*types.inputs, *types.outputs)
        for n, (arg, param) in enumerate(zip(arrays, self.params, strict=False)):
            if not isinstance(arg, np.ndarray):
                operands.append(Operand(param, dtypes[n]))
                continue
            if n in steps and not threads:
                operands.append(Operand(param, dtypes[n], steps[n]))
                continue
            shown = np.broadcast_to(arg, shape).reshape(ind_shape) if n in steps else arg
            contiguous = shown.flags.c_contiguous
            operands.append(Operand(param, dtypes[n], steps.get(n), shown.ndim, contiguous))
            layout += [*shown.shape, *shown.strides]
        spec = Spec(body, types.placeholders, tuple(operands), len(nest.shape), len(ind_shape), threads)
        return spec, np.array(layout, np.int64)

    def _kernel_shape(self, shape: tuple[int, ...], spread: Sequence[Array], arguments: int) -> tuple[int, ...]:
        flat = [array.flags.c_contiguous for array in spread]
        return loops.kernel_shape(shape, [array.strides for array in spread], flat, alone=arguments == 1)

    def _text(self, name: str) -> str:
        unknown = self.kwargs.keys() - {"options", "loop_prep", "after_loop"}
        if unknown:
            raise TypeError(f"ElementwiseKernel got unexpected keyword arguments {sorted(unknown)}")
        return str(self.kwargs.get(name, ""))
