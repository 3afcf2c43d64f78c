"""Write the surface description from an installed CuPy: ``python -m gpu_backend.opstream.surface.describe``.

Run it where CuPy is installed with its CUDA libraries (``pip install cupy-cuda13x[ctk]``); a GPU is not needed. The
file it writes has one entry a line, sorted, so that the step to a new CuPy is a diff to read.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgspec

from gpu_backend.opstream.surface import description_path, self_calls
from gpu_backend.opstream.surface.entries import (
    Alias,
    Class,
    Constant,
    Entry,
    Function,
    GeneralizedUfunc,
    Instance,
    Method,
    Module,
    NumpyName,
    Property,
    Returns,
)
from gpu_backend.opstream.surface.not_served import refusal
from gpu_backend.opstream.surface.signatures import signature_text
from gpu_backend.opstream.surface.ufunc_tables import describe_ufunc, is_ufunc

_ROOTS = ("cupy", "cupyx")
_OURS = ("cupy", "cupyx", "cupy_backends")
#: Modules of the bindings that are public as attributes of ``cupy.cuda`` only, some after the first use.
_BOUND = {
    "cupy.cuda.curand": "cupy_backends.cuda.libs.curand",
    "cupy.cuda.cusolver": "cupy_backends.cuda.libs.cusolver",
    "cupy.cuda.cusparse": "cupy_backends.cuda.libs.cusparse",
    "cupy.cuda.driver": "cupy_backends.cuda.api.driver",
    "cupy.cuda.nvrtc": "cupy_backends.cuda.libs.nvrtc",
    "cupy.cuda.cublas": "cupy_backends.cuda.libs.cublas",
}
#: Libraries that CuPy's modules load at import; pip puts them where only cuda-pathfinder looks.
_LIBRARIES = ("cublas", "cufft", "curand", "cusolver", "cusparse", "nvrtc")
#: Dunders that say nothing about what an object can do.
_UNTOLD = frozenset({
    "__class__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getattribute__", "__init__", "__init_subclass__",
    "__module__", "__new__", "__pyx_vtable__", "__reduce_cython__", "__setattr__", "__setstate_cython__", "__slots__",
    "__subclasshook__", "__weakref__", "__annotations__", "__firstlineno__", "__static_attributes__",
    "__abstractmethods__", "__test__",
})  # fmt: skip


def main() -> None:
    """Describe the installed CuPy and write the file into the package."""
    warnings.simplefilter("ignore")  # deprecated modules warn at import
    _load_libraries()
    modules = dict(public_modules())
    names = describe(modules)
    path = description_path(sys.modules["cupy"].__version__)
    path.write_text(_written(names))
    self_calls.PATH.write_text(_written_calls(names))
    print(f"{len(names)} names in {len(modules)} modules: {path}")  # noqa: T201 (a tool's output)


def public_modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield every public module of CuPy that can be imported here, by name."""
    for root in _ROOTS:
        package = importlib.import_module(root)
        yield root, package
        for found in pkgutil.walk_packages(package.__path__, f"{root}."):
            if any(part.startswith("_") for part in found.name.split(".")):
                continue
            try:
                yield found.name, importlib.import_module(found.name)
            except ImportError as error:
                print(f"left out {found.name}: {error}", file=sys.stderr)  # noqa: T201
    _ = sys.modules["cupy.random"].Generator  # it joins its module when it is first asked for
    for name, binding in _BOUND.items():
        yield name, importlib.import_module(binding)


#: What is there to annotate with, of which it cannot be seen whose it is.
_TYPES = {f"cupy.typing.{name}": NumpyName(f"numpy.typing.{name}") for name in ("ArrayLike", "DTypeLike")}


def describe(modules: dict[str, ModuleType]) -> dict[str, Entry]:
    """Return the entry of every public name in ``modules``."""
    returns = _Returns(tomllib.loads((Path(__file__).parent / "returns.toml").read_text()))
    found = {
        f"{module_name}.{name}": thing
        for module_name, module in modules.items()
        for name, thing in vars(module).items()
        if not name.startswith("_") and _is_public(module_name, module, thing)
    }
    found = {name: thing for name, thing in found.items() if name not in modules}
    canonical = _canonical_names(found)
    entries: dict[str, Entry] = {name: Module() for name in modules}
    for qualname, thing in found.items():
        first = canonical.get(id(thing), qualname)
        entry = Alias(target=first) if first != qualname else _entry(qualname, thing, canonical, returns)
        entries[qualname] = entry
        if isinstance(entry, Class):
            entries |= _members(qualname, thing, returns)
    return entries | (_TYPES if "cupy.typing" in modules else {})


