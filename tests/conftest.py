"""Shared fixtures."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import jax
import pytest
from hypothesis import settings

from iclab import Classification, GatedAttention, Run, Training, train_many
from iclab.papers.mamba.settings import training_prompts

# All workers and processes share their compiled programs; workers inherit the folder from the controller.
CONFIGURED = os.environ.get("JAX_COMPILATION_CACHE_DIR")
PROGRAMS = CONFIGURED or str(Path(tempfile.gettempdir()) / f"iclab-tests-{os.getpid()}")
os.environ["JAX_COMPILATION_CACHE_DIR"] = PROGRAMS
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
jax.config.update("jax_compilation_cache_dir", PROGRAMS)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
settings.register_profile("iclab", deadline=None, max_examples=5)
settings.load_profile("iclab")


COMPILED_AS_FOR_USERS = {"test_compile_times.py", "test_examples.py"}
"""Files whose tests compile their programs with all of XLA's optimisations, as the slow tests do. All others compile
many small programs and run each for a moment: there optimisations cost more than they gain."""
LONGEST = ("test_pages.py", "test_entries_icl.py", "test_ray.py", "test_processes.py", "test_entries.py",
           "test_examples.py", "test_kernel_looks.py", "test_conformance.py", "test_tracing.py", "test_cot_claims.py",
           "test_reproduce.py", "test_gated_kernel.py", "test_transformers.py", "test_modules.py", "test_convert.py",
           "test_compiling.py", "test_playground_trained.py", "test_playground_own.py", "test_notebooks.py",
           "test_entries_cot.py", "test_entries_beyond.py", "test_cli.py")
"""The slowest files, which run first so that both workers finish together."""


def pytest_sessionfinish(session):
    """Remove the folder of compiled programs if this session created it."""
    if CONFIGURED is None:
        shutil.rmtree(PROGRAMS, ignore_errors=True)


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_terminal_summary(terminalreporter):
    """Print how many cases each test tried, if it recorded them with `record_property("cases", number)`."""
    counts = [(value, report.nodeid) for reports in terminalreporter.stats.values() for report in reports
              for name, value in getattr(report, "user_properties", ()) if name == "cases" and report.when == "call"]
    if counts:
        terminalreporter.section("cases")
    for number, test in counts:
        terminalreporter.write_line(f"{number:7} cases  {test}")


@pytest.fixture(autouse=True)
def compiled_cheaply(request):
    """Compile a test's programs, but not those of wider fixtures, without optimisations."""
    cheaply = request.path.name not in COMPILED_AS_FOR_USERS and not request.node.get_closest_marker("slow")
    jax.config.update("jax_disable_most_optimizations", cheaply)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def float64():
    """Everything in double precision for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def tiny_run() -> Run:
    """A run of about a second, at a rate at which every member converges, so that trainings can be compared."""
    prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2,
                             prompt_length=6, outlier_fraction=0.4)
    return Run(model=GatedAttention(member="mamba"), prompts=prompts,
               training=Training(steps=30, batch_size=16, learning_rate=0.1, record_every=10))


@pytest.fixture(scope="session")
def trained_mamba():
    """Four seeds of the paper's one-layer Mamba, trained briefly: enough to filter outliers."""
    run = Run(model=GatedAttention(member="mamba"), prompts=training_prompts(),
              training=Training(steps=3000, learning_rate=1.0, record_every=500))
    return train_many([run.seeded(seed) for seed in range(4)])


@pytest.fixture(scope="session")
def trained_linear():
    """Four seeds of the linear Transformer on the same prompts."""
    run = Run(model=GatedAttention(member="linear"), prompts=training_prompts(),
              training=Training(steps=1000, learning_rate=0.1, record_every=500))
    return train_many([run.seeded(seed) for seed in range(4)])
