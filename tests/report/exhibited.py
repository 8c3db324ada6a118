"""The playground's page for tests: its models with random weights, and what Python makes of a prompt."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.core.spec import lower
from iclab.models import forward
from iclab.papers.cot.settings import default_test
from iclab.papers.icl.settings import out_of_domain
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes.reasoning import at_once, chain_of_thought
from iclab.prompts import Prompt
from iclab.report.playground.exhibits import Exhibit, at_step, exhibits
from iclab.report.playground.ported import used_coordinates
from iclab.training import Run, Trained
from iclab.training.sgd import begin
from iclab.training.trained import named

SOURCES = Path(__file__).parents[2] / "playground"
"""Sources of the page's program."""


def random_models() -> list[Trained]:
    """Every exhibit with random weights: enough to compare two programs that read them."""
    return [_random(exhibit, np.random.default_rng(i)) for i, exhibit in enumerate(exhibits())]


def random_run(run: Run, seed: int, size: float = 0.1) -> Trained:
    """A run whose weights moved at random."""
    rng, start = np.random.default_rng(seed), begin(run).params
    params = jax.tree.map(lambda leaf: np.asarray(np.asarray(leaf) + size * rng.standard_normal(leaf.shape),
                                                  np.float32), start)
    return Trained(run, params, None, np.array([1]), np.zeros(1))


def _random(exhibit: Exhibit, rng: np.random.Generator) -> Trained:
    params = begin(exhibit.run).params
    steps = np.array(exhibit.steps[1:])

    def drawn(leaf: Any) -> np.ndarray:
        return np.asarray(np.asarray(leaf) + 0.1 * rng.standard_normal((len(steps), *leaf.shape)), np.float32)

    probes = {name: drawn(leaf) for name, leaf in named(params).items()}
    last = jax.tree.unflatten(jax.tree.structure(params), [rows[-1] for rows in probes.values()])
    return Trained(exhibit.run, last, None, steps, np.zeros(len(steps)), probes)


def ask(page: Any, function: str, *arguments: Any) -> Any:
    """Call a function in the page. Values go as JSON text: passing every number separately would take minutes."""
    return json.loads(page.evaluate(f"text => JSON.stringify(({function})(...JSON.parse(text)))",
                                    json.dumps(arguments)))


def close(actual: Any, expected: Any, scale: float = 1.0) -> None:
    """Equal to 1e-5."""
    np.testing.assert_allclose(np.asarray(actual, float), np.asarray(expected, float), rtol=0, atol=1e-5 * scale)


def as_columns(run: Run, drawn: Any) -> tuple[int, list[list[float]]]:
    """Prompts as the page's models read them: how wide a row is, and for each prompt its rows of input and label."""
    columns = np.concatenate([drawn.x, float(run.model.embedding.norm) * drawn.y[..., None]], axis=-1)
    used = used_coordinates(run)
    assert (np.delete(columns, used, axis=-1) == 0).all()
    return len(used), columns[..., used].reshape(len(columns), -1).tolist()


