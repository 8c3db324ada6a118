"""When does it pay to reason step by step? Example chains that slip to one rival pattern more and more often.

All three steps are alike: right with probability 0.72, otherwise mostly the pattern next to the right one. If enough
slips pile up on one wrong answer, it outnumbers the right one at the end of the chain (Condition 1 fails), although
every single step is usually right. Takes 15 seconds.
"""

import sys

import numpy as np

from iclab import Chain, ChainAttention, Run, Training, chain_errors, chain_test, train_many
from iclab.prompts.transitions import circulant, one_rival, quality

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def main():
    """Train four models, print errors by the rival's share; return {rival: (CoT, ICL)} with 128 examples."""
    run = Run(model=ChainAttention(), prompts=Chain(),
              training=Training(steps=steps, batch_size=60, learning_rate=10.0, loss="squared"))
    models = train_many([run.seeded(seed) for seed in range(4)])
    errors_by_rival = {}
    for rival in (0.05, 0.15, 0.2, 0.25, 0.27):
        matrices = circulant([one_rival(10, 0.72, rival)] * 3)
        test = chain_test(run.prompts, transitions=matrices, prompt_length=128)
        errors = chain_errors(models, [test], [8, 32, 128], count=500)
        chains = quality(matrices)
        cot, icl = (part[:, 0].mean(axis=0) for part in (errors.cot_answer, errors.icl))
        print(f"rival {rival:.2f}: tau {chains.tau:.2f} rho {chains.rho:.2f}, tau_o {chains.tau_o:.2f} rho_o "
              f"{chains.rho_o:.2f}, "
              f"Condition 1 {'holds' if chains.condition_one else 'fails'}; with 8, 32, 128 examples "
              f"CoT {np.round(cot, 3)} ICL {np.round(icl, 3)}")
        errors_by_rival[rival] = float(cot[-1]), float(icl[-1])
    return errors_by_rival


if __name__ == "__main__":
    main()
