"""Files with wrong contents: matrices, sweeps, constants."""

from __future__ import annotations

import io
import json
import os

import numpy as np
from refusal import refused

DEEP = 5000


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(array):
    file = io.BytesIO()
    np.savez(file, array)
    return file.getvalue()


def header(shape, kind="<f8"):
    """The beginning of a .npy file that promises an array which does not follow."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + b"\0" * 64


GOOD = np.array([[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]])
TEXTS = {
    "empty": "", "words": "matrices", "open": "[[[0.8, 0.2", "null": "null", "number": "3", "text": '"x"', "dict": "{}",
    "deep": "[" * DEEP + "]" * DEEP, "deeply open": "[" * DEEP, "deep dict": '{"a":' * DEEP + "1" + "}" * DEEP,
    "ragged": "[[[0.8, 0.2], [1.0]]]", "strings": '[[["a", "b"], ["c", "d"]]]', "nothing": "[]", "hollow": "[[[]]]",
    "flat": "[0.8, 0.2]", "NaN": "[[[NaN, 1], [1, 0]]]", "infinite": "[[[Infinity, 1], [1, 0]]]",
    "1e400": "[[[1e400, 1], [1, 0]]]", "large whole": f"[[[{10**400}, 1], [1, 0]]]", "long": f"[[[{'9' * 5000}]]]",
    "negative": "[[[1.5, -0.5], [0, 1]]]", "even": "[[[0.5, 0.5], [0, 1]]]", "nulls": "[[[null, 1], [1, 0]]]",
    "oblong": "[[[0.6, 0.3, 0.1], [1, 0, 0]]]", "one": "[[[1]]]", "mixed": "[[[1, 0], [0, 1]], 3]",
    "dicts": '[{"a": 1}]', "sum": "[[[0.7, 0.2], [0, 1]]]"}
BYTES = {
    "bytes.json": b"\xff\xfe\x00[", "zip.npy": npz(GOOD), "zip.npz": npz(GOOD), "no.npy": b"",
    "magic.npy": b"\x93NUMPY",
    "version.npy": b"\x93NUMPY\x09\x00" + b"\0" * 64, "huge.npy": header((1000, 1000, 1000, 1000)),
    "overflow.npy": header((2**62, 2**62, 2**62)), "negative.npy": header((-1, 3, 3)), "short.npy": npy(GOOD)[:-8],
    "more.npy": npy(GOOD) + b"\0" * 8, "objects.npy": npy(np.array([None]), allow_pickle=True),
    "text.npy": npy(np.array([[["a", "b"], ["c", "d"]]])), "date.npy": npy(np.zeros((1, 2, 2), "M8[s]")),
    "nan.npy": npy(GOOD * np.nan), "flat.npy": npy(np.ones(4)), "complex.npy": npy(GOOD * 1j),
    "header.npy": b"\x93NUMPY\x01\x00\x76\x00" + b"{" * 0x76,
    "long.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b"{" * 64}


def odd_files(folder):
    """A folder, a pipe, a device, a missing file, and impossible file names."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    return ["folder", "pipe", "/dev/zero", "/dev/null", "absent", "", "x" * 300, "a\0b", "\udcff", "folder/absent/x"]


