"""When does it pay to reason step by step? Chains whose examples slip into one rival, more and more often.

All three steps are alike: right with probability 0.72, else mostly the pattern next to the right one. The more the
slips pile up on one wrong answer, the sooner that answer outnumbers the right one at the end of the chain (Condition 1
fails), although every single step is right more often than not. Takes 15 seconds.
"""

import sys

import numpy as np

from iclab import Chain, ChainAttention, Run, Training, chain_errors, chain_test, train_many
from iclab.prompts.transitions import circulant, one_rival, quality

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def main():
    """Train four models, print errors by the rival's share; returns {rival: (CoT, ICL)} with 128 examples."""
    run = Run(model=ChainAttention(), prompts=Chain(),
              training=Training(steps=steps, batch_size=60, learning_rate=10.0, loss="squared"))
    models = train_many([run.seeded(seed) for seed in range(4)])
    found = {}
    for rival in (0.05, 0.15, 0.2, 0.25, 0.27):
        matrices = circulant([one_rival(10, 0.72, rival)] * 3)
        test = chain_test(run.prompts, transitions=matrices, prompt_length=128)
        errors = chain_errors(models, [test], [8, 32, 128], count=500)
        said = quality(matrices)
        cot, icl = (part[:, 0].mean(axis=0) for part in (errors.cot_answer, errors.icl))
        print(f"rival {rival:.2f}: tau {said.tau:.2f} rho {said.rho:.2f}, tau_o {said.tau_o:.2f} rho_o "
              f"{said.rho_o:.2f}, "
              f"Condition 1 {'holds' if said.condition_one else 'fails'}; with 8, 32, 128 examples "
              f"CoT {np.round(cot, 3)} ICL {np.round(icl, 3)}")
        found[rival] = float(cot[-1]), float(icl[-1])
    return found


if __name__ == "__main__":
    main()
