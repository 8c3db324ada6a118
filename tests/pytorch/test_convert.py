"""Trained runs to PyTorch and back, and training there: the weights that iclab's own training gives."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import jax
import numpy as np
import pytest

import iclab
from iclab import (
    GPT2,
    ChainAttention,
    ChainEmbedding,
    Classification,
    GatedAttention,
    Run,
    SoftmaxMLP,
    SpecError,
    Training,
    load_checkpoint,
    replace,
    save_checkpoint,
    train,
)
from iclab.prompts import Chain
from iclab.training.sgd import begin

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
torch.set_num_threads(1)

from iclab.torch import PromptDataset, from_torch, objective, predictor, to_torch  # noqa: E402

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6,
                         outlier_fraction=0.4)
TRAINING = Training(steps=12, batch_size=16, learning_rate=0.1, record_every=5)
RUNS = {
    "mamba": Run(prompts=PROMPTS, training=TRAINING),
    "deep": Run(model=GatedAttention(member="gla", layers=2, normalise=True), prompts=PROMPTS, training=TRAINING),
    "softmax": Run(model=SoftmaxMLP(neurons=10), prompts=PROMPTS, training=TRAINING),
    "gpt2": Run(model=GPT2(size=16, layers=2, positions=9), prompts=PROMPTS,
                training=replace(TRAINING, optimizer="adam", learning_rate=1e-3)),
    "chains": Run(model=ChainAttention(embedding=ChainEmbedding(steps=2)), training=replace(TRAINING, loss="squared"),
                  prompts=Chain(dimension=8, patterns=6, prompt_length=3, reasoning_steps=2)),
}


def equal(a, b):
    leaves, others = jax.tree.leaves(a), jax.tree.leaves(b)
    return len(leaves) == len(others) and all(x.dtype == y.dtype and np.array_equal(x, y)
                                              for x, y in zip(leaves, others, strict=True))


def loop(run, module, batches):
    """The plain loop of a PyTorch user; the loss of every step."""
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[run.training.optimizer]
    optimizer = kind(module.parameters(), lr=run.training.learning_rate)
    losses = []
    for batch in batches:
        loss = objective(run.training)(module(*batch.inputs), batch.label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", RUNS)
def test_a_round_trip_changes_no_bit(name, tmp_path):
    trained = train(RUNS[name])
    module = to_torch(trained)
    assert from_torch(module) is trained
    again = from_torch(module, RUNS[name], losses=[0.5] * 12)
    assert equal(again.params, trained.params)
    assert jax.tree.structure(again.params) == jax.tree.structure(trained.params)
    save_checkpoint(tmp_path / "model.safetensors", again)
    assert equal(load_checkpoint(tmp_path / "model.safetensors").params, trained.params)
    prompts = RUNS[name].prompts.sample(1, 20)
    np.testing.assert_allclose(predictor(module)(prompts), trained.predict(prompts), rtol=1e-5, atol=1e-6)


def test_a_run_gives_its_starting_weights():
    assert equal(to_torch(RUNS["gpt2"]).weights(), jax.tree.map(np.asarray, begin(RUNS["gpt2"]).params))


@pytest.mark.parametrize("name", ["mamba", "softmax", pytest.param("gpt2", marks=pytest.mark.slow), "chains"])
def test_a_loop_on_the_same_prompts_gives_the_weights_of_iclabs_training(name, float64):
    run = replace(RUNS[name], training=replace(RUNS[name].training, backend="xla"))
    module, expected = to_torch(run), train(run)
    losses = loop(run, module, PromptDataset.of(run))
    ours = from_torch(module, losses=losses)
    np.testing.assert_array_equal(ours.steps, expected.steps)
    np.testing.assert_allclose(ours.loss, expected.loss, rtol=1e-6)
    for mine, theirs in zip(jax.tree.leaves(ours.params), jax.tree.leaves(expected.params), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
    other = to_torch(run)
    loop(run, other, PromptDataset.of(replace(run, data_seed=1)))
    assert max(np.abs(a - b).max() for a, b in zip(jax.tree.leaves(other.weights()), jax.tree.leaves(expected.params),
                                                   strict=True) if a.size) > 1e-6


def test_training_begun_in_pytorch_goes_on_in_iclab(float64):
    run = replace(RUNS["mamba"], training=replace(TRAINING, backend="xla"))
    module = to_torch(run)
    half = replace(run, training=replace(run.training, steps=5))
    begun = from_torch(module, half, losses=loop(half, module, PromptDataset.of(half)))
    ended, expected = train(run, start=begun), train(run)
    np.testing.assert_allclose(ended.params[0].W_B, expected.params[0].W_B, rtol=1e-9)
    np.testing.assert_allclose(ended.loss, expected.loss, rtol=1e-6)


def test_without_losses_the_record_is_that_of_a_fresh_batch():
    run, module = RUNS["softmax"], to_torch(RUNS["softmax"])
    trained = from_torch(module)
    batch = PromptDataset.of(run).batch(12)
    loss = objective(run.training)(module(*batch.inputs), batch.label).item()
    assert trained.steps.tolist() == [12]
    assert trained.loss[0] == pytest.approx(loss, rel=1e-5)
    with torch.no_grad():
        module.W_O.mul_(torch.nan)
    assert from_torch(module).state == "diverged"


def test_records_are_those_of_the_schedule():
    module = to_torch(RUNS["mamba"])
    for count, steps in ((12, [5, 10, 12]), (10, [5, 10]), (3, [3])):
        trained = from_torch(module, losses=np.arange(float(count)))
        assert trained.steps.tolist() == steps
    assert trained.loss.tolist() == [1.0]


def test_modules_are_saved_copied_and_compiled_like_others():
    module = to_torch(RUNS["deep"])
    with torch.no_grad():
        module.layers[0].W_B.add_(1.0)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    fresh = to_torch(RUNS["deep"])
    fresh.load_state_dict(torch.load(file))
    assert equal(fresh.weights(), module.weights())
    assert equal(copy.deepcopy(module).weights(), module.weights())
    wrapped = torch.compile(fresh, backend="eager")
    batch = PromptDataset.of(RUNS["deep"]).batch(0)
    torch.testing.assert_close(wrapped(*batch.inputs), module(*batch.inputs))
    assert equal(from_torch(wrapped).params, module.weights())
    assert module.to(torch.float64)(batch.x.double(), batch.y.double()).dtype == torch.float64


def test_one_prompt_is_read_like_a_batch():
    for name, run in RUNS.items():
        module, batch = to_torch(run), PromptDataset.of(run).batch(0)
        together, alone = module(*batch.inputs), module(*(part[3] for part in batch.inputs))
        torch.testing.assert_close(together[3], alone, msg=name)


def refused(call, *words):
    with pytest.raises(SpecError) as error:
        call()
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_what_does_not_fit_is_refused_with_its_field():
    run = RUNS["mamba"]
    module = to_torch(run)
    refused(lambda: from_torch(torch.nn.Linear(2, 2)), "module", "Linear", "predictor")
    refused(lambda: to_torch(torch.nn.Linear(2, 2)), "source", "Linear", "predictor")
    refused(lambda: from_torch(module, RUNS["gpt2"]), "run.model", "GPT2", "GatedAttention")
    refused(lambda: from_torch(module, replace(run, model=GatedAttention(member="linear"))), "run.model.member")
    refused(lambda: from_torch(module, replace(run, prompts=replace(PROMPTS, dimension=12))), "run.prompts.dimension")
    refused(lambda: from_torch(module, losses=[]), "losses", "training.steps = 12")
    refused(lambda: from_torch(module, losses=[0.0] * 13), "losses", "13")
    refused(lambda: from_torch(type(module)(run.model, 9)), "run", "to_torch")
    refused(lambda: type(module)(GPT2(), 9), "model", "GPT2", "GatedAttention")
    refused(lambda: to_torch(RUNS["chains"])(torch.zeros(2, 3, 8), torch.zeros(2, 3, 8)), "step", "batch.inputs")
    refused(lambda: to_torch(RUNS["gpt2"])(torch.zeros(2, 10, 9), torch.zeros(2, 10)), "prompt_length", "positions = 9")
    refused(lambda: objective(replace(TRAINING, loss=lambda output, label: output)), "training.loss", "hinge")


def test_a_model_of_ones_own_must_be_written_by_its_author():
    @iclab.spec
    class Mine:
        embedding: iclab.LabelEmbedding = iclab.part(default_factory=iclab.LabelEmbedding)

        def init(self, key, dimension):
            return np.zeros(dimension)

        def apply(self, params, columns):
            return columns[-1, 0], None

    refused(lambda: to_torch(Run(model=Mine(), prompts=PROMPTS)), "model", "Mine", "nn.Module")


def test_without_pytorch_the_extra_is_named_and_nothing_else_needs_it():
    program = ("import sys; sys.modules['torch'] = None\nimport iclab\n"
               "try:\n    import iclab.torch\nexcept ImportError as error:\n    print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "iclab.torch needs PyTorch: pip install '.[torch]' in a clone of iclab\n"
    program = "import sys, iclab, iclab.training, iclab.probes\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
