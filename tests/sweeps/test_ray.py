"""The same packs as Ray tasks: equal numbers, and death of a worker or of a node costs nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import sabotage

from iclab import IclabError, Store, Sweep
from iclab.sweeps.engines import run_sweep

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of two nodes on this machine, one core each."""
    from ray.cluster_utils import Cluster

    marker = tmp_path_factory.mktemp("ray") / "died"
    two_nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = two_nodes.add_node(num_cpus=1)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ray.init(address=two_nodes.address, log_to_driver=False, logging_level="ERROR",
             runtime_env={"env_vars": {"PYTHONPATH": path, "ICLAB_TEST_MARKER": str(marker)}})
    yield second, marker
    ray.shutdown()
    two_nodes.shutdown()


def a_sweep(run, measure, seeds=2):
    return Sweep(base=run, grid={"prompts.pattern_norm": [1.0, 1.5, 2.0, 2.5, 3.0]}, seeds=seeds, prompts=500,
                 measure=("error", "loss", measure))


def same_numbers(results, expected):
    assert results.frame.select("error", "loss").equals(expected.frame.select("error", "loss"))


@pytest.mark.slow
def test_a_dead_worker_is_replaced(cluster, tiny_run, tmp_path):
    _, marker = cluster
    sweep = a_sweep(tiny_run, sabotage.die_once)
    marker.unlink(missing_ok=True)
    results = run_sweep(sweep, store=tmp_path, engine="ray")
    assert marker.exists()
    assert results.counts == {"trained": 10, "stuck": 0, "diverged": 0, "failed": 0}
    same_numbers(results, a_sweep(tiny_run, sabotage.linger).run())
    assert len(Store(tmp_path).rows()) == 10


@pytest.mark.slow
def test_a_sweep_survives_a_dead_node(cluster, tiny_run, tmp_path):
    second, _ = cluster
    sweep = a_sweep(tiny_run, sabotage.linger, seeds=4)
    results: list = []
    work = threading.Thread(target=lambda: results.append(run_sweep(sweep, store=tmp_path, engine="ray")))
    work.start()
    deadline = time.monotonic() + 60
    while not Store(tmp_path).rows() and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in second.all_processes.values():
        for one in process:
            os.kill(one.process.pid, signal.SIGKILL)
    work.join(timeout=120)
    assert results, "the sweep did not end"
    assert results[0].counts["trained"] == 20
    same_numbers(results[0], a_sweep(tiny_run, sabotage.linger, seeds=4).run())


def test_what_ray_cannot_do_is_refused(tiny_run, monkeypatch):
    sweep = Sweep(base=tiny_run, prompts=500)
    with pytest.raises(IclabError, match="store must be a place that other processes can reach"):
        run_sweep(sweep, store="memory://x", engine="ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(IclabError, match=r"address must be that of a running Ray cluster, got '127.0.0.1:1'"):
        run_sweep(sweep, engine="ray", address="127.0.0.1:1")


def test_a_cluster_that_asks_for_a_token_is_told_from_one_that_is_not_there(tiny_run, monkeypatch):
    def refuse(**options):
        raise ray.exceptions.AuthenticationError("the token is not valid")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(IclabError, match=r"lets you in, got 'auto', which asks for another token.*RAY_AUTH_TOKEN"):
        run_sweep(Sweep(base=tiny_run, prompts=500), engine="ray", address="auto")