def _load_libraries() -> None:
    from cuda import pathfinder  # type: ignore[import-not-found, unused-ignore]  # comes with CuPy

    for library in _LIBRARIES:
        pathfinder.load_nvidia_dynamic_lib(library)


def _is_public(module_name: str, module: ModuleType, thing: object) -> bool:
    if isinstance(thing, ModuleType):
        return False  # submodules are found on disk; all else here was imported for the module's own use
    if isinstance(thing, (type, FunctionType, BuiltinFunctionType)) or callable(thing):
        home = (getattr(thing, "__module__", None) or type(thing).__module__).partition(".")[0]
        if home == "scipy":  # its warnings are CuPy's
            return isinstance(thing, type) and issubclass(thing, BaseException) and hasattr(module, "__path__")
        return home in _OURS or (home in ("numpy", "builtins") and hasattr(module, "__path__"))
    home = type(thing).__module__.partition(".")[0]
    return home in (*_OURS, "numpy", "builtins")


def _canonical_names(found: dict[str, Any]) -> dict[int, str]:
    """Map each function, class and ufunc to the one name it is described under."""
    by_identity: dict[int, list[str]] = {}
    for qualname, thing in found.items():
        if callable(thing) and _home(thing) in _OURS:
            by_identity.setdefault(id(thing), []).append(qualname)
    return {identity: min(names, key=lambda name: _rank(name, found[name])) for identity, names in by_identity.items()}


def _rank(qualname: str, thing: Any) -> tuple[bool, int, bool, str]:
    """Order the names of one object: its own name first, then the shortest, then that of its home module."""
    own = str(getattr(thing, "__name__", ""))
    module, _, last = qualname.rpartition(".")
    home = str(getattr(thing, "__module__", "")).rpartition(".")[2]
    renamed = last != own and not own.endswith(f"_{last}")
    return (renamed, qualname.count("."), module.rpartition(".")[2] != home, qualname)


def _home(thing: object) -> str:
    return (getattr(thing, "__module__", None) or type(thing).__module__).partition(".")[0]


def _entry(qualname: str, thing: Any, canonical: dict[int, str], returns: _Returns) -> Entry:
    if isinstance(thing, (type, FunctionType, BuiltinFunctionType)) and _home(thing) not in _OURS:
        return NumpyName(f"{thing.__module__}.{thing.__qualname__}")
    if isinstance(thing, type):
        return _class(qualname, thing, canonical, returns)
    if is_ufunc(thing):
        return describe_ufunc(thing)
    if type(thing).__name__ == "_GUFunc":
        return GeneralizedUfunc(thing._signature)
    if isinstance(thing, (FunctionType, BuiltinFunctionType)) or _is_cython_function(thing):
        return Function(signature_text(thing), *returns.of(qualname), *_home_and_name(qualname, thing))
    return _constant(thing) or Instance(f"{type(thing).__module__}.{type(thing).__qualname__}")


def _is_cython_function(thing: object) -> bool:
    return type(thing).__name__.startswith("cython_function")


def _class(qualname: str, thing: type, canonical: dict[int, str], returns: _Returns) -> Class:
    def named(base: type) -> str:
        return canonical.get(id(base), f"{base.__module__}.{base.__qualname__}")

    signature = signature_text(thing)
    if not signature or signature == "(*args, **kwargs)":
        signature = signature_text(thing.__init__, drop_self=True) or signature  # type: ignore[misc]
    home, called = _home_and_name(qualname, thing)
    owners = [owner for owner in thing.__mro__ if _home(owner) in _OURS]
    return Class(
        bases=tuple(map(named, thing.__bases__)),
        mro=tuple(map(named, thing.__mro__[1:-1])),
        signature=signature,
        exception=issubclass(thing, BaseException),
        local=returns.of(qualname)[1],
        home=home,
        called=called,
        held=tuple(sorted(set().union(*map(held_attributes, owners)) - _computed(thing))),
        extensible=bool(thing.__dictoffset__),
    )


def _home_and_name(qualname: str, thing: Any) -> tuple[str, str]:
    """Return the module and the name that ``thing`` says it has, each "" if it is the one that ``qualname`` says."""
    module, _, name = qualname.rpartition(".")
    home, called = getattr(thing, "__module__", None) or module, getattr(thing, "__name__", name)
    return "" if home == module else home, "" if called == name else called