@jax.jit
def _read(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(lambda prompt: forward(model, params, prompt))(prompts)


def in_python(model: Any, params: Any, prompts: Any, precise: bool = True) -> Any:
    """Outputs and intermediates of a batch, by default in double precision, so that rounding does not matter."""
    if precise:
        params, prompts = doubled(params), doubled(prompts)
    with jax.enable_x64(precise):
        return jax.tree.map(np.asarray, _read(lower(model), params, prompts))


def doubled(tree: Any) -> Any:
    """The same numbers in double precision."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64) if np.asarray(leaf).dtype == np.float32 else leaf,
                        tree)


def compare_gated(page: Any, number: int, trained: Trained, step: int, prompts: int, precise: bool = True) -> None:
    """The page's outputs, scores and gates of a gated model against Python's."""
    test = attacked_prompts("flip", 0.5)
    drawn = jax.tree.map(np.asarray, test.sample(number, prompts))
    outputs, seen = in_python(trained.run.model, at_step(trained, step), drawn, precise)
    read = ask(page, """(number, at, width, prompts) => prompts.map(values => {
            const { output, layers } = iclab.read(iclab.models[number], at,
                { width, count: values.length / width, values: new Float64Array(values) });
            return [output, ...["scores", "gates", "votes"].map(name => [...layers[0][name]])]; })""",
               number, exhibits()[number].steps.index(step), *as_columns(trained.run, drawn))
    for actual, expected in zip(list(zip(*read, strict=True))[:3], (outputs, seen.scores[:, 0], seen.gates[:, 0]),
                                strict=True):
        # In single precision Python's rounding errors are relative to the largest number.
        close(actual, expected, 1.0 if precise else max(1.0, float(np.abs(expected).max())))
    close([sum(one[3]) for one in read], [one[0] for one in read])


def compare_softmax(page: Any, number: int, trained: Trained, step: int, prompts: int) -> None:
    """The same for a softmax Transformer: outputs, attention, neurons, and outputs with only every third neuron."""
    test = out_of_domain(0.6, 0.5)
    drawn = jax.tree.map(np.asarray, test.sample(number, prompts))
    params, model = at_step(trained, step), trained.run.model
    outputs, seen = in_python(model, params, drawn)
    keep = np.arange(model.neurons) % 3 == 0
    pruned, _ = in_python(model, model.keep_neurons(params, keep), drawn)
    steps = exhibits()[7 + number].steps
    read = ask(page, """(number, at, width, prompts, keep) => { const weights = iclab.softmaxes[number].weights[at][0];
        return prompts.map(values => { const { attention, pooled } = iclab.attend(weights,
                { width, count: values.length / width, values: new Float64Array(values) });
            return [iclab.decide(weights, pooled), [...attention], [...iclab.hidden(weights, pooled)],
                iclab.decide(weights, pooled, new Uint8Array(keep))]; }); }""",
               number, steps.index(step), *as_columns(trained.run, drawn), keep.astype(int).tolist())
    close([one[0] for one in read], outputs)
    close([one[1] for one in read], seen.scores[:, 0, :-1])
    close([one[2] for one in read], seen.hidden)
    close([one[3] for one in read], pruned)


def compare_chain(page: Any, trained: Trained, step: int, prompts: int) -> None:
    """The same for chains of thought: attention, outputs and answers of every step, and of the direct answer."""
    compare_thoughts(page, trained.run.model, at_step(trained, step), exhibits()[-1].steps.index(step),
                     default_test(prompt_length=10), prompts)


def compare_thoughts(page: Any, model: Any, params: Any, at: int, test: Any, prompts: int) -> None:
    """Chains of thought of the page's chain model with its weights at one of its steps."""
    drawn = jax.tree.map(np.asarray, test.sample(5, prompts))
    vectors = np.asarray(test.pattern_vectors())
    K, examples = test.reasoning_steps, (test.prompt_length,)
    read = ask(page, """(at, prompts) => prompts.map(({ x, y, step, query }) => {
            const context = { count: step.length, x: new Float64Array(x), y: new Float64Array(y), step };
            const { steps, direct } = iclab.thoughtsOn(
                { ...iclab.reasoner, layers: iclab.reasoner.weights[at] }, context, query);
            return [...steps, direct].map(one => [one.answer, [...one.attention], [...one.output]]); })""",
               at,
               [{"x": x[:-1].ravel().tolist(), "y": y[:-1].ravel().tolist(), "step": steps[:-1].tolist(),
                 "query": int(chain[0])}
                for x, y, steps, chain in zip(drawn.x, drawn.y, drawn.step, drawn.truth.chain, strict=True)])
    @partial(jax.vmap, in_axes=(None, 0))
    def reasoned(params: Any, prompt: Any) -> Any:
        """Answers step by step and direct, and output and attention of every step of the chain."""
        answers = chain_of_thought(model, params, prompt, jnp.asarray(vectors), examples).answers[0]
        context = model.embedding.columns(Prompt(prompt.x[:-1], prompt.y[:-1], None, step=prompt.step[:-1]))
        seen, steps = [prompt.x[-1]], []
        for k in range(K):
            query = Prompt(jnp.stack(seen), jnp.stack([*seen[1:], 0 * seen[0]]), None, step=jnp.arange(k + 1))
            steps.append(model.read(params, context, jnp.ones(len(context), bool), model.embedding.columns(query)))
            seen.append(jnp.asarray(vectors)[answers[k]])
        return answers, at_once(model, params, prompt, jnp.asarray(vectors), examples)[0], steps

    with jax.enable_x64(True):
        answers, direct, steps = jax.tree.map(np.asarray, jax.jit(reasoned)(doubled(params), doubled(drawn)))
    assert [[step[0] for step in one[:K]] for one in read] == answers.tolist()
    assert [one[K][0] for one in read] == direct.tolist()
    for k, (output, attention) in enumerate(steps):
        close([one[k][1] for one in read], attention)
        close([one[k][2] for one in read], output)
