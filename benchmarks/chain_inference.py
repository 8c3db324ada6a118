"""Chains of thought of 10,000 prompts in one call, against the same maths in batched eager PyTorch.

Given prompts: all contenders get the same prompts (20 examples, K = 3), the same trained weights and all cores, and
must give the same answers. The first baseline follows algorithm 2 literally: compute a step with one batched product
over all columns of all prompts, decode it, append its column, repeat. The second is tuned: it keeps the query's columns
separate, because appending them copies all the others.

Drawn prompts: the whole job of measuring an error, from drawing the prompts on. The baseline draws them in batches of
the size that is fastest, from the same distribution, and decodes with the tuned function. `chain_errors` also measures
direct answers and the majority vote meanwhile.

Needs PyTorch. Run: `python benchmarks/chain_inference.py`.
"""

from __future__ import annotations

import dataclasses
import time
from statistics import median

import jax
import numpy as np
import torch

from iclab.core.parallel import cores
from iclab.core.spec import replace
from iclab.papers.cot.settings import a_run, default_test
from iclab.probes.chains import chain_errors
from iclab.probes.reasoning import reason
from iclab.prompts.chain import mixtures_code
from iclab.training import train

PROMPTS, EXAMPLES, ROUNDS, REPEATS = 10_000, 20, 7, 3
BATCHES = (100, 250, 500, 1000, 10_000)


@torch.no_grad()
def appending(W, columns, query, patterns, codes):
    """Answers of every step; `columns` (prompts, columns, width), `query` (prompts, dimension)."""
    size, dimension, answers = len(columns), query.shape[1], []
    nothing = torch.zeros_like(query)
    for code in codes.unsqueeze(1).expand(-1, size, -1):
        keyed = torch.cat([query, nothing, code], dim=1) @ W.T
        attention = torch.softmax((columns @ keyed[:, :, None])[..., 0], dim=1)
        output = (attention[:, None] @ columns)[:, 0, dimension:2 * dimension]
        answers.append((output @ patterns.T).argmax(dim=1))
        answer = patterns[answers[-1]]
        columns = torch.cat([columns, torch.cat([query, answer, code], dim=1)[:, None]], dim=1)
        query = answer
    return torch.stack(answers, dim=1).numpy()


@torch.no_grad()
def apart(W, columns, query, patterns, codes):
    """The same, with the query's columns kept separate."""
    size, count, dimension, answers, decoded = len(columns), columns.shape[1], query.shape[1], [], []
    nothing = torch.zeros_like(query)
    for code in codes.unsqueeze(1).expand(-1, size, -1):
        keyed = (torch.cat([query, nothing, code], dim=1) @ W.T)[:, :, None]
        logits = columns @ keyed
        if decoded:
            query_columns = torch.stack(decoded, dim=1)
            logits = torch.cat([logits, query_columns @ keyed], dim=1)
        attention = torch.softmax(logits[..., 0], dim=1)[:, None]
        output = attention[..., :count] @ columns
        if decoded:
            output = output + attention[..., count:] @ query_columns
        answers.append((output[:, 0, dimension:2 * dimension] @ patterns.T).argmax(dim=1))
        answer = patterns[answers[-1]]
        decoded.append(torch.cat([query, answer, code], dim=1))
        query = answer
    return torch.stack(answers, dim=1).numpy()


class Sampler:
    """Test prompts drawn in PyTorch: a random order of the patterns, chains with wrong steps, noise on every token."""

    def __init__(self, test):
        self.M, self.K, self.matching = test.patterns, test.reasoning_steps, test.matching_fraction
        self.basis = torch.tensor(mixtures_code(test, test.pattern_mixtures), dtype=torch.float32)
        self.patterns, directions = self.basis[:self.M].contiguous(), self.basis[self.M:]
        self.signed = 2.0 * test.noise_norm / len(directions) ** 0.5 * directions
        self.shifted = self.patterns - 0.5 * self.signed.sum(dim=0)
        """Patterns less half of what all signs add: a sign is then added or not."""
        A = torch.tensor(test.transitions, dtype=torch.float32)
        self.right = A.argmax(dim=2)
        # Row i of the cumulative probabilities, shifted by i: one search draws the next place of every chain.
        self.bounds = (A.cumsum(dim=2).clamp(max=1.0) + torch.arange(self.M)[:, None]).reshape(self.K, -1)
        self.codes = torch.eye(self.K)

    @torch.no_grad()
    def __call__(self, size):
        """Columns (prompts, columns, width), queries (prompts, dimension) and right answers (prompts, steps)."""
        M, K = self.M, self.K
        order = torch.rand(size, M).argsort(dim=1)
        begin = torch.randint(M, (size, 1))
        other = torch.randint(M - 1, (size, EXAMPLES))
        here = torch.where(torch.rand(size, EXAMPLES) < self.matching, begin, other + (other >= begin))
        places, chain = [here], [begin]
        for k in range(K):
            at = torch.searchsorted(self.bounds[k], (torch.rand(size, EXAMPLES) + here).reshape(-1), right=True)
            here = (at.reshape(size, EXAMPLES) - M * here).clamp(0, M - 1)
            places.append(here)
            chain.append(self.right[k][chain[-1]])
        tokens = order.gather(1, torch.stack(places, dim=2).reshape(size, -1))
        chain = order.gather(1, torch.cat(chain, dim=1))
        signs = torch.empty(size * EXAMPLES * (K + 1), len(self.signed)).random_(2)
        vectors = torch.addmm(self.shifted[tokens.reshape(-1)], signs, self.signed).reshape(size, EXAMPLES, K + 1, -1)
        codes = self.codes.expand(size, EXAMPLES, K, K)
        columns = torch.cat([vectors[:, :, :-1], vectors[:, :, 1:], codes], dim=3)
        return columns.reshape(size, EXAMPLES * K, -1), self.patterns[chain[:, 0]], chain[:, 1:].numpy()