def test_matrices(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.json").write_text(text)
    for name, content in BYTES.items():
        (tmp_path / name).write_bytes(content)
    files = [*(f"{name}.json" for name in TEXTS), *BYTES]
    odd = odd_files(tmp_path)
    for file in files:
        for command in (["chain"], ["theory", "--paper", "cot"]):
            refused([*command, "--matrices", file], "matrices|transitions")
    for file in odd:
        refused(["chain", "--matrices", file], "matrices")
    record_property("cases", 2 * len(files) + len(odd))


def test_matrices_of_both_kinds_are_read(tmp_path):
    from iclab.commands.chain import _read

    for order in "CF":
        (tmp_path / "m.npy").write_bytes(npy(np.array(GOOD, order=order)))
        np.testing.assert_array_equal(_read(str(tmp_path / "m.npy")), GOOD)
    (tmp_path / "m.json").write_text(json.dumps(GOOD.tolist()))
    np.testing.assert_array_equal(_read(str(tmp_path / "m.json")), GOOD)


LARGE = 10**12
SWEEPS = {
    "points": "[grid]\n" + "".join(f"prompts.{name} = {{from = 0.1, to = 0.9, count = 1000}}\n" for name in (
        "outlier_fraction", "outlier_scale", "irrelevant_scale", "decisive_fraction")),
    "seeds": f"seeds = {LARGE}", "draws": f"[random]\ncount = {LARGE}\nprompts.outlier_scale = {{low = 1, high = 2}}",
    "axis": f"[grid]\nprompts.outlier_scale = {{from = 0, to = 1, count = {LARGE}}}",
    "together": "seeds = 2000\n[random]\ncount = 2000\nprompts.outlier_scale = {low = 1, high = 2}"}
BAD_SWEEPS = {
    "deep": "[base." + ".".join("a" * 1000) + "]\nx = 1", "dotted": "[base]\n" + ".".join("a" * 1000) + " = 1",
    "arrays": "seeds = " + "[" * DEEP + "]" * DEEP, "nested": "seeds = " + "[" * 200 + "]" * 200,
    "tables": "base = " + "{a = " * 900 + "1" + "}" * 900, "digits": f"seeds = {'9' * 5000}",
    "hex": f"seeds = 0x{'f' * 5000}", "steps": f"[base]\ntraining.steps = 0x{'f' * 5000}",
    "whole": f"[grid]\nprompts.outlier_scale = [{10**400}]",
    "ends": f"[grid]\nprompts.outlier_scale = {{from = {10**400}, to = 1, count = 3}}",
    "span": "[grid]\nprompts.outlier_scale = {from = -1.7e308, to = 1.7e308, count = 3}",
    "drawn": f"[random]\ncount = 2\nprompts.outlier_scale = {{low = 1, high = {10**400}}}",
    "drawn span": "[random]\ncount = 2\nprompts.outlier_scale = {low = -1.7e308, high = 1.7e308}",
    "drawn whole": f"[random]\ncount = 2\ntraining.steps = {{low = 1, high = {2**64}}}",
    "rows": f"[base]\nprompts.outlier_mixtures = [[{10**400}, 1, 1]]", "truths": "[base]\nprompts.basis = [[true]]",
    "prompts": "test_prompts = 99999999999", "no prompts": "test_prompts = true", "kind": "[base]\nmodel.kind = 3",
    "kinds": "[base]\nmodel.kind = ['GPT2']", "optimizer": "[base]\ntraining.optimizer = 'os:abort'",
    "measure": "measure = ['builtins:exit']", "theory": "[grid]\nprompts.outlier_scale = [1, 2]\n"
    "prompts.outlier_fraction = [0.1, 0.2]\n[plot]\nx = 'prompts.outlier_scale'\ny = 'prompts.outlier_fraction'\n"
    "theory = 'os:abort'", "name": "name = '../x'", "long name": f"name = '{'x' * 300}'",
    "list": "list = 3", "lists": "list = [1]", "grid": "grid = 3",
    "inf": "[grid]\nprompts.outlier_scale = {from = 0, to = inf, count = 3}", "date": "seeds = 1979-05-27",
    "count": "[random]\ncount = -1\nprompts.outlier_scale = [1]",
    "seed": "[random]\ncount = 1\nseed = -1\ninit_seed = [1]",
    "size": "[base]\nprompts.dimension = 2147483648", "tasks": f"[base]\nprompts.tasks = 'cyclic:{'9' * 50}'"}


def test_sweeps(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    for name, text in (SWEEPS | BAD_SWEEPS).items():
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    odd = odd_files(tmp_path)
    for name in SWEEPS:
        refused(["sweep", f"{name}.toml"], "1,000,000")
    for name in (*BAD_SWEEPS, "bytes"):
        refused(["sweep", f"{name}.toml"])
    for file in odd:
        refused(["sweep", file], "sweep file")
    refused(["sweep", "together.toml", "--max-trials", "3999999"], "3,999,999")
    record_property("cases", len(SWEEPS | BAD_SWEEPS) + len(odd) + 2)


def test_more_trials_may_be_allowed(tmp_path):
    from iclab import read_sweep

    (tmp_path / "s.toml").write_text("seeds = 12")
    refused(["sweep", str(tmp_path / "s.toml"), "--max-trials", "11"], "trials must be at most 11 .*, got '12 seeds'")
    assert len(read_sweep(tmp_path / "s.toml", max_trials=12)[0].trials()) == 12


CONSTANTS = {"empty": "", "null": "null", "list": "[1]", "deep": "[" * DEEP, "dict": "{}x",
             "entry": '[{"law": "mamba.T"}]',
             "text": '[{"law": "mamba.T", "value": "x", "low": 1, "high": 1, "settings": 1, "seeds": 1, "scale": "x"}]',
             "large": f'[{{"law": "mamba.T", "value": {10**400}, "low": 1, "high": 1, "settings": 1, "seeds": 1, '
                      '"scale": "x"}]',
             "nan": '[{"law": "mamba.T", "value": NaN, "low": 1, "high": 1, "settings": 1, "seeds": 1, "scale": "x"}]',
             "names": '[{"law": [], "value": 1, "low": 1, "high": 1, "settings": 1, "seeds": 1, "scale": "x"}]'}


def test_constants(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    for name, text in CONSTANTS.items():
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    odd = odd_files(tmp_path)
    for file in (*(f"{name}.json" for name in (*CONSTANTS, "bytes")), *odd):
        refused(["theory", "--constants", file], "constants")
    record_property("cases", len(CONSTANTS) + 1 + len(odd))
