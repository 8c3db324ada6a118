"""claims.json is what its schema says, and the schema refuses what it must not be."""

from __future__ import annotations

import copy
import json
from importlib import resources

import pytest
from judged import CLAIMS_JUDGED

from iclab.commands.output import to_text
from iclab.lab.claims import KINDS, RELATIONS, VERDICTS
from iclab.lab.entries import SCALES
from iclab.report.page import about

jsonschema = pytest.importorskip("jsonschema", reason="the test extra is not installed (jsonschema)")
SCHEMA = json.loads(resources.files("iclab.lab").joinpath("claims.schema.json").read_text())


@pytest.fixture
def document():
    text = to_text({"schema": 2, "iclab": "0.1.0", "scale": "quick", "base_seed": 0, "about": about(),
                    "claims": [claim.to_json() for claim in CLAIMS_JUDGED]})
    return json.loads(text)


def check(document):
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_what_is_written_satisfies_the_schema(document):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    check(document)
    document["claims"][0]["parts"][0]["checks"][0] |= {"measured": None, "interval": [None, None]}  # a single seed
    check(document)


def test_the_words_are_those_of_the_package():
    part = SCHEMA["$defs"]["part"]["properties"]
    assert part["kind"]["enum"] == list(KINDS)
    assert part["verdict"]["enum"] == [*VERDICTS, "tight", "not tight"]
    assert set(SCHEMA["$defs"]["check"]["properties"]["relation"]["enum"]) == set(RELATIONS)
    assert SCHEMA["properties"]["scale"]["enum"] == list(SCALES)


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d.update(schema=1), "2 was expected"),
    (lambda d: d.update(more=1), "Additional properties"),
    (lambda d: d["claims"][0].update(more=1), "Additional properties"),
    (lambda d: d["claims"][0]["parts"][0].update(verdict="true"), "is not one of"),
    (lambda d: d["claims"][0]["parts"][0].update(verdict="tight"), "is not one of"),
    (lambda d: d["claims"][0]["parts"][0].update(premises=[]), "non-empty"),
    (lambda d: d["claims"][0]["parts"][0]["premises"][0].update(met=False), "'outside' was expected"),
    (lambda d: d["claims"][0]["parts"][0]["checks"][0].pop("level"), "'level' is a required property"),
    (lambda d: d["claims"][0]["parts"][0]["checks"][0].update(interval=[0]), "too short"),
    (lambda d: d["claims"][0]["parts"][0]["earlier_rules"][0].update(reason=""), "non-empty|too short"),
])
def test_the_schema_refuses(document, change, message):
    changed = copy.deepcopy(document)
    change(changed)
    with pytest.raises(jsonschema.ValidationError, match=message):
        check(changed)
