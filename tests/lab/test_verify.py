"""A run against a reference: the same numbers agree, another seed agrees within noise, a broken model is caught."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from iclab import IclabError
from iclab.cli import main
from iclab.lab.claims import Check, Claim, PartResult, judged
from iclab.lab.estimates import Mean, Rate
from iclab.lab.verify import SCHEMA, compare, read_claims, reference_for, shipped_beyond, shipped_reference


def document(seed, broken=False, claims=12):
    """Claims of models whose true error is 0.02, or 0.3 for the last one if it is broken; measured with noise."""
    rng = np.random.default_rng(seed)
    results = []
    for i in range(claims):
        error = 0.3 if broken and i == claims - 1 else 0.02
        rates = rng.binomial(2_000, np.clip(rng.normal(error, 0.005, 6), 0, 1)) / 2_000
        checks = judged([Check("error", Rate(rates, 2_000), "<=", 0.05), Check("mass", Mean(rng.normal(1, 0.1, 6)),
                                                                              ">=", 0.5)])
        part = PartResult("figure", "figure 1", "It is small.", [], checks)
        results.append(Claim(f"a.c{i}", "s", [part], {}, [0], [], "full").to_json())
    return json.loads(json.dumps({"schema": SCHEMA, "iclab": "0", "scale": "full", "base_seed": seed, "about": {},
                                  "claims": results}))


def test_a_run_agrees_with_itself():
    comparison = compare(document(0), document(0))
    assert comparison.last_line == "24 checks compared, 0 differ"
    assert {check.status for check in comparison.checks} == {"inside"}
    assert not comparison.verdicts
    assert not comparison.not_run
    assert not comparison.new


def test_other_seeds_agree_within_noise():
    differing = [len(compare(document(0), document(seed)).differing) for seed in range(1, 30)]
    assert sum(differing) / (24 * len(differing)) < 0.03


def test_a_broken_model_is_caught_and_named():
    comparison = compare(document(0), document(1, broken=True))
    assert "a.c11" in {check.claim for check in comparison.differing if check.name == "error <="}
    assert ("a.c11", "figure 1", "holds", "fails") in comparison.verdicts


def test_what_cannot_be_compared_is_named():
    part = document(0)
    del part["claims"][3]
    comparison = compare(document(0), part)
    assert comparison.not_run == ["a.c3 / figure 1 / error <=", "a.c3 / figure 1 / mass >="]
    assert compare(part, document(0)).new == comparison.not_run


def test_claims_beyond_are_compared_where_a_run_has_them():
    usual, beyond = shipped_reference("full"), shipped_beyond()
    both = usual | {"claims": usual["claims"] + beyond["claims"]}
    for run in (usual, both):
        comparison = compare(reference_for(run), run)
        assert {check.claim for check in comparison.checks} == {claim["id"] for claim in run["claims"]}
        assert not comparison.differing
        assert not comparison.not_run
        assert not comparison.new
    quick = shipped_reference("quick")
    assert reference_for(quick) == quick


def test_missing_numbers_agree_only_with_missing_numbers():
    missing = document(0)
    missing["claims"][0]["parts"][0]["checks"][0].update(measured=None, interval=[None, None])
    assert len(compare(document(0), missing).differing) == 1
    assert not compare(missing, copy.deepcopy(missing)).differing


@pytest.mark.parametrize("content", ["[]", "{", '{"schema": 1, "claims": []}', '{"schema": 2}', "3"])
def test_another_file_is_refused_in_one_line(content):
    with pytest.raises(IclabError, match="claims must be a claims"):
        read_claims(content, "claims")


def test_the_command_compares_and_exits_by_what_it_found(tmp_path, capsys):
    for name, content in (("reference", document(0)), ("same", document(0)), ("broken", document(1, True))):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    reference = ["--reference", str(tmp_path / "reference.json")]
    assert main(["verify", str(tmp_path / "same.json"), *reference]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "24 checks compared, 0 differ"
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(tmp_path / "broken.json"), *reference])
    assert stop.value.code == 1
    output = capsys.readouterr().out
    assert "a.c11" in output
    assert output.splitlines()[-1].startswith("24 checks compared, ")
    assert main(["verify", str(tmp_path / "nothing.json")]) == 2
    (tmp_path / "odd.json").write_text('{"schema": 2, "claims": [{"id": 3}]}')
    assert main(["verify", str(tmp_path / "odd.json"), *reference]) == 2
    assert "must follow the schema" in capsys.readouterr().err
