import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attack, drawAttacked, drawMixed, edited, floor, newPatterns, unit } from "../src/prompts/classification";
import { answerOdds, drawChains, votes } from "../src/prompts/chains";
import { shuffled, source } from "../src/random";
import { untouched } from "../src/state";
import { interval } from "../src/running";

const prompts = { dimension: 19, patterns: 6, irrelevant: 10, patternNorm: 3, irrelevantScale: 1.2, outliers: 3, trainingScale: 2,
  directions: [[0.7, 0.6, -0.4], [0.4, 0.7, -0.6], [-0.7, 0.5, 0.5]].map(unit) };
const attack: Attack = { length: 20, fraction: 0.5, scale: 3, direction: "paper", own: [1, 0, 0], rule: "flip", placement: "random" };
const MANY = 4000;
const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const near = (found: number, expected: number, allowed: number): void => assert.ok(Math.abs(found - expected) < allowed, `${found} is not ${expected}`);

test("random numbers are even and alone", () => {
  const draws = Array.from({ length: MANY }, (_, i) => source(3, i)(0));
  near(mean(draws), 0.5, 0.02);
  near(mean(draws.map((u) => u * u)), 1 / 3, 0.02);
  near(mean(draws.map((u, i) => (u - 0.5) * (source(3, i)(1) - 0.5))), 0, 0.006); // neighbours in a prompt
  near(mean(draws.map((u, i) => (u - 0.5) * (source(3, i + 1)(0) - 0.5))), 0, 0.006); // neighbouring prompts
  near(mean(draws.map((u, i) => (u - 0.5) * (source(4, i)(0) - 0.5))), 0, 0.006); // neighbouring seeds
  const counts = Array.from({ length: 6 }, () => 0);
  for (let i = 0; i < MANY; i++) counts[["012", "021", "102", "120", "201", "210"].indexOf(shuffled(source(1, i), 5, 3).join(""))] += 1;
  for (const count of counts) near(count / MANY, 1 / 6, 0.03);
});

test("attacked prompts have the paper's distribution", () => {
  const drawn = Array.from({ length: MANY }, (_, i) => drawAttacked(attack, prompts, source(9, i)));
  near(mean(drawn.map(({ examples }) => mean(examples.map((example) => Number(example.outlier))))), 0.5, 0.01);
  near(mean(drawn.map(({ examples }) => mean(examples.map((example) => Number(example.same))))), 0.5, 0.01);
  near(mean(drawn.map(({ truth }) => truth)), 0, 0.06);
  for (let pattern = 0; pattern < 6; pattern++) near(mean(drawn.map(({ query }) => Number(query.pattern === pattern))), 1 / 6, 0.03);
  for (const { examples, query, truth } of drawn.slice(0, 200)) {
    assert.ok(!query.outlier && query.label === 0 && query.clean === truth);
    for (const example of examples) {
      assert.equal(example.clean, example.same ? truth : -truth);
      assert.equal(example.label, example.outlier ? -example.clean : example.clean);
      assert.ok((example.pattern === query.pattern) === example.same && Math.abs(example.kappa) <= 1.2);
    }
  }
});

test("more poison keeps what was poisoned, and hands put it back", () => {
  const draw = source(2, 0);
  const [few, many] = [0.3, 0.7].map((fraction) => drawAttacked({ ...attack, fraction }, prompts, draw));
  few.examples.forEach((example, i) => {
    assert.ok(!example.outlier || many.examples[i].outlier);
    assert.equal(example.kappa, many.examples[i].kappa);
  });
  const changed = { ...untouched(), poison: { [few.examples[0].id]: !few.examples[0].outlier }, order: [5, 4] };
  const by = edited(few, changed, attack, draw);
  assert.deepEqual(by.examples.slice(0, 2).map((example) => example.id), [5, 4]);
  assert.equal(by.examples.length, 20);
  assert.equal(by.examples.find((example) => example.id === few.examples[0].id)!.outlier, !few.examples[0].outlier);
  assert.deepEqual(edited(few, untouched(), attack, draw), few);
});

test("in domain no task is one of training's", () => {
  const mixing = { length: 20, decisive: 1, irrelevantScale: 5, sum: 1, outside: false };
  const tasks = new Set<string>();
  for (let i = 0; i < MANY; i++) {
    const { examples, query, truth } = drawMixed(mixing, { ...prompts, irrelevant: 24 }, source(1, i));
    const partner = examples.find((example) => !example.same);
    if (partner === undefined) continue; // one prompt in a million
    const [a, b] = truth > 0 ? [query.pattern, partner.pattern] : [partner.pattern, query.pattern];
    assert.notEqual(b, (a + 1) % 6); // training says +1 to a pattern and -1 to the next
    tasks.add(`${a},${b}`);
  }
  assert.equal(tasks.size, 24);
  const few = Array.from({ length: MANY }, (_, i) => drawMixed({ ...mixing, decisive: 0.4 }, prompts, source(2, i)));
  near(mean(few.map(({ examples }) => mean(examples.map((example) => Number(example.same))))), 0.2, 0.01);
  for (const sum of [-1.28, 0, 0.5, 1.28]) {
    for (const row of newPatterns(sum)) near(Math.hypot(...row), 1, 2e-3);
    near(newPatterns(sum)[0].reduce((total, value) => total + value, 0), sum, 1e-12);
  }
});

test("the floor and its neighbours", () => {
  near(floor(20, 0.8), 0.8 ** 20 / 2, 1e-15);
  near(floor(10, 0.5, 0.6), 0.7 ** 10 / 2, 1e-15);
  const z2 = 1.96 ** 2;
  near(interval(0, 1000)[0], 0, 1e-12);
  near(interval(0, 1000)[1], z2 / (1000 + z2), 1e-12);
  near(interval(1, 1000)[1], 1, 1e-12);
  near(interval(0.5, 10000)[1], 0.5098, 1e-4);
});

test("chains go wrong as often and where they should", () => {
  const slips = { length: 10, matching: 0.8, right: 0.7, pile: 0.9 };
  const counts = Array.from({ length: 10 }, () => 0);
  let started = 0;
  for (let i = 0; i < MANY; i++) {
    const { examples, order, truth } = drawChains(slips, 10, 3, source(6, i));
    assert.deepEqual(truth.map((pattern) => order.indexOf(pattern)), [0, 1, 3, 6]);
    for (const { tokens, matches } of examples) {
      started += Number(matches);
      counts[(order.indexOf(tokens[3]) - order.indexOf(tokens[0]) + 4) % 10] += 1; // six places on is right
    }
  }
  near(started / (10 * MANY), 0.8, 0.01);
  answerOdds(slips, 10, 3).forEach((chance, off) => near(counts[off] / (10 * MANY), chance, 0.01));
  near(answerOdds(slips, 10, 3).reduce((sum, chance) => sum + chance, 0), 1, 1e-12);
});

test("the vote follows the examples", () => {
  const clean = drawChains({ length: 30, matching: 0.8, right: 1, pile: 0 }, 10, 3, source(1, 1));
  assert.deepEqual(votes(clean), { chain: clean.truth.slice(1), direct: clean.truth[3] });
  const broken = Object.fromEntries(clean.examples.flatMap((example, i) => (example.matches ? [[`${i}.2`, 1]] : [])));
  const wrong = votes(drawChains({ length: 30, matching: 0.8, right: 1, pile: 0 }, 10, 3, source(1, 1), broken));
  assert.deepEqual(wrong.chain.slice(0, 2), clean.truth.slice(1, 3));
  assert.notEqual(wrong.direct, clean.truth[3]);
});
