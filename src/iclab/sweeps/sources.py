"""The sources of a user's modules: what they import, transitively, and which files they name.

A file is identified by its content, an installed package by its version.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from iclab.sweeps.opened import imported_at, is_own, unnamed_reads
from iclab.sweeps.versions import ROOT, code_version, imported_from_package

BY_NAME = ("import_module", "__import__", "run_module")
"""Functions that load a module by its name."""
BY_TEXT = ("exec", "eval", "compile")
"""Builtins that run a string as code."""
BY_PATH = ("run_path", "spec_from_file_location", "SourceFileLoader")
READS = ("open", "read", "load", "scan", "from", "imread", "memmap", "genfromtxt", "File", "safe_open", "connect",
         "stored_results", *BY_PATH)
"""Prefixes of the names of functions that read a file."""


class Untraceable(Exception):
    """Why a result cannot be tied to the code that computed it."""


@dataclass
class Trace:
    """What user code depends on."""

    texts: dict[str, str] = field(default_factory=dict)
    """By name: the hash of a file, the version of a package, the source of a function."""
    files: set[str] = field(default_factory=set)
    """The files among them."""
    package: set[str] = field(default_factory=set)
    """The iclab modules they import."""

    def add(self, other: Trace) -> None:
        """Merge another trace into this one."""
        self.texts |= other.texts
        self.files |= other.files
        self.package |= other.package

    @property
    def words(self) -> list[str]:
        """One string per dependency, independent of the folder that holds the user's files."""
        root = os.path.commonpath([os.path.dirname(name) for name in self.files]) if self.files else ""
        dependencies = sorted(f"{os.path.relpath(name, root) if name in self.files else name} {text}"
                              for name, text in self.texts.items())
        return [*dependencies, code_version(*sorted(self.package))] if self.package else dependencies

    def check(self, since: int) -> None:
        """Refuse the trace if its modules opened files missing from it, on import or since a given `opened.now()`."""
        for opened in unnamed_reads(self.files, since):
            raise Untraceable(f"{os.path.basename(opened.by)} reads {os.path.basename(opened.path)}, which its source "
                              "does not name; write the name out where it is read, or read it in another module")


_traces: dict[str, tuple[Trace, dict[str, tuple[int, int]]]] = {}
"""Traces of modules, each with the modification time and size of its files."""
_lock = threading.Lock()  # Python's parser is not thread-safe


def trace_module(module: ModuleType) -> Trace:
    """What a module depends on: its version if installed, its sources if it is the user's."""
    if not is_own(str(module.__file__)):
        module_trace = Trace()
        follow_module(module.__name__, module_trace)
        return module_trace
    path = os.path.realpath(str(module.__file__))
    with _lock:
        known = _traces.get(path)
        if known is None or known[1] != {file: _state(file) for file in known[1]}:
            module_trace = Trace()
            _follow(path, getattr(module, "__package__", None) or "", module_trace)
            known = _traces[path] = module_trace, {file: _state(file) for file in module_trace.files}
        return known[0]


def _state(file: str) -> tuple[int, int]:
    try:
        state = os.stat(file)
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size


def _follow(path: str, package: str, module_trace: Trace) -> None:
    """Add a file and, if it is Python source, everything it imports and names."""
    if path in module_trace.files:
        return
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Untraceable(f"{os.path.basename(path)} cannot be read ({error.strerror})") from None
    module_trace.files.add(path)
    module_trace.texts[path] = hashlib.sha256(content).hexdigest()
    if not path.endswith(".py"):
        return
    if os.stat(path).st_mtime > imported_at(path) and _is_loaded(path):
        raise Untraceable(f"{os.path.basename(path)} was changed after it was imported")
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Untraceable(f"{os.path.basename(path)} cannot be parsed ({error})") from None
    module_trace.package.update(imported_from_package(tree))
    source = _Source(tree, path, package)
    source.refuse_computed_code()
    for name in source.imports():
        follow_module(name, module_trace)
    for named in source.named_files():
        _follow(named, "", module_trace)


