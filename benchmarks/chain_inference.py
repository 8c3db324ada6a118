"""Chains of thought of 10,000 prompts in one compiled call, against the same maths in batched eager PyTorch.

Both get the same prompts (20 examples, K = 3), the same trained weights, all cores, and must give the same answers. The
baseline keeps all columns of all prompts in one tensor, asks for a step with one batched product, decodes it, appends
the column, and goes on. Needs PyTorch. Run: `python benchmarks/chain_inference.py`.
"""

from __future__ import annotations

import time
from statistics import median

import jax
import numpy as np
import torch

from iclab.papers.cot.settings import a_run, default_test
from iclab.parallel import cores
from iclab.probes.reasoning import reason
from iclab.training import train

PROMPTS, EXAMPLES, ROUNDS = 10_000, 20, 7


@torch.no_grad()
def eager(W, columns, query, patterns, codes):
    """Answers of every step; `columns` (prompts, columns, width), `query` (prompts, dimension)."""
    size, dimension = len(columns), query.shape[1]
    answers, nothing = [], torch.zeros_like(query)
    for code in codes:
        asked = torch.cat([query, nothing, code.expand(size, -1)], dim=1) @ W.T
        attention = torch.softmax(torch.bmm(columns, asked[:, :, None])[..., 0], dim=1)
        output = torch.bmm(attention[:, None], columns[..., dimension:2 * dimension])[:, 0]
        answer = (output @ patterns.T).argmax(dim=1)
        answers.append(answer)
        said = patterns[answer]
        columns = torch.cat([columns, torch.cat([query, said, code.expand(size, -1)], dim=1)[:, None]], dim=1)
        query = said
    return torch.stack(answers, dim=1)


def main() -> None:
    torch.set_num_threads(cores())
    trained, test = train(a_run(400)), default_test(prompt_length=EXAMPLES)
    prompts, vectors = test.sample(0, PROMPTS), test.pattern_vectors()
    jax.block_until_ready(prompts)
    K = test.reasoning_steps
    x, y, step = (np.array(field) for field in (prompts.x, prompts.y, prompts.step))
    codes, patterns = torch.eye(K), torch.tensor(np.array(vectors))
    code = codes[torch.tensor(step[:, :-1]).long()]
    columns = torch.cat([torch.tensor(x[:, :-1]), torch.tensor(y[:, :-1]), code], dim=2)
    query, W = torch.tensor(x[:, -1]).contiguous(), torch.tensor(np.array(trained.params.W))

    contenders = {"eager PyTorch": lambda: eager(W, columns, query, patterns, codes).numpy(),
                  "iclab, one call": lambda: reason(trained, prompts, vectors)}
    answers = {name: run() for name, run in contenders.items()}
    same = float((answers["eager PyTorch"] == answers["iclab, one call"]).mean())
    right = float((answers["iclab, one call"] == np.asarray(prompts.chain)[:, 1:]).mean())
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    for name, values in times.items():
        ratio = median(a / b for a, b in zip(times["eager PyTorch"], values, strict=True))
        print(f"{name:18} {1e3 * median(values):8.1f} ms   {ratio:5.1f} x eager")
    print(f"equal answers: {same:.5f}, right answers: {right:.4f}; {cores()} threads, {PROMPTS} prompts, {EXAMPLES} "
          f"examples")


if __name__ == "__main__":
    main()
