"""The list of what no executor serves: true to the surface, and consulted for every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.executor.surface_names import SurfaceNames
from gpu_backend.opstream import surface
from gpu_backend.opstream.surface.not_served import NotServed, groups, names_of, refusal

described = surface.load()
_PAGE = Path(__file__).parents[4] / "docs" / "reference" / "not-served.md"


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.title)
def test_every_name_of_the_list_is_one_of_cupys(group: NotServed) -> None:
    for name in (*group.names, *group.but):
        if name.endswith("*"):
            assert any(one.startswith(name[:-1]) for one in described), name
        else:
            assert described.is_public(name), name
            assert "*" not in name
    assert len(names_of(group)) >= len(group.names)


def test_no_name_stands_there_twice_and_exceptions_take_something_away() -> None:
    told = [name for group in groups() for name in group.names]
    assert len(told) == len(set(told))
    for group in groups():
        assert set(map(described.canonical, group.but)) <= set(names_of(group))
        assert [name for name in group.but if refusal(name)] == []


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.title)
def test_a_refusal_is_a_sentence_and_what_to_do(group: NotServed) -> None:
    said = refusal(names_of(group)[0])
    assert said is not None
    assert re.fullmatch(r"[\w.]+ is not served: [^.]*[^ .]\. .+\.", said), said


@pytest.mark.parametrize(
    "name",
    ["cupy.add", "cupy.cuda.Stream", "cupy.cuda.alloc", "cupy.cuda.MemoryPointer.memset", "cupy.cuda.runtime.memset",
     "cupy.cuda.cufft.Plan1d", "cupy.cuda.texture.TextureObject", "cupy.cuda.Graph.launch", "cupyx.cusparse.spmv",
     "cupyx.cusparse.MatDescriptor.create", "cupy.cuda.cublas.CUBLAS_OP_N", "cupy.cuda.runtime.memcpyHostToDevice",
     "cupy.cuda.cublas.CUBLASError", "cupy.cuda.driver.get_build_version", "cupy.cuda.cub.device_reduce"],
)  # fmt: skip
def test_what_programs_need_is_served(name: str) -> None:
    assert name in described
    assert refusal(name) is None


@pytest.mark.parametrize(
    "name",
    ["cupy.cuda.stream.Stream.add_callback", "cupy.cuda.function.Module.load_file", "cupy.DataSource",
     "cupy.cuda.memory.MemoryPointer.copy_to_host", "cupyx.distributed.NCCLBackend.send",
     "cupy.cuda.nvrtc.createProgram",
     "cupy.cuda.runtime.ipcOpenMemHandle", "cupy.ndarray.tofile", "cupy.save", "cupyx.jit.cub.BlockReduce"],
)  # fmt: skip
def test_other_names_of_the_same_are_refused_alike(name: str) -> None:
    assert refusal(name) is not None


def test_an_executor_resolves_nothing_of_the_list() -> None:
    names = SurfaceNames(CpuDevice())
    for group in groups():
        for name in set(names_of(group)) - set(map(described.canonical, group.but)):
            with pytest.raises(AttributeError, match=r"not served|asked of an object"):
                names.resolve(name)


@pytest.mark.parametrize(
    "name", ["cupy.RawKernel.__setstate__", "cupy.ndarray.__reduce__", "cupy.RawKernel.__getstate__"]
)
def test_methods_of_pickles_and_classes_are_no_names(name: str) -> None:
    with pytest.raises(AttributeError, match="asked of an object"):
        SurfaceNames(CpuDevice()).resolve(name)


def test_the_page_of_the_reference_has_the_whole_list() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    for group in groups():
        names, but = (", ".join(f"`{name}`" for name in listed) for listed in (group.names, group.but))
        row = f"| {group.title} | {names}{f'; but for {but}' if but else ''} | {group.instead} |"
        assert row in page, row
