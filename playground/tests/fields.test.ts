import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attacked, Exhibits, PackedModel } from "../src/exhibits";
import { type Field, fieldsOf, MOST_EXAMPLES, PAPERS } from "../src/fields";

const about = { version: "", date: "", seed: 0, report: false, own: true };
const models = [{ steps: [100] }] as PackedModel[];

function attacked(changes: Partial<Attacked> = {}, own: Partial<Attacked["own"]> = {}): Exhibits {
  const prompts: Attacked = { dimension: 20, patterns: 6, irrelevant: 10, patternNorm: 3, irrelevantScale: 0.5, outliers: 3, trainingScale: 1,
    directions: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], own: { length: 20, fraction: 0.37, scale: 40, rule: "flip", placement: "far", decisive: 0.8,
      coefficients: [1, 1], noise: 0, mixtures: null, tasks: [{ name: "training", pairs: null }], depth: 1, words: "", ...own }, ...changes };
  return { about, poison: { prompts, models } };
}

const usual = (fields: Record<string, Field>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([name, { usual: value }]) => [name, value]));

test("the fields of one's own prompts begin as in training, and can be reached", () => {
  const { poison } = fieldsOf(attacked());
  const { length, fraction, scale, rule, placement, decisive, irrelevantScale, tasks, trained, direction } = usual(poison);
  assert.deepEqual([length, fraction, scale, rule, placement, decisive, irrelevantScale, tasks, trained, direction],
    [20, 0.37, 40, "flip", "far", 0.8, 0.5, "training", 0, "training"]);
  for (const field of Object.values(poison)) {
    if ("words" in field) assert.ok(field.words.includes(field.usual));
    else assert.ok(field.least <= field.usual && field.usual <= field.most);
  }
  assert.equal(poison.layer, undefined);
  assert.equal(usual(fieldsOf(attacked({}, { depth: 3 })).poison).layer, 3);
});

test("what prompts do not have is no field", () => {
  const none = fieldsOf(attacked({ outliers: 0, irrelevant: 0, patterns: 2, directions: [] })).poison;
  assert.deepEqual(Object.keys(none).sort(), ["length", "seed", "tasks", "trained"]);
  assert.ok("words" in none.tasks);
  const one = fieldsOf(attacked({ outliers: 1, directions: [[1]] })).poison.direction;
  assert.deepEqual("words" in one && one.words, ["training", "against"]);
});

test("long prompts are cut, short ones are not stretched, unknown rules become known ones", () => {
  assert.equal(usual(fieldsOf(attacked({}, { length: 500 })).poison).length, MOST_EXAMPLES);
  assert.equal(usual(fieldsOf(attacked({}, { length: 2 })).poison).length, 2);
  assert.equal(usual(fieldsOf(attacked({}, { rule: "spite" })).poison).rule, "flip");
});

test("the papers' fields stay as they are", () => {
  assert.equal(fieldsOf({ about: { ...about, own: false } }), PAPERS);
});
