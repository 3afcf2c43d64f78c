"""Transforms that call the user's functions, where the pool has a GPU: what the notebook asks for, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproxy.calls import dispatch
from kernelproxy.calls.remote_object import remote_class
from kernelproxy.calls.stand_ins import bind
from kernelproxy.client import Client
from kernelproxy.namespace.fft_config import CufftCallbacks, config


def test_a_block_with_callbacks_is_entered_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    callbacks = bind(object.__new__(remote_class("cupy.fft._callback.set_cufft_callbacks")), Client(), 0)
    assert isinstance(callbacks, CufftCallbacks)

    def answer(verb: str, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        asked.append((verb, name, *args, kwargs))
        return callbacks if name == "set_cufft_callbacks" else None

    monkeypatch.setattr(dispatch, "ask_object", answer)
    with pytest.raises(KeyError, match="own"), config.set_cufft_callbacks(cb_load="code", cb_ver="jit"):
        raise KeyError("own")
    assert asked == [
        (".method", "set_cufft_callbacks", {"cb_load": "code", "cb_ver": "jit"}),
        (".method", "__enter__", {}),
        (".method", "__exit__", None, None, None, {}),
    ]
