"""Settings of li2024cot, appendix E, and our choices for what it leaves open.

| given by the paper                                          | chosen here                                            |
| ----------------------------------------------------------- | ------------------------------------------------------ |
| d_X 30, M 20, M' 10, K 3, alpha .4, noise .2; tau .5,       | eta .9, B 300, T 3,000, l_tr 512, xi .01; the matrices |
| rho .8, alpha' .8 unless varied; figure 4: tau_o .4,        | A_k (iclab.prompts.transitions)                        |
| rho_o .1                                                    |                                                        |

The choices meet the premises of theorem 1 for epsilon = 0.1 with the constant 1: eta is below 1, B is at least
max{epsilon^-2, M} log M = 299.6, and no test has more examples than training prompts. Where no theorem is judged,
eta 10 with B = M K (every query input once at every step) and l_tr 20 trains in a tenth of the steps.
"""

from __future__ import annotations

from typing import Any

from iclab.core.spec import replace
from iclab.lab.entries import Size
from iclab.models import ChainAttention, ChainEmbedding
from iclab.prompts.chain import Chain, chain_test
from iclab.prompts.transitions import weak_step
from iclab.training import Run, Training

TAU, RHO = 0.5, 0.8
SHORT = (1, 2, 4, 8, 12, 16, 24, 32, 64, 96)
LONG = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
EPSILON = 0.1
"""The theorems' epsilon that the batch of `covered_run` supports."""
SIZES = {
    "tiny": Size(seeds=2, steps=100, prompts=100, long_prompts=100, default_prompts=100, short=(4, 8, 16, 32, 64),
                 long=(1, 16, 256), mass_fractions=(), fast_steps=0, faint=(0.6, 0.8), faint_prompts=100,
                 axes={"alpha'": (0.6, 0.8), "tau": (0.5, 0.7), "rho": (0.7, 0.8)}),
    "quick": Size(seeds=8, steps=2_000, prompts=300, long_prompts=200, default_prompts=1_200, short=SHORT, long=LONG,
                  mass_fractions=(), fast_steps=0, faint=(0.1, 0.2), faint_prompts=300,
                  axes={"alpha'": (0.2, 0.4, 0.8), "tau": (0.3, 0.5, 0.7), "rho": (0.4, 0.6, 0.8)}),
    "full": Size(seeds=8, steps=3_000, prompts=1_000, long_prompts=500, default_prompts=2_000, short=SHORT, long=LONG,
                 mass_fractions=(0.2, 0.4, 0.6), fast_steps=300, faint=(0.05, 0.1), faint_prompts=800,
                 axes={"alpha'": (0.2, 0.3, 0.4, 0.6, 0.8), "tau": (0.3, 0.4, 0.5, 0.6, 0.7),
                       "rho": (0.2, 0.3, 0.4, 0.6, 0.8)}),
}
"""`short` and `long` are the numbers of examples at which errors are measured, the second where many are needed, with
`long_prompts` prompts; `faint` are small values of rho, with `faint_prompts`; `mass_fractions` are values of alpha'
at which attention is measured besides the default 0.8; `fast_steps` are those of training with eta 10 for the second
stage of figure 5, 0 where it is left out; the default setting has
`default_prompts`, because the vote has many ties, broken at random."""


def training_prompts(**changes: Any) -> Chain:
    """Training prompts: 20 examples, a fraction 0.4 of which start at the query's pattern."""
    return replace(Chain(), **changes)


def default_test(training: Chain | None = None, **changes: Any) -> Chain:
    """Test prompts: new patterns in the span of the training ones, half as many; noise 0.2, tau 0.5, rho 0.8."""
    test = chain_test(training or training_prompts(), **{"prompt_length": max(SHORT), **changes})
    if "transitions" in changes:
        return test
    return replace(test, transitions=weak_step(TAU, RHO, steps=test.reasoning_steps, patterns=test.patterns))


def covered_run(steps: int, *, batch_size: int = 300, record_every: int = 10, prompt_length: int = max(LONG),
                **prompts: Any) -> Run:
    """Training inside the premises of theorem 1 for an accuracy of `EPSILON`, with some fields of its prompts changed.
    """
    run = a_run(steps, record_every=record_every, prompt_length=prompt_length, **prompts)
    return replace(run, training=replace(run.training, learning_rate=0.9, batch_size=batch_size))


def a_run(steps: int, *, reasoning_steps: int = 3, record_every: int = 50, **prompts: Any) -> Run:
    """Training of the attention-only Transformer, with some fields of its prompts changed."""
    spec = training_prompts(reasoning_steps=reasoning_steps, **prompts)
    batch = spec.patterns * spec.reasoning_steps
    return Run(model=ChainAttention(embedding=ChainEmbedding(steps=reasoning_steps)), prompts=spec,
               training=Training(steps=steps, batch_size=batch, learning_rate=10.0, loss="squared",
                                 record_every=record_every))
