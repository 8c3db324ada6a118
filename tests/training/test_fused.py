"""The fused kernels as a way to train: when they are chosen, and that nothing else changes."""

from __future__ import annotations

import sys
import threading

import jax
import numpy as np
import pytest

from iclab import GatedAttention, SpecError, Training, replace, train, train_many
from iclab.kernels import fitting
from iclab.training import fused
from iclab.training.fused import backend_of
from iclab.training.trainer import Interrupted


@pytest.fixture
def run(tiny_run):
    return replace(tiny_run, training=replace(tiny_run.training, steps=40, record_every=20, backend="fused"))


def weights(trained):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(trained.params)])


def with_training(run, **changes):
    return replace(run, training=replace(run.training, **changes))


def test_kernels_train_what_they_can_and_xla_the_rest(tiny_run):
    assert backend_of(tiny_run) == "fused"
    assert backend_of(with_training(tiny_run, backend="xla")) == "xla"
    for other in (with_training(tiny_run, optimizer="adam"), with_training(tiny_run, clip_norm=1.0),
                  *(replace(tiny_run, model=model) for model in (
                      GatedAttention(layers=2), GatedAttention(member="gla"), GatedAttention(form="chunked"))),
                  replace(tiny_run, prompts=replace(tiny_run.prompts, noise_norm=0.1)),
                  replace(tiny_run, prompts=replace(tiny_run.prompts, label_rule=lambda clean, coin, x: -clean))):
        assert backend_of(other) == "xla"


def test_a_run_that_no_kernel_can_train_is_refused_in_one_line(run):
    with pytest.raises(SpecError, match=r"training.backend must be one of auto, xla here, got 'fused': a fused run "
                                        r"must be trained by plain sgd"):
        train(with_training(run, optimizer="adam"))
    with pytest.raises(SpecError, match="backend must be one of auto, xla, fused, got 'cuda'"):
        Training(backend="cuda")


def test_without_numba_everything_runs_on_xla_and_a_line_says_so(run, monkeypatch, caplog):
    monkeypatch.setattr(fitting, "numba_version", lambda: None)
    monkeypatch.setattr(fused, "numba_fault", fitting.numba_fault.__wrapped__)
    fused._say_slow.cache_clear()
    for _ in range(2):
        assert backend_of(with_training(run, backend="auto")) == "xla"
    assert [record.getMessage() for record in caplog.records] == [
        "iclab: training without the fused kernels, several times slower: they must have Numba installed (there is "
        "none for every Python)"]
    with pytest.raises(SpecError, match="a fused run must have Numba installed"):
        train(run)


def test_a_numba_that_does_not_load_is_not_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert fitting.numba_fault.__wrapped__().startswith("have a Numba that loads, which fails here: ")


@pytest.mark.parametrize("shared", [False, True])
def test_numbers_depend_neither_on_neighbours_nor_on_threads(run, shared):
    runs = [replace(run, init_seed=i, data_seed=0 if shared else i) for i in range(5)]
    alone = [weights(train(r)) for r in runs]
    for options in ({"workers": 1}, {"workers": 3, "width": 2}, {"width": 5}):
        together = train_many(runs, **options)
        for mine, trained in zip(alone, together, strict=True):
            np.testing.assert_array_equal(mine, weights(trained))


def test_a_resumed_run_is_the_run_that_was_never_stopped(run):
    whole = train(run)
    half = train(with_training(run, steps=20))
    resumed = train(run, start=half)
    np.testing.assert_array_equal(weights(resumed), weights(whole))
    np.testing.assert_array_equal(resumed.loss, whole.loss)


def test_records_and_probes_are_those_of_every_training(run):
    def first_entry(setup, params):
        return params[0].W_B[0, 0]

    seen = []
    trained = train(run, probe=first_entry, recorded=lambda index, make: seen.append(make().steps[-1]))
    assert seen == [20, 40]
    assert trained.probes["value"][-1] == pytest.approx(float(trained.params[0].W_B[0, 0]))
    assert trained.probes["value"][0] != trained.probes["value"][1]
    many = train(with_training(run, record_every=1))
    assert many.steps.tolist() == list(range(1, 41))
    np.testing.assert_array_equal(weights(many), weights(trained))


def test_a_long_training_between_two_records_can_be_stopped(run):
    stop = threading.Event()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    with pytest.raises(Interrupted):
        train_many([with_training(run, steps=10**8, record_every=10**8)], stop=stop)
    timer.join()


def test_a_training_that_diverges_says_so(run):
    linear = replace(run, model=GatedAttention(member="linear"))
    assert train(with_training(linear, learning_rate=1e6, steps=200)).state == "diverged"


def test_specs_of_a_pack_are_each_their_own(run):
    runs = [replace(run, model=GatedAttention(init_scale=s), prompts=replace(run.prompts, outlier_fraction=p),
                    training=replace(run.training, learning_rate=eta))
            for s, p, eta in ((0.2, 0.6, 0.1), (0.3, 0.0, 0.2), (0.1, 0.3, 0.05))]
    for trained, r in zip(train_many(runs, width=3), runs, strict=True):
        np.testing.assert_array_equal(weights(trained), weights(train(r)))
        xla = train(with_training(r, backend="xla"))
        np.testing.assert_allclose(weights(trained), weights(xla), atol=1e-5)


def test_a_run_of_another_kind_has_no_kernel():
    assert "GatedAttention" in fitting.misfit(object(), None)
