import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLink, toLink } from "../src/link";
import { FIELDS, type Tab, TABS, usual } from "../src/state";

test("a state and its link are the same", () => {
  for (const tab of TABS) {
    for (const [name, field] of Object.entries(FIELDS[tab])) {
      const options = "words" in field ? field.words : [field.least, field.most, field.least + field.step];
      for (const value of options) {
        const state = usual();
        state.tab = tab;
        state.values[tab][name] = value;
        assert.deepEqual(fromLink(toLink(state)), state, `${tab}.${name} = ${value}`);
      }
    }
  }
});

test("changes by hand are in the link", () => {
  const state = usual();
  state.edits = { poison: { 0: true, 3: false, 19: true }, flip: { 7: true }, order: [...Array(20).keys()].reverse(), gates: { 2: 0, 5: 0.35, 19: 1 } };
  assert.deepEqual(fromLink(toLink(state)), state);
  const other = usual();
  other.tab = "thought";
  other.chainEdits = { "0.2": 1, "11.0": 0, "31.1": 9 };
  assert.deepEqual(fromLink(toLink(other)), other);
  const third = usual();
  third.tab = "regression";
  third.outliers = { 0: true, 7: false, 39: true };
  assert.deepEqual(fromLink(toLink(third)), third);
});

test("the usual state has a short link", () => {
  assert.equal(toLink(usual()), "#poison");
});

test("whatever a link says, every field keeps its rule", () => {
  const nonsense = ["", "-1", "1e99", "NaN", "Infinity", "up", "0x10", "1,5", "%", "null", "12.7"];
  for (const tab of TABS) {
    for (const text of nonsense) {
      const query = Object.keys(FIELDS[tab]).map((name) => `${name}=${encodeURIComponent(text)}`).join("&");
      const { values, edits } = fromLink(`#${tab}?${query}&poisoned=${text}&moved=${text}&held=${text}&steps=${text}`);
      for (const [name, field] of Object.entries(FIELDS[tab as Tab])) {
        const value = values[tab as Tab][name];
        if ("words" in field) assert.ok(field.words.includes(value as string));
        else assert.ok(Number(value) >= field.least && Number(value) <= field.most, `${name} = ${value}`);
        if (!("words" in field) && field.step === 1) assert.equal(value, Math.round(value as number));
      }
      assert.ok(Object.keys(edits.poison).every((id) => Number(id) < Number(values.poison.length)));
      assert.ok(Object.values(edits.gates).every((gate) => gate >= 0 && gate <= 1));
    }
  }
  assert.deepEqual(fromLink("#other?a=b"), usual());
});
