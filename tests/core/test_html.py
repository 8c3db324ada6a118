"""What objects show in a notebook."""

from __future__ import annotations

import numpy as np
import polars as pl

from iclab import Classification, GatedAttention, Run, Training, train
from iclab.core.html import chart, table
from iclab.lab.claims import Check, Claim, PartResult, judged
from iclab.lab.estimates import Mean
from iclab.prompts import Chain
from iclab.prompts.prompt import Prompt
from iclab.sweeps.results import TrialTable


def test_a_prompt_is_a_row_of_its_examples():
    batch = Classification(outlier_fraction=0.6).sample(0, 5).numpy()
    shown = batch._repr_html_()
    assert shown.count("<span") == 21
    assert shown.count('title="poisoned"') == batch.truth.outlier[0].sum()
    assert "the first of 5 prompts" in shown
    assert f"the query's label is {batch.label[0]:+g}".replace("'", "&#x27;") in shown
    one = Prompt(batch.x[1], batch.y[1], batch.label[1], None)._repr_html_()
    assert one.count("<span") == 21
    assert "poisoned" not in one


def test_a_chain_shows_itself_too():
    assert Chain().sample(0, 2)._repr_html_().count("<span") > 3


def test_a_trained_model_shows_its_loss_and_its_end():
    training = Training(steps=20, batch_size=8, record_every=5)
    shown = train(Run(model=GatedAttention(), prompts=Classification(), training=training))._repr_html_()
    assert "GatedAttention" in shown
    assert shown.count("<polyline") == 1
    assert len(shown.partition('points="')[2].partition('"')[0].split()) == 4


def test_a_claim_shows_its_parts_escaped():
    part = PartResult("figure", "figure <1>", "It is small.", [], judged([Check("error", Mean([0.1, 0.2]), "<=", 9.0)]))
    shown = Claim("a.b", "s", [part], {}, [0], [], "full")._repr_html_()
    assert "figure &lt;1&gt;" in shown
    assert "holds" in shown


def test_results_show_their_frame():
    results = TrialTable()
    results.frame = pl.DataFrame({"error": [0.25]})
    assert "0.25" in results._repr_html_()


def test_a_chart_leaves_out_what_is_no_number():
    assert len(chart([1, 2, 3], [1.0, np.nan, 0.5], "loss").partition('points="')[2].partition('"')[0].split()) == 2
    assert chart([1], [1.0], "loss") == ""
    assert "&lt;b&gt;" in table(("<b>",), [])