def _computed(thing: type) -> set[str]:
    """Return the names of what ``thing`` computes: a method that assigns to one of them calls its setter."""
    named = {name: inspect.getattr_static(thing, name) for name in dir(thing)}
    return {name for name, member in named.items() if hasattr(type(member), "__get__")}


def _members(qualname: str, thing: type, returns: _Returns) -> dict[str, Entry]:
    members: dict[str, Entry] = {}
    for owner in reversed(thing.__mro__):
        if _home(owner) not in _OURS:
            continue
        for name, member in vars(owner).items():
            dunder = name.startswith("__") and name.endswith("__")
            if name in _UNTOLD or (name.startswith("_") and not dunder):
                continue
            members[f"{qualname}.{name}"] = _member(f"{qualname}.{name}", member, returns)
        for name in held_attributes(owner):
            members.setdefault(f"{qualname}.{name}", Property())
    return members


def held_attributes(owner: type) -> set[str]:
    """Return the public attributes that methods of ``owner`` give to ``self``: its instances have them, and it has not.

    They are read off its source; of a compiled class there is none.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError, SyntaxError):
        return set()
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {
        node.attr
        for node in stored
        if isinstance(node.value, ast.Name) and node.value.id == "self" and not node.attr.startswith("_")
    }


def _member(qualname: str, member: Any, returns: _Returns) -> Entry:
    if isinstance(member, (classmethod, staticmethod)):
        binding = "class" if isinstance(member, classmethod) else "static"
        text = signature_text(member.__func__, drop_self=binding == "class")
        return Method(text, returns.of(qualname)[0], binding, returns.of(qualname)[1])
    if callable(member) and not isinstance(member, type):
        kind, local = returns.of(qualname)
        summary = _summary(member) if qualname.startswith("cupy.ndarray.") and not qualname.endswith("__") else ""
        return Method(signature_text(member, drop_self=True), kind, local=local, summary=summary)
    return _constant(member) or Property()


def _summary(member: Any) -> str:
    """Return the first paragraph of what is said of ``member``, on one line; the signature is none."""
    paragraphs = (inspect.getdoc(member) or "").split("\n\n")
    return next((" ".join(one.split()) for one in paragraphs if "(self" not in one.partition("\n")[0]), "")


def _constant(thing: Any) -> Constant | None:
    """Return the entry of a value that can be written as a literal, None for all else."""
    if isinstance(thing, float):
        return Constant(repr(float(thing)))
    if thing is not None and not isinstance(thing, (int, complex, str, tuple, list, dict)):
        return None
    text = repr(int(thing)) if isinstance(thing, IntEnum) else repr(thing)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return Constant(text)


class _Returns:
    """Looks up the hand-made classification in ``returns.toml``."""

    def __init__(self, tables: dict[str, dict[str, Any]]) -> None:
        self._tables = tables

    def of(self, qualname: str) -> tuple[Returns, bool]:
        """Return what ``qualname`` gives back and whether it is the caller's own business."""
        owner, _, name = qualname.rpartition(".")
        table = self._tables.get(owner)
        if table is None:
            return Returns.UNKNOWN, self.of(owner)[1] if "." in owner else False
        local = name in table.get("local", ()) or "*" in table.get("local", ())
        for kind in Returns:
            if name in table.get(kind, ()):
                return kind, local
        return Returns(table["default"]), local


def _written(names: dict[str, Entry]) -> str:
    version = sys.modules["cupy"].__version__
    lines = (f"{msgspec.json.encode(name).decode()}: {_line(entry)}" for name, entry in sorted(names.items()))
    return f'{{"version": "{version}", "names": {{\n' + ",\n".join(lines) + "\n}}\n"


def _written_calls(names: dict[str, Entry]) -> str:
    """Return what stands in the file of `self_calls`: of the classes whose objects stay with an executor."""
    classes = [
        name for name, entry in names.items() if isinstance(entry, Class) and not (entry.exception or entry.local)
    ]
    called = {name: self_calls.self_calls(_found(name)) for name in sorted(classes) if refusal(name) is None}
    lines = (f'"{name}": {msgspec.json.encode(calls).decode()}' for name, calls in called.items() if calls)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _found(qualname: str) -> Any:
    module, _, name = qualname.rpartition(".")
    return getattr(sys.modules[module] if module in sys.modules else importlib.import_module(_BOUND[module]), name)


def _line(entry: Entry) -> str:
    return msgspec.json.format(msgspec.json.encode(entry), indent=-1).decode()


if __name__ == "__main__":
    main()
