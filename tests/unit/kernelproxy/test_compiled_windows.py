"""Windows that the compiled core finds by itself: the very ones that Python works out, whatever the index is."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_backend.opstream.proof import indexing
from kernelproxy import compiled
from kernelproxy.calls import array_core
from kernelproxy.namespace.names import make
from tests.unit.kernelproxy.conftest import played_client

pytestmark = pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")

ints = st.integers(-7, 7) | st.sampled_from([1 << 62, 1 << 63, -(1 << 63), 1 << 70, -(1 << 70)])
bounds = st.none() | ints | st.booleans()
parts = ints | st.builds(slice, bounds, bounds, st.none() | st.sampled_from([1, -1, 2])) | st.none() | st.just(Ellipsis)
keys = parts | st.lists(parts, max_size=4).map(tuple)


@pytest.fixture(scope="module")
def arrays() -> Any:
    """Arrays that lie in many ways, of an executor that is played."""
    with played_client():
        cube = make("cupy.zeros")((4, 5, 6))
        empty = make("cupy.zeros")((3, 0, 2))
        yield [
            cube,
            cube.T,
            cube[1:3, ::-1],
            cube[2],
            cube[1, 2, 3],
            empty,
            make("cupy.broadcast_to")(cube[0], (3, 5, 6)),
        ]


def shown(array: Any, key: Any, is_used: bool) -> Any:
    """Return which window it is, or what is raised."""
    with compiled.used(is_used):
        try:
            window = array[key]
        except Exception as error:  # whatever it is, the other way must raise it too
            return type(error), str(error)
    return window._ref, window._layout, window.base is array.base or window.base is array


@given(st.data(), keys)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
def test_both_ways_find_the_same_window(arrays: list[Any], data: st.DataObject, key: Any) -> None:
    array = data.draw(st.sampled_from(arrays))
    found = [shown(array, key, is_used) for is_used in (True, False, True)]  # the second time it is known
    assert found[0] == found[1] == found[2]


axes = st.integers(-4, 4) | st.sampled_from([6, 20, 30, 120, -1, 1 << 70, True, 1.0, None])
looks = st.tuples(
    st.sampled_from(["T", "transpose", "swapaxes", "squeeze", "reshape", "ravel"]),
    st.lists(axes | st.lists(axes, max_size=3).map(tuple) | st.permutations([0, 1, 2]).map(tuple), max_size=4),
)


def looked(array: Any, method: str, args: list[Any], is_used: bool) -> Any:
    """Return which view a method shows, or what is raised."""
    with compiled.used(is_used):
        try:
            view = array.T if method == "T" else getattr(array, method)(*args)
        except Exception as error:  # whatever it is, the other way must raise it too
            return type(error), str(error)
    is_of_it = view.base is not None and (view.base is array.base or view.base is array)
    return view._ref if is_of_it else None, view._layout, type(view), is_of_it


@given(st.data(), looks)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=600)
def test_both_ways_show_the_same_view(arrays: list[Any], data: st.DataObject, look: tuple[str, list[Any]]) -> None:
    array = data.draw(st.sampled_from(arrays))
    found = [looked(array, *look, is_used) for is_used in (True, False, True)]
    assert found[0] == found[1] == found[2]


def test_what_was_shown_is_shown_again_without_python(arrays: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cube = arrays[0]
    asked: list[tuple[str, list[Any]]] = [
        ("T", []), ("transpose", [1, 0, 2]), ("transpose", [(2, 0, 1)]), ("swapaxes", [0, -1]), ("squeeze", []),
        ("reshape", [20, 6]), ("reshape", [(-1, 3)]), ("reshape", [-1]), ("ravel", []),
    ]  # fmt: skip
    expected = [looked(cube, *one, False) for one in asked]
    monkeypatch.setattr(array_core, "view_of", None)  # whoever goes by Python fails
    assert [looked(cube, *one, True) for one in asked] == expected


def test_an_axis_is_no_truth_and_no_float(arrays: list[Any]) -> None:
    cube = arrays[0]
    cube.swapaxes(0, 1)
    cube.reshape(120, 1)
    for method, args in (("swapaxes", [False, 1.0]), ("reshape", [120.0, 1]), ("reshape", [(120, 1.0)])):
        assert looked(cube, method, args, True) == looked(cube, method, args, False)


def test_wherever_a_slice_begins_it_is_found_without_python(arrays: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cube = arrays[0]
    expected = [shown(cube, key, False) for key in ((1, slice(i, i + 2)) for i in range(4))]
    monkeypatch.setattr(indexing, "_select", None)  # whoever works it out fails
    assert [shown(cube, (1, slice(i, i + 2)), True) for i in range(4)] == expected


def test_nothing_is_held_on_to_by_windows_at_ever_new_places(arrays: list[Any]) -> None:
    line = make("cupy.zeros")(1 << 20)
    windows = len(indexing.WINDOWS)

    def grown() -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for start in range(20_000):
            line[start : start + 9]
        gc.collect()
        return sys.getallocatedblocks() - before

    assert min(grown() for _ in range(3)) < 500, "other threads of the process may allocate meanwhile"
    assert len(indexing.WINDOWS) - windows <= 1, "the first is worked out, and remembered"
