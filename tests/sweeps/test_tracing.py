"""A result is found again only while everything behind it is unchanged: modules, at any depth, and files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

ENTRY = """
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Mean
{imports}

def run(lab):
    value = {error}
    return Findings(shown="", measured=[value, value])

def checks(values):
    return [Check("error", Mean(values), "<", 0.5)]

ENTRY = Entry("mine.claim", "A claim", "here", run, says="It does not err.",
              parts=(Part("ours", "the error", "It is small.", checks),))
"""
HELPER = "def error():\n    return {value}\n"
# For each way of depending on something: what the entry imports, how it gets the error, the files beside it, and which
# of them holds the value that changes.
WAYS = {
    "a module beside it": ("import rope", "rope.error()", {"rope.py": HELPER}),
    "a name from a module": ("from rope import error as err", "err()", {"rope.py": HELPER}),
    "a module behind a module": ("from outer import error", "error()",
                                 {"outer.py": "from rope import error\n", "rope.py": HELPER}),
    "a package": ("import bag.rope", "bag.rope.error()", {"bag/__init__.py": "", "bag/rope.py": HELPER}),
    "a relative import": ("import bag", "bag.error()", {"bag/__init__.py": "from .rope import error\n",
                                                        "bag/rope.py": HELPER}),
    "from . import": ("from bag import outer", "outer.rope.error()",
                      {"bag/__init__.py": "", "bag/outer.py": "from . import rope\n", "bag/rope.py": HELPER}),
    "a late import": ("", "__import__('rope').error()", {"rope.py": HELPER}),
    "a late import in a function": ("def late():\n    from rope import error\n    return error()", "late()",
                                    {"rope.py": HELPER}),
    "a module by its name": ("import importlib", "importlib.import_module('rope').error()", {"rope.py": HELPER}),
    "a module by its path": ("import runpy", "runpy.run_path(__file__.replace('entry.py', 'rope.py'))['error']()",
                             {"rope.py": HELPER}),
    "a package without __init__": ("import bag.rope as r", "r.error()", {"bag/rope.py": HELPER}),
    "a data file": ("import json, pathlib\nHERE = pathlib.Path(__file__).parent",
                    "json.loads((HERE / 'value.json').read_text())", {"value.json": "{value}"}),
    "a data file named in a constant": ("import pathlib\nDATA = pathlib.Path(__file__).parent / 'value.txt'",
                                        "float(open(DATA).read())", {"value.txt": "{value}"}),
    "a data file of a module": ("import rope", "rope.error()", {
        "rope.py": "import numpy as np, os\nVALUE = float(np.loadtxt(os.path.join(os.path.dirname(__file__), 'v.csv')))"
                   "\ndef error():\n    return VALUE\n", "v.csv": "{value}"}),
    "a computed module": ("import importlib", "importlib.import_module('ro' + 'pe').error()", {"rope.py": HELPER}),
    "a computed data file": ("import pathlib", "float((pathlib.Path(__file__).parent / f'{1}.txt').read_text())",
                             {"1.txt": "{value}"}),
    "a computed text of code": ("", "eval(str({value}))", {}),
    "a computed file by a reader of the package": (
        "import pathlib\nfrom iclab.core.files import read_file",
        "float(read_file(pathlib.Path(__file__).parent / f'{1}.txt', 'file'))", {"1.txt": "{value}"}),
    "a computed file opened to be added to": (
        "import pathlib\ndef late():\n    with open(pathlib.Path(__file__).parent / f'{1}.txt', 'a+') as file:\n"
        "        file.seek(0)\n        return float(file.read())", "late()", {"1.txt": "{value}"}),
    "a file named in a call of another package": (
        "import pathlib\ndef safe_open(path):\n    return float(pathlib.Path(path).read_bytes())",
        "safe_open(pathlib.Path(__file__).parent / 'value.txt')", {"value.txt": "{value}"}),
}
NOT_STORED = {"a computed module", "a computed data file", "a computed text of code",
              "a computed file by a reader of the package", "a computed file opened to be added to"}
PROGRAM = """
import logging, sys, pathlib
import jax
from iclab.lab.laboratory import Lab
from iclab.papers.catalogue import own_entry
from iclab.lab.outcomes import finish
from iclab.sweeps.store import Store
for folder in sys.argv[1:]:
    finished = finish(own_entry(folder + "/entry.py"), Lab(Store(folder + "/store")))
    print(folder, finished.outcome.claim.parts[0].verdict, finished.kept)
    for name in ("rope", "outer", "bag", "bag.rope", "bag.outer"):
        sys.modules.pop(name, None)
    sys.path.remove(folder)
    sys.path_importer_cache.clear()
