"""Chains of thought of 10,000 prompts in one call, against the same maths in batched eager PyTorch.

All contenders get the same prompts (20 examples, K = 3), the same trained weights and all cores, and must give the same
answers. The first baseline follows algorithm 2 literally: compute a step with one batched product over all columns of
all prompts, decode it, append its column, repeat. The second is tuned: it keeps the query's columns separate, because
appending them copies all the others. Needs PyTorch. Run: `python benchmarks/chain_inference.py`.
"""

from __future__ import annotations

import time
from statistics import median

import jax
import numpy as np
import torch

from iclab.core.parallel import cores
from iclab.papers.cot.settings import a_run, default_test
from iclab.probes.reasoning import reason
from iclab.training import train

PROMPTS, EXAMPLES, ROUNDS, REPEATS = 10_000, 20, 7, 3


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


def main() -> None:
    torch.set_num_threads(cores())
    trained, test = train(a_run(400)), default_test(prompt_length=EXAMPLES)
    prompts, vectors = test.sample(0, PROMPTS), test.pattern_vectors()
    jax.block_until_ready(prompts)
    x, y, step = (np.array(field) for field in (prompts.x, prompts.y, prompts.step))
    codes, patterns = torch.eye(test.reasoning_steps), torch.tensor(np.array(vectors))
    code = codes[torch.tensor(step[:, :-1]).long()]
    columns = torch.cat([torch.tensor(x[:, :-1]), torch.tensor(y[:, :-1]), code], dim=2)
    query, W = torch.tensor(x[:, -1]).contiguous(), torch.tensor(np.array(trained.params.W))

    contenders = {"eager, appending": lambda: appending(W, columns, query, patterns, codes),
                  "eager, kept apart": lambda: apart(W, columns, query, patterns, codes),
                  "iclab, one call": lambda: reason(trained, prompts, vectors)}
    answers = {name: run() for name, run in contenders.items()}
    same = min(float((given == answers["iclab, one call"]).mean()) for given in answers.values())
    right = float((answers["iclab, one call"] == np.asarray(prompts.truth.chain)[:, 1:]).mean())
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            run()  # untimed warm-up after the previous contender
            began = time.perf_counter()
            for _ in range(REPEATS):
                run()
            times[name].append((time.perf_counter() - began) / REPEATS)
    for name, values in times.items():
        ratio = median(a / b for a, b in zip(values, times["iclab, one call"], strict=True))
        print(f"{name:18} {1e3 * median(values):8.1f} ms   {ratio:5.1f} x iclab's time")
    print(f"equal answers {same:.5f}, right answers {right:.4f}; {cores()} threads, {PROMPTS} prompts of {EXAMPLES}")


if __name__ == "__main__":
    main()
