"""Checkpoints: loading and resuming give the same numbers, damage is noticed."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

from iclab import (
    CheckpointError,
    GatedAttention,
    IclabError,
    SpecError,
    Trained,
    from_labelled,
    load_checkpoint,
    push,
    replace,
    save_checkpoint,
    spec,
    train,
    train_many,
)
from iclab.core import registry
from iclab.training.sgd import begin


def with_steps(run, steps):
    return replace(run, training=replace(run.training, steps=steps))


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, (a.params, a.optimizer, a.steps, a.loss),
                 (b.params, b.optimizer, b.steps, b.loss))


def test_a_round_trip_keeps_everything(tiny_run, tmp_path):
    trained = train(tiny_run)
    save_checkpoint(tmp_path / "m.safetensors", trained)
    back = load_checkpoint(tmp_path / "m.safetensors")
    assert back.run == tiny_run
    same(trained, back)
    batch = tiny_run.prompts.sample(0, 5)
    np.testing.assert_array_equal(trained(batch), back(batch))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_resuming_gives_the_same_numbers(tiny_run, tmp_path, optimizer):
    run = replace(tiny_run, training=replace(tiny_run.training, optimizer=optimizer, learning_rate=0.01))
    save_checkpoint(tmp_path / "half.safetensors", train(with_steps(run, 20)))
    half = load_checkpoint(tmp_path / "half.safetensors")
    same(train(with_steps(run, 40), start=half), train(with_steps(run, 40)))


def test_an_ensemble_resumes_where_each_run_stopped(tiny_run):
    runs = [tiny_run.seeded(seed) for seed in range(3)]
    whole = train_many([with_steps(run, 30) for run in runs])
    starts = [train_many([with_steps(runs[0], 10)])[0], None, train_many([with_steps(runs[2], 20)])[0]]
    for a, b in zip(whole, train_many([with_steps(run, 30) for run in runs], starts=starts), strict=True):
        np.testing.assert_allclose(a.params[0].W_B, b.params[0].W_B, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(a.steps, b.steps)


def test_only_the_same_run_can_resume(tiny_run):
    with pytest.raises(SpecError, match="same run"):
        train(with_steps(tiny_run.seeded(1), 40), start=train(tiny_run))
    with pytest.raises(SpecError, match="at least the 30 steps"):
        train(with_steps(tiny_run, 10), start=train(tiny_run))


def test_damage_is_noticed(tiny_run, tmp_path):
    path = tmp_path / "m.safetensors"
    save_checkpoint(path, train(tiny_run))
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:50], b"", b"not a checkpoint", whole[:-4] + b"\x01\x02\x03\x04"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"m\.safetensors"):
            load_checkpoint(path)
    path.write_bytes(re.sub(rb'(dimension[\\"]+: )9', rb"\g<1>8", whole))
    assert path.read_bytes() != whole
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path)
    with pytest.raises(CheckpointError, match="existing file"):
        load_checkpoint(tmp_path / "absent.safetensors")


def own_rule(clean, coin, x):
    return -clean


def test_a_users_function_needs_the_run(tiny_run, tmp_path):
    run = replace(tiny_run, prompts=replace(tiny_run.prompts, label_rule=own_rule))
    save_checkpoint(tmp_path / "m.safetensors", train(run))
    with pytest.raises(CheckpointError, match="pass the run"):
        load_checkpoint(tmp_path / "m.safetensors")
    assert load_checkpoint(tmp_path / "m.safetensors", run).run == run
    with pytest.raises(CheckpointError, match="another spec"):
        load_checkpoint(tmp_path / "m.safetensors", run.seeded(5))


def test_arguments_in_the_wrong_order_are_named(tiny_run, tmp_path):
    trained = begun(tiny_run)
    with pytest.raises(SpecError, match=r"trained must be a trained run, after the path: save_checkpoint\(path, tr"):
        save_checkpoint(trained, tmp_path / "m.safetensors")
    with pytest.raises(SpecError, match=r"trained must be a trained run, before the place: push\(trained, where\)"):
        push(tmp_path, trained)


def begun(run):
    """A run that looks finished, at its starting weights."""
    state = begin(run)
    return Trained(run, state.params, state.optimizer, np.array([1]), np.array([0.5]))


def test_a_class_of_ones_own_must_be_imported(tiny_run, tmp_path):
    """The line says how, for a command too; a file of which only the digest is kept needs the run."""
    @spec(part="model")
    class Vanishing(GatedAttention):
        """A model whose module will not be imported."""

    path = tmp_path / "m.safetensors"
    save_checkpoint(path, begun(replace(tiny_run, model=Vanishing())))
    assert type(load_checkpoint(path).run.model) is Vanishing
    registry._KINDS["model"].pop("vanishing")
    with pytest.raises(CheckpointError, match=r"needs the class 'Vanishing', .*: --import MODULE\)$"):
        load_checkpoint(path)
    rows = from_labelled(np.eye(8)[:, :5], [0, 1] * 4)
    save_checkpoint(path, begun(replace(tiny_run, prompts=rows)))
    with pytest.raises(CheckpointError, match=r"\(it holds an array, .*\); in Python, pass the run it was"):
        load_checkpoint(path)
    assert load_checkpoint(path, replace(tiny_run, prompts=rows)).run.prompts is rows


def test_nothing_is_left_where_a_file_cannot_be_written(tiny_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IclabError, match="cannot write"):
        save_checkpoint(tmp_path / "file" / "m.safetensors", train(tiny_run))
