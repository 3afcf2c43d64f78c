"""Every parameter that is an address or a handle is held to something, or its name is refused."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface import addresses as module
from gpu_backend.opstream.surface.addresses import addresses, read_module, read_sources
from gpu_backend.opstream.surface.handles import handle_table, parameters_of, taken
from gpu_backend.opstream.surface.not_served import refusal

described = surface.load()
table = handle_table()
_EXECUTOR = Path(module.__file__).parents[2] / "devices"

_CALLED = (surface.Class, surface.Function, surface.Method)

#: What CuPy calls parameters that are handles or addresses, or objects that have one, in functions without types.
_WORDS = frozenset(
    """array_ptr ctx desc dev_ptr devptr end_event event f func graph graphexec handle hostptr mod module plan
    pool_handles prealloc_plan ptr start_event stream texobject texobj surfobject""".split()
)
#: Such parameters that are objects of classes that CuPy, in its compiled code, looks at by itself; or nothing of CUDA.
_OBJECTS = {
    "cupy.cuda.Function": {"module"},
    "cupy.cuda.cub.cupy_cub_op": {"module"},  # of Python's enum
    "cupy.cuda.MemoryAsyncPool": {"pool_handles"},  # refused by the device: memory past the count
    "cupy.cuda.texture.CUDAarray": {"desc"},
    "cupy.cuda.texture.ChannelFormatDescriptor": {"f"},
}


def held(name: str) -> set[str]:
    return {*taken().get(name, {}), *table.held.get(name, ()), *table.harmless.get(name, ())}


def test_every_address_is_held_or_its_name_is_refused() -> None:
    assert set(addresses()) <= set(described)
    served = [name for name in addresses() if refusal(name) is None]
    assert [name for name in served if held(name) != set(addresses()[name])] == []
    assert [name for name in (*taken(), *table.held, *table.harmless) if refusal(name)] == []


def test_parameters_of_that_name_are_held_also_where_no_type_tells() -> None:
    missed = []
    for name, entry in described.items():
        if not isinstance(entry, _CALLED) or not name.startswith("cupy.cuda."):
            continue
        signature = surface.signature_of(entry)
        if signature is None or refusal(name) is not None or getattr(entry, "exception", False):
            continue
        known = {*held(name), *table.objects, *_OBJECTS.get(name, ())}
        missed += [(name, one) for one in signature.parameters if one.lower() in _WORDS and one not in known]
    assert not missed


def test_what_the_table_names_is_served_and_there() -> None:
    for kind in table.kinds.values():
        for name in (*kind.given, *kind.ended):
            assert isinstance(described[name], surface.Function), name
            assert refusal(name) is None
            assert parameters_of(name) is not None
        for name in kind.attributes:
            owner, _, _ = name.rpartition(".")
            assert isinstance(described[owner], surface.Class), name
        assert set(kind.ended) <= set(taken()), "what ends a handle takes it"
    assert {kind for kinds in taken().values() for kind in kinds.values()} == set(table.kinds)
    assert not set(taken()) - set(addresses())


def test_the_device_holds_what_the_table_leaves_to_it() -> None:
    own = (_EXECUTOR / "cuda_addresses.py").read_text(encoding="utf-8")
    for name in table.held:
        assert f'"{name}":' in own, name


def test_methods_of_what_has_a_handle_take_such_objects_alone() -> None:
    asked = parameters_of("cupy.cuda.Stream.wait_event")
    assert asked is not None
    event, stream = ("cupy.cuda.Event",), ("cupy.cuda.Stream",)
    assert asked.objects == {"event": event, 0: event, "self": stream, -1: stream}
    assert parameters_of("cupy.add") is None


def test_sources_are_read_with_their_places() -> None:
    text = """
cpdef intptr_t create(int a,  # (
                      intptr_t b=0) except? 0:
cdef hidden(intptr_t a):
def plain(a, *, b):
cdef class Plan:
    def __init__(self, shape, *, str order,
                 intptr_t plan=0):
    cpdef use(self, void* p, uintmax_t q)
    @staticmethod
    def of(intptr_t one):
def after(int[:] a, uintptr_t z):
"""
    assert dict(read_module(text)) == {
        "create": {"b": 1},
        "Plan": {"plan": None},
        "Plan.use": {"p": 0, "q": 1},
        "Plan.of": {"one": 0},
        "after": {"z": 1},
    }


def test_names_are_those_of_the_surface(tmp_path: Path) -> None:
    folder = tmp_path / "cupy_backends" / "cuda" / "api"
    folder.mkdir(parents=True)
    (folder / "runtime.pyx").write_text("cpdef eventQuery(intptr_t event):\ncpdef nobodysName(intptr_t a):\n")
    assert read_sources(tmp_path, described) == {"cupy.cuda.runtime.eventQuery": {"event": 0}}