def _is_loaded(path: str) -> bool:
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return any(os.path.realpath(file) == path for file in files
               if isinstance(file, str) and os.path.basename(file) == os.path.basename(path))


class _Source:
    """The modules and files that a module's source names."""

    def __init__(self, tree: ast.AST, path: str, package: str):
        self.nodes, self.path, self.package = list(ast.walk(tree)), path, package
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        assignments = [node for node in self.nodes if isinstance(node, ast.Assign)]
        self.assigned: dict[str, ast.AST] = {target.id: node.value for node in assignments for target in node.targets
                                             if isinstance(target, ast.Name)}

    def imports(self) -> Iterator[str]:
        """Every imported module; a name imported from a package may be a module too."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                home = self._absolute("." * node.level + (node.module or ""))
                yield home
                yield from (f"{home}.{alias.name}" for alias in node.names if alias.name != "*")
        for call in self.calls:
            if _name(call.func) in BY_NAME and call.args and isinstance(call.args[0], ast.Constant):
                yield self._absolute(str(call.args[0].value))

    def _absolute(self, name: str) -> str:
        try:
            return importlib.util.resolve_name(name, self.package)
        except ImportError:
            raise Untraceable(f"{os.path.basename(self.path)} imports {name!r}, which has no package") from None

    def named_files(self) -> list[str]:
        """The files named in reading calls, directly or through an assigned variable."""
        return sorted({file for call in self.calls if _name(call.func).startswith(READS) for file in self._files(call)})

    def refuse_computed_code(self) -> None:
        """Refuse calls that run or load code whose name is computed."""
        for call in self.calls:
            name, plain = _name(call.func), bool(call.args) and isinstance(call.args[0], ast.Constant)
            by_text = isinstance(call.func, ast.Name) and name in BY_TEXT
            if (name in BY_NAME and not plain) or (
                    (by_text or name in BY_PATH) and not plain and not self._files(call)):
                raise Untraceable(f"{os.path.basename(self.path)}, line {call.lineno}, loads code whose name it "
                                  "computes")

    def _files(self, call: ast.Call) -> set[str]:
        """The existing files named by strings in a call, relative to the source or the working directory."""
        texts = set(_texts([call, *(self.assigned[node.id] for node in ast.walk(call)
                                    if isinstance(node, ast.Name) and node.id in self.assigned)]))
        places = [os.path.join(start, text) for text in texts if 0 < len(text) < 1000 and "\0" not in text
                  for start in (os.path.dirname(self.path), os.getcwd())]
        return {os.path.realpath(place) for place in places if os.path.isfile(place)}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _texts(nodes: Iterable[ast.AST]) -> list[str]:
    return [node.value for root in nodes for node in ast.walk(root)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def follow_module(name: str, module_trace: Trace) -> None:
    """Add a module that user code imports, and its parent packages."""
    parts = name.split(".")
    if parts[0] in sys.stdlib_module_names or parts[0] == ROOT:
        return
    for end in range(1, len(parts) + 1):
        path, package = _located(".".join(parts[:end]))
        if path is not None and not is_own(path):
            module_trace.texts[f"package {parts[0]}"] = _version(parts[0])
            return
        if path is not None:
            _follow(os.path.realpath(path), package, module_trace)


def _located(name: str) -> tuple[str | None, str]:
    """A module's path (None if it has no file), and the package its relative imports start from."""
    module = sys.modules.get(name)
    try:
        spec = getattr(module, "__spec__", None) or importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        spec = None
    path = getattr(module, "__file__", None) or (spec.origin if spec is not None and spec.has_location else None)
    inside = spec is not None and spec.submodule_search_locations is not None
    return path, name if inside else name.rpartition(".")[0]


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


@cache
def _version(top: str) -> str:
    """The version of the installed package that provides a module."""
    return " ".join(f"{name} {metadata.version(name)}" for name in sorted(set(_distributions().get(top, ()))))
