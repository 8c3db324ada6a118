"""Checkpoints with a correct digest and wrong contents: forged, or from another version."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from refusal import refused
from safetensors.numpy import load_file, save_file

from iclab import load_checkpoint, replace, save_checkpoint, train
from iclab.core.identity import to_json
from iclab.training.checkpoint import FORMAT, _digest


@pytest.fixture(scope="module")
def tiny_trained(tmp_path_factory):
    """The tensors and the spec of a very short training."""
    from iclab import Classification, GatedAttention, Run, Training

    prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2,
                             prompt_length=6)
    trained = train(Run(model=GatedAttention(), prompts=prompts,
                        training=Training(steps=4, batch_size=8, record_every=2, optimizer="adam")))
    path = tmp_path_factory.mktemp("trained") / "m.safetensors"
    save_checkpoint(path, trained)
    return load_file(path), to_json(trained.run)


def forge(tensors, run, metadata=None):
    """Write a checkpoint with a correct digest, whatever its contents."""
    text = run if isinstance(run, str) else json.dumps(run)
    tensors = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    header = {"format": FORMAT, "run": text, "digest": _digest(tensors, text)} | (metadata or {})
    save_file(tensors, "forged.safetensors", metadata={"iclab": json.dumps(header)})


def everywhere(message=""):
    for command in (["eval", "forged.safetensors"], ["train", "--resume", "forged.safetensors", "--out", "o"],
                    ["theory", "--checkpoint", "forged.safetensors"]):
        refused(command, message)


def test_tensors_must_match_the_spec(tmp_path, monkeypatch, record_property, tiny_trained):
    monkeypatch.chdir(tmp_path)
    tensors, run = tiny_trained
    forge(tensors, run)
    assert load_checkpoint("forged.safetensors").status == "trained"
    cases = []
    for name, tensor in tensors.items():
        whole = tensor.dtype.kind in "iu"
        cases += [{name: None}, {name: tensor[None]}, {name: np.concatenate([tensor.ravel()] * 2)},
                  {name: np.zeros((3, 0), tensor.dtype)}, {name: tensor.astype(np.float64 if whole else np.int32)},
                  {name: tensor.astype(np.int8 if whole else np.float16)}, {name: tensor.astype(bool)}]
        if name.startswith(("params", "optimizer")) and not whole:
            cases.append({name: tensor.astype(np.float64)})
    # Doubling leaves an empty tensor unchanged, and steps may be whole numbers of any width.
    cases = [change for change in cases for name, tensor in change.items() if tensor is None or (
        (tensor.shape, tensor.dtype) != (tensors[name].shape, tensors[name].dtype)
        and not (name == "steps" and tensor.dtype == np.int8))]
    cases += [{"steps": np.array(steps)} for steps in ([2, 2], [4, 2], [0, 4], [-2, 4], [2, 5], [2], [])]
    cases += [{"params/0/extra": np.zeros(3)}, {"extra": np.zeros(3)}, {"probes/x": np.zeros(3)},
              {"probes/x": np.float32(1)}, {"steps": np.array([2.0, 4.0])}, {"steps": np.array(4)}]
    for change in cases:
        forge({name: tensor for name, tensor in (tensors | change).items() if tensor is not None}, run)
        everywhere("forged.safetensors' does not hold what its spec says")
    record_property("cases", 3 * len(cases))


def test_specs_must_respect_their_types_and_limits(tmp_path, monkeypatch, record_property, tiny_trained):
    monkeypatch.chdir(tmp_path)
    tensors, run = tiny_trained
    values = [None, True, 3, -1, 2**31, 2**31 - 1, 10**30, 0.5, 1e308, float("nan"), "x", "os:abort", [], [[]], [[1]],
              {}, {"kind_of_spec": "Run"}, {"kind_of_spec": "Training"}, {"kind_of_spec": ["x"]}]
    places = [(), *((name,) for name in run), *((part, name) for part in ("model", "prompts", "training")
                                                for name in run[part]), ("model", "embedding", "size")]
    number = 0
    for place in places:
        for value in values:
            changed = json.loads(json.dumps(run))
            inner = changed
            for name in place[:-1]:
                inner = inner[name]
            if place:
                inner[place[-1]] = value
            else:
                changed = value
            forge(tensors, changed)
            try:
                load_checkpoint("forged.safetensors")
            except Exception:
                refused(["eval", "forged.safetensors"], "checkpoint 'forged.safetensors'")
                number += 1
    assert number > 800
    record_property("cases", number)


def test_metadata_and_file_format_are_checked(tmp_path, monkeypatch, record_property, tiny_trained):
    monkeypatch.chdir(tmp_path)
    tensors, run = tiny_trained
    deep = "[" * 5000 + "]" * 5000
    number = 0
    for text in (deep, "{", "", "null", '{"kind_of_spec": "Run", "init_seed": ' + deep + "}", "9" * 5000):
        forge(tensors, text)
        everywhere("has a spec this version cannot rebuild")
        number += 3
    for changed in ({"run": None}, {"run": 3}, {"run": {}}, {"digest": None}, {"digest": 3}, {"format": None},
                    {"format": ["x"]}, {"format": "x" * 5000}):
        forge(tensors, run, changed)
        everywhere("checkpoint")
        number += 3
    for header in ("", deep, "null", "3", "[]", '"x"', "{}"):
        save_file(tensors, "forged.safetensors", metadata={"iclab": header})
        everywhere("checkpoint")
        number += 3
    whole = (tmp_path / "forged.safetensors").read_bytes()
    for content in (b"", b"\0" * 7, b"\0" * 8, b"\xff" * 8, struct.pack("<Q", 2**63) + whole[8:], whole[:100],
                    struct.pack("<Q", 2**40) + whole[8:], struct.pack("<Q", len(deep)) + deep.encode(),
                    struct.pack("<Q", 2) + b"{}", struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 2) + b"\xff\xff",
                    whole + b"\0"):
        (tmp_path / "forged.safetensors").write_bytes(content)
        everywhere("checkpoint 'forged.safetensors'")
        number += 3
    record_property("cases", number)


def test_a_run_given_with_a_checkpoint_must_match_it(tmp_path, monkeypatch, tiny_trained):
    monkeypatch.chdir(tmp_path)
    tensors, run = tiny_trained
    forge(tensors, run)
    trained = load_checkpoint("forged.safetensors")
    forge(tensors, "9" * 400)
    with pytest.raises(Exception, match="trained with another spec"):
        load_checkpoint("forged.safetensors", trained.run)
    forge(tensors | {"loss": tensors["loss"][:1]}, run)
    with pytest.raises(Exception, match="loss must be 2 numbers, one per record"):
        load_checkpoint("forged.safetensors", replace(trained.run))
