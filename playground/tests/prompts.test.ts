import assert from "node:assert/strict";
import { test } from "node:test";
import type { Own } from "../src/exhibits";
import { type Attack, columnsOf, directionsOf, drawAttacked, drawMixed, edited, floor, newPatterns, unit } from "../src/prompts/classification";
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

test("the user's own prompts have the structure that they say", () => {
  const own = { length: 10, fraction: 0.3, scale: 2, rule: "random", placement: "random", decisive: 0.6, coefficients: [1, 2] as [number, number],
    noise: 0.5, mixtures: null, depth: 1, words: "", tasks: [{ name: "training", pairs: [[0, 1], [2, 3]] as [number, number][] }, { name: "all", pairs: null }] };
  const mine = { ...prompts, own, trainingScale: 1 };
  const asked: Attack = { ...attack, length: 10, fraction: 0.3, rule: "random", direction: "training", tasks: "training", decisive: 0.6, irrelevantScale: 0 };
  const drawn = Array.from({ length: MANY }, (_, i) => drawAttacked(asked, mine, source(4, i)));
  const each = drawn.flatMap(({ examples }) => examples);
  near(mean(each.map((example) => Number(example.same))), 0.3, 0.01);
  near(mean(each.map((example) => Number(example.outlier))), 0.3, 0.01);
  near(mean(each.map((example) => example.lambda!)), 1.5, 0.01);
  near(mean(each.map((example) => Math.hypot(...example.noise!) ** 19)), 0.5 ** 19 / 2, 1e-7); // evenly in a ball of 19 dimensions
  near(mean(each.map((example) => example.noise![3])), 0, 0.003);
  for (const { examples, query, partner, truth } of drawn.slice(0, 300)) {
    const task = (truth > 0 ? [query.pattern, partner] : [partner, query.pattern]).join();
    assert.ok(["0,1", "2,3"].includes(task));
    assert.ok(query.same && !query.outlier && query.label === 0 && query.noise !== undefined);
    for (const example of examples) assert.ok(example.kappa === 0 && (example.same === (example.pattern === query.pattern)));
  }
  const unnamed = each.filter((_, i) => ![drawn[Math.floor(i / 10)].query.pattern, drawn[Math.floor(i / 10)].partner].includes(each[i].pattern));
  near(unnamed.length / each.length, 0.4, 0.01);
  near(mean(unnamed.map((example) => example.clean)), 0, 0.02);
  const all = new Set(Array.from({ length: MANY }, (_, i) => drawAttacked({ ...asked, tasks: "all" }, mine, source(5, i))).map(({ query, partner }) => `${query.pattern},${partner}`));
  assert.equal(all.size, 30);
});

test("against training is against all of its outliers", () => {
  const against = directionsOf({ ...attack, direction: "against" }, { ...prompts, directions: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], own: {} as Own });
  assert.equal(against.length, 1);
  for (const value of against[0]) near(value, -Math.sqrt(1 / 3), 1e-12);
});

test("patterns lie along the basis", () => {
  const basis = Float64Array.of(0.6, 0.8, 0.8, -0.6);
  const packed = `8${Buffer.from(basis.buffer).toString("base64")}`;
  const inputs = { dimension: 2, patterns: 2, irrelevant: 0, patternNorm: 3, basis: packed };
  const token = { id: 0, pattern: 1, same: true, irrelevant: 0, kappa: 0, outlier: false, direction: [], clean: 1, label: 1, lambda: 2 };
  const { values } = columnsOf({ examples: [token], query: { ...token, pattern: 0, label: 0 }, partner: 0, truth: 1 }, inputs, 0, 1.5);
  [4.8, -3.6, 1.5, 3.6, 4.8, 0].forEach((value, i) => near(values[i], value, 1e-12));
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

test("chains of two patterns, of many steps and of many patterns", () => {
  const slips = { length: 12, matching: 0.5, right: 0.5, pile: 0.3 };
  for (const [patterns, steps] of [[2, 1], [12, 9], [100, 2]]) {
    near(answerOdds(slips, patterns, steps).reduce((sum, chance) => sum + chance, 0), 1, 1e-12);
    const { examples, order } = drawChains(slips, patterns, steps, source(8, 1));
    assert.equal(new Set(order).size, patterns);
    for (const { tokens } of examples) assert.ok(tokens.length === steps + 1 && tokens.every((one) => one >= 0 && one < patterns));
  }
});