def drawn_error(W, sampler, batch):
    """Error of the chain of thought on drawn prompts, the mean over its steps."""
    wrong = 0
    for _ in range(PROMPTS // batch):
        columns, query, chain = sampler(batch)
        wrong += (apart(W, columns, query, sampler.patterns, sampler.codes) != chain).sum()
    return wrong / (PROMPTS * sampler.K)


def seconds(contenders):
    """Seconds of every contender in every round; they take turns."""
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            run()  # untimed warm-up after the previous contender
            began = time.perf_counter()
            for _ in range(REPEATS):
                run()
            times[name].append((time.perf_counter() - began) / REPEATS)
    return times


def show(times):
    """Print the median time of every contender, and its ratio to the last's."""
    last = list(times.values())[-1]
    for name, values in times.items():
        ratio = median(a / b for a, b in zip(values, last, strict=True))
        print(f"{name:24} {1e3 * median(values):8.1f} ms   {ratio:5.1f} x iclab's time")


def given_prompts(trained, test, W):
    """Decode prompts that are there already."""
    prompts, vectors = test.sample(0, PROMPTS), test.pattern_vectors()
    jax.block_until_ready(prompts)
    x, y, step = (np.array(field) for field in (prompts.x, prompts.y, prompts.step))
    codes, patterns = torch.eye(test.reasoning_steps), torch.tensor(np.array(vectors))
    code = codes[torch.tensor(step[:, :-1]).long()]
    columns = torch.cat([torch.tensor(x[:, :-1]), torch.tensor(y[:, :-1]), code], dim=2)
    query = torch.tensor(x[:, -1]).contiguous()
    contenders = {"eager, appending": lambda: appending(W, columns, query, patterns, codes),
                  "eager, kept apart": lambda: apart(W, columns, query, patterns, codes),
                  "iclab, one call": lambda: reason(trained, prompts, vectors)}
    answers = {name: run() for name, run in contenders.items()}
    same = min(float((given == answers["iclab, one call"]).mean()) for given in answers.values())
    right = float((answers["iclab, one call"] == np.asarray(prompts.truth.chain)[:, 1:]).mean())
    print("Given prompts")
    show(seconds(contenders))
    print(f"equal answers {same:.5f}, right answers {right:.4f}\n")


def drawn_prompts(trained, test, W):
    """Draw prompts and measure the error of the chain of thought."""
    sampler = Sampler(test)
    by_batch = seconds({batch: lambda batch=batch: drawn_error(W, sampler, batch) for batch in BATCHES})
    fastest = min(BATCHES, key=lambda batch: median(by_batch[batch]))
    slow = dataclasses.replace(trained, run=replace(trained.run, training=replace(trained.run.training, backend="xla")))

    def error(judged):
        return float(chain_errors([judged], [test], [EXAMPLES], count=PROMPTS).cot[0, 0, 0])

    contenders = {f"eager, batches of {fastest}": lambda: drawn_error(W, sampler, fastest),
                  "iclab, XLA": lambda: error(slow), "iclab, one call": lambda: error(trained)}
    errors = ", ".join(f"{run():.4f}" for run in contenders.values())
    print("Drawn prompts")
    show(seconds(contenders))
    print(f"errors {errors}; eager by batch: "
          + ", ".join(f"{batch} {1e3 * median(values):.0f} ms" for batch, values in by_batch.items()))


def main() -> None:
    torch.set_num_threads(cores())
    trained, test = train(a_run(400)), default_test(prompt_length=EXAMPLES)
    W = torch.tensor(np.array(trained.params.W))
    print(f"{cores()} threads, {PROMPTS} prompts of {EXAMPLES} examples\n")
    given_prompts(trained, test, W)
    drawn_prompts(trained, test, W)


if __name__ == "__main__":
    main()
