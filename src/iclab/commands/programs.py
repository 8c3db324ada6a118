"""XLA's compiled programs, kept beside the results so that the next run need not compile them again."""

from __future__ import annotations

from pathlib import Path

from iclab.runs.store import Store


def keep_compiled_programs(store: Store) -> None:
    """Have JAX keep them in a local store; a store elsewhere keeps none, and a place that the user chose stays."""
    import jax

    if store.files.local and jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(Path(store.files.root) / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
