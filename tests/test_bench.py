"""The baseline computes what iclab computes; the benchmark reports all its fields."""

from __future__ import annotations

import json

import numpy as np
import pytest

from iclab import GatedAttention
from iclab.cli import main
from iclab.models.gated_attention import LayerParams
from iclab.models.gates import GateParams
from iclab.papers.mamba.settings import training_prompts

torch = pytest.importorskip("torch", reason="the torch extra is not installed")


@pytest.fixture
def baseline():
    from iclab.bench.torch_mamba import TorchMamba

    torch.manual_seed(0)
    torch.set_num_threads(1)  # several threads would wait for each other when another process uses a core
    return TorchMamba(torch, training_prompts(), 128, 0.1)


def test_the_baselines_loss_is_ours(baseline):
    columns, label = baseline.draw()
    params = (LayerParams(*(w.detach().numpy() for w in (baseline.W_B, baseline.W_C)),
                          GateParams(baseline.w.detach().numpy()[None], np.zeros(0, np.float32))),)
    outputs = [float(GatedAttention().apply(params, c)[0]) for c in columns.numpy()[:16]]
    ours = np.maximum(0.0, 1.0 - label.numpy()[:16] * np.array(outputs)).mean()
    assert baseline.loss(columns[:16], label[:16]).item() == pytest.approx(ours, rel=1e-4)


def test_the_baselines_prompts_have_our_statistics(baseline):
    spec = training_prompts()
    ours = spec.sample(0, 128).numpy()
    columns, label = (part.numpy() for part in baseline.draw())
    for field, expected in ((ours.x, columns[..., :-1]), (ours.y, columns[..., -1]), (ours.label, label)):
        assert field.std() == pytest.approx(expected.std(), rel=0.05)
    query_counts = np.bincount(ours.truth.pattern[:, -1])
    np.testing.assert_array_equal(np.sort((columns[:, -1, :6] > 0).sum(0)), np.sort(query_counts))
    carried = (columns[..., 16:19].sum(-1) > 0)[:, :-1].mean()
    assert carried == pytest.approx(spec.outlier_fraction, abs=0.05)


def test_training_lowers_the_baselines_loss(baseline):
    first = baseline.loss(*baseline.draw()).item()
    for _ in range(200):
        baseline.step()
    assert baseline.loss(*baseline.draw()).item() < 0.5 * first


@pytest.mark.slow
def test_the_report_has_its_fields(capsys, monkeypatch):
    for name, value in (("ENSEMBLE", 4), ("STEPS", 100), ("TORCH_STEPS", 5), ("cores", lambda: 1)):
        monkeypatch.setattr(f"iclab.bench.compare.{name}", value)
    monkeypatch.setattr("iclab.bench.torch_mamba.TorchMamba.compiled_step", lambda self: self.step)
    assert main(["bench", "--json", "--rounds", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    for part in ("speedup_vs_eager", "speedup_vs_compile", "peak_share"):
        assert set(result[part]) == {"single", "independent_32", "shared_32"}
        assert all(value > 0 for value in result[part].values())
