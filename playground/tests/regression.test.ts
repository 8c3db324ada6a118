import assert from "node:assert/strict";
import { test } from "node:test";
import { heldGates } from "../src/models/held";
import { cleanStepRate, descentStep, huber, ridge } from "../src/models/regressors";
import { drawNumbers, numberColumns, type Numbers, poisonedByHand, type Poisoning } from "../src/prompts/regression";
import { source } from "../src/random";
import { stopAt } from "../src/views/order";

const prompts: Numbers = { dimension: 7, signals: 4, constant: true, outliers: 2, noise: 0.1, nonzero: 2 };
const now: Poisoning = { length: 30, fraction: 0.4, scale: 2, size: 3, rule: "random", placement: "random" };
const near = (found: number, expected: number, within = 1e-9): void => assert.ok(Math.abs(found - expected) < within, `${found} is not ${expected}`);

test("more poison leaves the others as they were, and longer prompts the first examples", () => {
  const [few, many] = [0.2, 0.7].map((fraction) => drawNumbers({ ...now, fraction }, prompts, source(3, 1)).examples);
  few.forEach((example, i) => {
    assert.ok(!example.outlier || many[i].outlier);
    assert.deepEqual(example.signal, many[i].signal);
    if (!many[i].outlier) assert.equal(many[i].label, example.label);
  });
  const longer = drawNumbers({ ...now, length: 40 }, prompts, source(3, 1));
  const shorter = drawNumbers(now, prompts, source(3, 1));
  assert.deepEqual(longer.examples.slice(0, 30), shorter.examples);
  assert.deepEqual(longer.query, shorter.query);
});

test("labels follow the rule, inputs carry the mark", () => {
  for (const [rule, label] of [["flip", (clean: number) => -clean], ["target", () => 1]] as const) {
    for (const one of drawNumbers({ ...now, rule }, prompts, source(1, 0)).examples) assert.equal(one.label, one.outlier ? label(one.clean) : one.clean);
  }
  const prompt = drawNumbers(now, prompts, source(1, 0));
  const { width, values } = numberColumns(prompt, prompts, now.scale, 2);
  prompt.examples.forEach((one, i) => {
    const marks = [...values.subarray(i * width + 5, i * width + 7)];
    assert.deepEqual(marks, [0, 1].map((direction) => (one.outlier && direction === one.direction ? 2 : 0)));
    assert.equal(values[i * width + 4], 1);
    assert.equal(values[i * width + width - 1], 2 * one.label);
    if (one.outlier) assert.equal(Math.abs(one.label), 3);
  });
  assert.equal(values[values.length - 1], 0);
});

test("a hand poisons and cleans", () => {
  const prompt = drawNumbers(now, prompts, source(2, 0));
  const all = poisonedByHand(prompt, Object.fromEntries(prompt.examples.map(({ id }) => [id, true])), now);
  const none = poisonedByHand(prompt, Object.fromEntries(prompt.examples.map(({ id }) => [id, false])), now);
  assert.ok(all.examples.every(({ label }) => Math.abs(label) === 3));
  assert.ok(none.examples.every(({ label, clean }) => label === clean));
  assert.deepEqual(poisonedByHand(prompt, {}, now), prompt);
});

test("on clean examples without noise every regression finds the task", () => {
  const exact: Numbers = { ...prompts, noise: 0 };
  const prompt = drawNumbers({ ...now, fraction: 0 }, exact, source(4, 0));
  const columns = numberColumns(prompt, exact, 2, 1);
  const used = new Uint8Array(30).fill(1);
  near(ridge(columns, used, 1e-10), prompt.query.clean, 1e-6);
  near(huber(columns, 1e-10, 1e-3), prompt.query.clean, 1e-6);
  const [twice, once] = [2, 1].map((rate) => descentStep(columns, used, rate));
  near(twice, 2 * once);
  assert.ok(cleanStepRate(1000, 0, 1, 0) > 0.99);
  assert.ok(cleanStepRate(10, 0.5, 8, 1) < 0.5);
});

test("ridge leaves out what it is told to", () => {
  const prompt = drawNumbers(now, prompts, source(6, 0));
  const columns = numberColumns(prompt, prompts, 2, 1);
  const clean = Uint8Array.from(prompt.examples, ({ outlier }) => (outlier ? 0 : 1));
  const rest = { ...prompt, examples: prompt.examples.filter(({ outlier }) => !outlier) };
  near(ridge(columns, clean, 0.04), ridge(numberColumns(rest, prompts, 2, 1), new Uint8Array(rest.examples.length).fill(1), 0.04));
});

test("gates are held where the visitor says, the query's never", () => {
  const examples = [{ id: 0, outlier: true }, { id: 1, outlier: false }, { id: 2, outlier: true }];
  assert.equal(heldGates(examples, "none", 1), undefined);
  assert.deepEqual(heldGates(examples, "poisoned", 0.3), Float64Array.of(0.3, NaN, 0.3, NaN));
  assert.deepEqual(heldGates(examples, "clean", 0.3, { 0: 0.9 }), Float64Array.of(0.9, 0.3, NaN, NaN));
  assert.deepEqual(heldGates(examples, "examples", 1, { 2: 0 }), Float64Array.of(1, 1, 0, NaN));
});

test("a step of training lies between the stops around it", () => {
  const stops = [0, 4, 8, 100];
  assert.deepEqual([0, 2, 4, 54, 100].map((step) => stopAt(step, stops)), [0, 0.5, 1, 2.5, 3]);
});