"""


def write(folder, way, value):
    imports, error, files = WAYS[way]
    folder.mkdir(exist_ok=True)
    texts = {"entry.py": ENTRY.format(imports=imports, error=error.replace("{value}", value)), **files}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("{value}", value))
        os.utime(path, (1e9 + float(value), 1e9 + float(value)))  # Python recognises changed sources by their time


def judged(folders):
    """The verdict of every entry and whether it was found in the store, from a separate process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, folders)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.rsplit(" ", 2) for line in done.stdout.splitlines()]
    return {folder: (verdict, stored == "True") for folder, verdict, stored in lines}, done.stderr


def test_no_verdict_is_stale(tmp_path, record_property):
    folders = {way: tmp_path / str(number) for number, way in enumerate(WAYS)}
    for way, folder in folders.items():
        write(folder, way, "0.0")
    first, _ = judged(folders.values())
    again, _ = judged(folders.values())
    for way, folder in folders.items():
        write(folder, way, "1.0")
    changed, stderr = judged(folders.values())
    for way, folder in folders.items():
        assert first[str(folder)] == ("holds", False), way
        assert again[str(folder)] == ("holds", way not in NOT_STORED), way
        assert changed[str(folder)] == ("fails", False), way
        assert (folder / "store" / "measurements").exists() == (way not in NOT_STORED), way
    assert "not stored and will be computed again: entry.py, line 8, loads code whose name it computes" in stderr
    assert "not stored and will be computed again: entry.py reads 1.txt, which its source does not name" in stderr
    record_property("cases", len(WAYS))


MODEL = """
from iclab import GatedAttention
from iclab.core.spec import spec
import scale

@spec
class Own(GatedAttention):
    def apply(self, params, columns):
        output, seen = super().apply(params, columns)
        return scale.factor() * output, seen

def share(trained, test, seed):
    return scale.factor()
"""
SWEEP = """
import sys
from iclab import Sweep, Run, Training, Classification
import own
prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6)
sweep = Sweep(base=Run(model=own.Own(), prompts=prompts, training=Training(steps=5, batch_size=16)), prompts=500,
              measure=("error", own.share))
states = []
results = sweep.run(store="store", watch=states.append)
print(len(states), results.frame["error"][0], results.frame["share"][0])
"""


@pytest.mark.slow
def test_a_sweep_notices_the_helper_of_a_users_model(tmp_path):
    (tmp_path / "own.py").write_text(MODEL)
    (tmp_path / "program.py").write_text(SWEEP)
    lines = []
    for number, factor in enumerate(("1.0", "1.0", "-1.0")):
        (tmp_path / "scale.py").write_text(f"def factor():\n    return {factor}\n")
        os.utime(tmp_path / "scale.py", (1e9 + float(factor), 1e9 + float(factor)))
        done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.split())
        assert "not stored" not in done.stderr, number
    assert [line[0] == "0" for line in lines] == [False, True, False]  # nothing is computed if everything is found
    assert lines[0][1:] == lines[1][1:]
    assert lines[2][2] == "-1.0"


def test_a_module_changed_after_its_import_is_not_stored(tmp_path):
    program = textwrap.dedent("""
        import os, time
        from iclab.sweeps.store import Store
        import rope
        assert Store("store").recall("m", 1, rope.value) == 1
        with open("rope.py", "a") as file:
            file.write("VALUE = 2\\n")
        os.utime("rope.py", (time.time() + 5, time.time() + 5))
        print(Store("other").recall("m", 1, rope.value), os.path.exists("other/measurements"))
        """)
    (tmp_path / "rope.py").write_text("VALUE = 1\ndef value():\n    return VALUE\n")
    os.utime(tmp_path / "rope.py", (1e9, 1e9))
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
    assert "rope.py was changed after it was imported" in done.stderr


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_a_function_without_a_file_counts_with_the_values_it_uses(value, tmp_path):
    """As in a notebook: the source is known, the module has no file."""
    import linecache

    from iclab.sweeps.tracing import trace

    def defined(value):
        source = f"def rule(clean, coin, x):\n    return clean * K\nK = {value}\n"
        linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
        space = {"__name__": "a notebook"}
        exec(compile(source, "<cell>", "exec"), space)
        return space["rule"]

    assert json.dumps(value) in " ".join(trace(defined(value)).words)
    assert trace(defined(value)).words != trace(defined(value + 1)).words
