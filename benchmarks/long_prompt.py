"""Three layers of Mamba on longer and longer prompts: time and memory grow linearly in the chunked form."""

from __future__ import annotations

import time

import jax

from iclab import Classification, GatedAttention
from iclab.models import forward
from iclab.training import Run
from iclab.training.sgd import begin

if __name__ == "__main__":
    for examples in (4096, 16384, 65536):
        model = GatedAttention(layers=3, form="chunked", normalise=True)
        prompts = Classification(prompt_length=examples, outlier_fraction=0.4)
        params = begin(Run(model=model, prompts=prompts)).params
        prompt = jax.tree.map(lambda field: field[0], prompts.sample(0, 1))
        read = jax.jit(lambda params, prompt, model=model: forward(model, params, prompt)[0])
        read(params, prompt).block_until_ready()
        began = time.perf_counter()
        output = float(read(params, prompt))
        memory = read.lower(params, prompt).compile().memory_analysis().temp_size_in_bytes
        print(f"{examples:6} examples: {time.perf_counter() - began:.3f} s, {memory / 2**20:.0f} MiB, F = {output:.4g}")
