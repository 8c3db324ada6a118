"""Prompts as a PyTorch dataset: the batches of iclab's training, in order, whatever the workers."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclab import Classification, Run, SpecError, Training, measure_error, replace, spec
from iclab.core.spec import lower
from iclab.prompts import Chain
from iclab.prompts.labels import CLASS
from iclab.prompts.prompt import Family, Prompt
from iclab.prompts.randomness import Key
from iclab.training.losses import LOSSES
from iclab.training.sgd import step_keys

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
torch.set_num_threads(1)

from torch.utils.data import DataLoader  # noqa: E402

from iclab.torch import PromptDataset, predictor, prompt_loader  # noqa: E402
from iclab.torch.objectives import OBJECTIVES  # noqa: E402

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6,
                         outlier_fraction=0.4)
RUN = Run(prompts=PROMPTS, training=Training(steps=9, batch_size=4), data_seed=3)


def same(ours, theirs):
    return len(ours) == len(theirs) and all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y)
                                            and torch.equal(a.label, b.label)
                                            for a, b in zip(ours, theirs, strict=True))


def test_the_batches_are_those_that_training_reads():
    sampler = lower(PROMPTS)
    batches = list(PromptDataset.of(RUN))
    assert len(batches) == len(PromptDataset.of(RUN)) == 9
    for step, batch in enumerate(batches):
        key = Key(*(words[0] for words in step_keys(3, step, 1)))
        drawn = jax.jit(lambda key: sampler.prompts(sampler.bits(key, 4)))(key)
        np.testing.assert_array_equal(batch.x, drawn.x)
        np.testing.assert_array_equal(batch.y, drawn.y)
        np.testing.assert_array_equal(batch.label, drawn.label)
    assert not same(batches, list(PromptDataset.of(replace(RUN, data_seed=4))))
    assert not torch.equal(batches[0].x, batches[1].x)


@given(first=st.integers(0, 5), ranks=st.integers(1, 4), steps=st.integers(0, 9))
def test_processes_share_the_steps_between_them(first, ranks, steps):
    everything = [PromptDataset(PROMPTS, 4, seed=3).batch(step) for step in range(first, steps)]
    shares = [PromptDataset(PROMPTS, 4, seed=3, first=first, steps=steps, rank=rank, ranks=ranks)
              for rank in range(ranks)]
    assert [len(share) for share in shares] == [len(list(share)) for share in shares]
    merged = [None] * len(everything)
    for rank, share in enumerate(shares):
        merged[rank::ranks] = list(share)
    assert same(merged, everything)


def test_a_loader_gives_whole_batches_and_an_endless_dataset_has_no_length():
    assert same(list(prompt_loader(PromptDataset.of(RUN))), list(PromptDataset.of(RUN)))
    endless = PromptDataset(PROMPTS, 4)
    with pytest.raises(TypeError, match="endless"):
        len(endless)
    batches = iter(prompt_loader(endless))
    assert [next(batches).x.shape for _ in range(3)] == [(4, 7, 9)] * 3


@pytest.mark.parametrize("size", [1, 32])
def test_a_batch_of_batches_is_refused(size):
    with pytest.raises(SpecError, match="batch_size of the DataLoader must be None"):
        next(iter(DataLoader(PromptDataset(PROMPTS, 4), batch_size=size)))


@pytest.mark.slow
def test_workers_keep_the_order_of_the_steps():
    dataset = PromptDataset.of(RUN)
    assert same(list(prompt_loader(dataset, workers=2)), list(dataset))


@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("context", [None, "fork"])
def test_a_forked_worker_is_refused(context):
    """None: the default of this platform and Python, which may be a fork."""
    if (context or multiprocessing.get_start_method()) != "fork":
        pytest.skip("workers are not forked here")
    dataset = PromptDataset.of(RUN)
    dataset.batch(0)  # after which a fork would wait for JAX's threads forever
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context, timeout=60)
    with pytest.raises(SpecError, match="must be 'spawn', got 'fork'"):
        next(iter(loader))


@pytest.mark.slow
def test_a_dataset_that_was_pickled_draws_the_same_batches():
    dataset = PromptDataset.of(RUN)
    assert same(list(pickle.loads(pickle.dumps(dataset))), list(dataset))


@pytest.mark.parametrize("name", ["hinge", "logistic", "squared"])
def test_a_loss_refuses_outputs_that_would_be_broadcast(name):
    label = torch.tensor([1.0, -1.0, 1.0])
    with pytest.raises(SpecError, match=r"module must return one score per prompt, got 'shape \(3, 1\)'"):
        OBJECTIVES[name](torch.zeros(3, 1), label)
    assert OBJECTIVES[name](torch.zeros(3), label).shape == ()
    with pytest.raises(SpecError, match="outputs must be a tensor, got a tuple; where a module returns a pair"):
        OBJECTIVES[name]((torch.zeros(3), None), label)


@spec
class Thirds(Family):
    """Inputs in three classes; labels of the examples are one-hot rows."""

    labels: ClassVar = CLASS
    dimension: int = 4
    prompt_length: int = 5

    def draw(self, key):
        x = jax.random.normal(key, (6, 4))
        number = jnp.argmax(x[:, :3], axis=1)
        return Prompt(x, jax.nn.one_hot(number, 3).at[-1].set(0.0), number[-1])


@pytest.mark.slow
def test_classes_and_chains_have_pytorchs_types():
    batch = PromptDataset(Thirds(), 4).batch(0)
    assert (batch.label.dtype, batch.x.dtype, batch.step) == (torch.int64, torch.float32, None)
    chain = PromptDataset(Chain(dimension=8, patterns=6, prompt_length=3, reasoning_steps=2), 4).batch(0)
    assert len(chain.inputs) == 3
    assert chain.step.dtype == torch.int64
    assert chain.to(torch.device("cpu")).inputs[2] is chain.step
    with jax.enable_x64(True):
        double = PromptDataset(PROMPTS, 4)
    assert double.batch(0).x.dtype == torch.float64


@pytest.mark.parametrize(("field", "value"), [("seed", -1), ("seed", 2**32), ("batch_size", 0), ("steps", 1.5),
                                              ("first", -1), ("ranks", 0), ("rank", 1)])
def test_bad_values_are_refused_by_name(field, value):
    with pytest.raises(SpecError, match=f"^{field} must be a whole number"):
        PromptDataset(PROMPTS, **{field: value})


def test_a_run_is_read_by_of():
    with pytest.raises(SpecError, match=r"PromptDataset\.of\(run\)"):
        PromptDataset(RUN)


@given(seed=st.integers(0, 2**20), scale=st.sampled_from((0.0, 1.0, 30.0)))
def test_losses_and_their_slopes_are_iclabs(seed, scale):
    random = np.random.default_rng(seed)
    for name, ours in OBJECTIVES.items():
        shape = (5, 3) if name in ("cross_entropy", "squared") else (5,)
        outputs = scale * random.normal(size=shape)
        label = {"cross_entropy": random.integers(0, 3, 5), "squared": random.normal(size=shape)}.get(
            name, random.choice([-1.0, 1.0], 5))
        if name == "hinge":
            outputs[0] = label[0]  # on the corner
        with jax.enable_x64(True):
            loss, slope = jax.value_and_grad(lambda outputs, name=name, label=label: jax.vmap(LOSSES[name])(
                outputs, label).mean())(outputs)
        tensor = torch.tensor(outputs, requires_grad=True)
        mine = ours(tensor, torch.tensor(label))
        mine.backward()
        np.testing.assert_allclose(mine.item(), loss, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(tensor.grad, slope, rtol=1e-12, atol=1e-15)


class Own(torch.nn.Module):
    """A module with another precision and a part that behaves differently in training."""

    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.9)
        self.score = torch.nn.Linear(10, 1, dtype=torch.float64)
        self.score.eval()

    def forward(self, x, y):
        return self.score(self.drop(torch.cat([x, y.unsqueeze(-1)], -1))).sum((1, 2))


def test_a_predictor_evaluates_a_module_and_leaves_it_as_it_was():
    module = Own()
    predict, prompts = predictor(module), PROMPTS.sample(0, 10).numpy()
    np.testing.assert_array_equal(predict(prompts), predict(prompts))
    assert (module.training, module.drop.training, module.score.training) == (True, True, False)
    assert 0.2 < measure_error(predict, PROMPTS, count=200).error < 0.8
    assert measure_error(predictor(lambda x, y: y.sum(1)), PROMPTS, count=50).error >= 0.0
    with pytest.raises(SpecError, match="module must return a tensor"):
        predictor(lambda x, y: (x, y))(prompts)
    with pytest.raises(SpecError, match=r"module must be callable as module\(x, y\), got Linear"):
        predictor(torch.nn.Linear(9, 1))(prompts)


def test_a_bare_module_is_no_predictor():
    with pytest.raises(SpecError, match=r"write iclab\.torch\.predictor\(module\), got 'Linear'"):
        measure_error(torch.nn.Linear(9, 1), PROMPTS, count=10)
