import assert from "node:assert/strict";
import { test } from "node:test";
import type { Arrays } from "../src/exhibits";
import { type Columns, read } from "../src/models/gated";
import { attend, decide, readSoftmax, softmax } from "../src/models/softmax";
import { ask, endsOnly, largest, type Steps } from "../src/models/chain";
import { source } from "../src/random";

const draw = source(5, 0);
let slot = 0;
const numbers = (count: number, scale = 1): Float64Array => Float64Array.from({ length: count }, () => scale * (2 * draw(slot++) - 1));
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const near = (found: number, expected: number): void => assert.ok(Math.abs(found - expected) < 1e-10, `${found} is not ${expected}`);

const width = 5;
const count = 7;
const columns: Columns = { width, count, values: numbers(width * count) };
columns.values[width * count - 1] = 0;
const column = (i: number): number[] => Array.from(columns.values.subarray(i * width, (i + 1) * width));

const spec = { member: "mamba", norm: 1, retention: 0.9, temperature: 16, causal: true, normalise: false };

/** The recurrence h <- d h + b v k^T, state by state, with a key of W_B p and a query of W_C p. */
function recurrence(W_B: Float64Array, W_C: Float64Array, decay: (p: number[]) => number[], intake: (p: number[]) => number): number {
  const times = (W: Float64Array, p: number[]): number[] =>
    Array.from({ length: W.length / width }, (_, row) => p.reduce((sum, value, j) => sum + W[row * width + j] * value, 0));
  let state = times(W_B, column(0)).map(() => 0); // of the label's channel
  for (let t = 0; t < count; t++) {
    const p = column(t);
    const key = times(W_B, p);
    const kept = decay(p);
    state = state.map((value, k) => (kept[k] ?? kept[0]) * value + intake(p) * p[width - 1] * key[k]);
  }
  return times(W_C, column(count - 1)).reduce((sum, value, k) => sum + value * state[k], 0);
}

test("a held gate is what the query gets, and leaves the others alone", () => {
  const weights = { A: numbers(width * width), w: numbers(width), a: Float64Array.of() };
  const free = read(spec, [weights], columns).layers[0];
  const held = Float64Array.from({ length: count }, (_, i) => (i === 2 ? 0.7 : NaN));
  const { output, layers: [layer] } = read(spec, [weights], columns, held);
  assert.deepEqual([...layer.gates!], [...free.gates!].map((gate, i) => (i === 2 ? 0.7 : gate)));
  near(output, layer.gates!.reduce((sum, gate, i) => sum + gate * free.scores[i] * columns.values[i * width + width - 1], 0));
});

test("every member is its recurrence", () => {
  const W_B = numbers(width * width);
  const W_C = numbers(width * width);
  const A = new Float64Array(width * width);
  for (let i = 0; i < width; i++) for (let j = 0; j < width; j++) for (let k = 0; k < width; k++) A[i * width + j] += W_C[k * width + i] * W_B[k * width + j];
  const w = numbers(width);
  const a = Float64Array.of(0.3);
  const logit = (p: number[]): number => p.reduce((sum, value, j) => sum + w[j] * value, 0);
  const softplus = (x: number): number => Math.log(1 + Math.exp(x));
  const one = (): number => 1;
  const rules: Record<string, [(p: number[]) => number[], (p: number[]) => number]> = {
    linear: [() => [1], one],
    retnet: [() => [0.9], one],
    mamba: [(p) => [1 - sigmoid(logit(p))], (p) => sigmoid(logit(p))],
    gated_retention: [(p) => [sigmoid(logit(p)) ** (1 / 16)], one],
    mamba2: [(p) => [Math.exp(-softplus(logit(p)) * Math.exp(0.3))], one],
    mamba2_step: [(p) => [Math.exp(-softplus(logit(p)) * Math.exp(0.3))], (p) => softplus(logit(p))],
  };
  for (const [member, [decay, intake]] of Object.entries(rules)) {
    const found = read({ ...spec, member }, [{ A, w: member === "linear" || member === "retnet" ? new Float64Array(0) : w, a }], columns);
    near(found.output, recurrence(W_B, W_C, decay, intake));
    near(found.layers[0].votes.reduce((sum, vote) => sum + vote, 0), found.output);
  }
  const W = numbers(width * width);
  const gates = (p: number[]): number[] => Array.from({ length: width }, (_, k) => sigmoid(p.reduce((sum, value, j) => sum + W[k * width + j] * value, 0)));
  near(read({ ...spec, member: "gla" }, [{ W_B, W_C, w: W, a: new Float64Array(0) }], columns).output,
    recurrence(W_B, W_C, gates, one));
  assert.throws(() => read({ ...spec, member: "other" }, [{ A, w, a }], columns), /no such member: other/);
});

test("a stack is its layers, pair of columns by pair, in every channel", () => {
  const sigmoids = (W: Float64Array, p: number[]): number[] =>
    Array.from({ length: W.length / width }, (_, j) => sigmoid(p.reduce((sum, value, k) => sum + W[j * width + k] * value, 0)));
  for (const [rows, causal, normalise] of [[1, true, false], [width, true, true], [0, false, true]] as const) {
    const member = rows === 0 ? "linear" : "mamba";
    const layers = Array.from({ length: 3 }, () => ({ A: numbers(width * width, 0.5), w: numbers(rows * width), a: new Float64Array(0) }));
    const scale = normalise ? 1 / count : 1;
    let now = Array.from({ length: count }, (_, i) => column(i));
    const added: number[] = [];
    for (const { A, w } of layers) {
      const gates = now.map((p) => sigmoids(w, p));
      const gateOf = (i: number, j: number): number => gates[i][j] ?? gates[i][0];
      const next = now.map((p) => [...p]);
      for (let t = 0; t < count; t++) {
        for (let i = 0; i < count; i++) {
          if (causal && i > t) continue;
          let score = 0;
          for (let a = 0; a < width; a++) for (let b = 0; b < width; b++) score += now[t][a] * A[a * width + b] * now[i][b];
          for (let j = 0; j < width; j++) {
            let G = rows === 0 ? 1 : gateOf(i, j);
            if (rows > 0) for (let k = i + 1; k <= t; k++) G *= 1 - gateOf(k, j);
            next[t][j] += scale * G * score * now[i][j];
          }
        }
      }
      added.push(next[count - 1][width - 1] - now[count - 1][width - 1]);
      now = next;
    }
    const found = read({ ...spec, member, norm: 2, causal, normalise }, layers, columns);
    near(found.output, 2 * now[count - 1][width - 1]);
    found.layers.forEach(({ votes }, n) => near(votes.reduce((sum, vote) => sum + vote, 0), 2 * added[n]));
  }
});

test("the votes of a softmax Transformer sum to its output", () => {
  const weights: Arrays = { A: numbers(width * width), R: numbers(9 * width) };
  const { output, layers: [{ scores, gates, votes }] } = readSoftmax(weights, columns);
  near(output, decide(weights, attend(weights, columns).pooled));
  near(votes.reduce((sum, vote) => sum + vote, 0), output);
  assert.deepEqual([scores[count - 1], Math.abs(votes[count - 1]), gates], [0, 0, null]);
});

test("softmax is shares of 1, of large numbers too", () => {
  const shares = softmax(Float64Array.of(1000, 1001, -1000));
  near(shares[0] + shares[1] + shares[2], 1);
  near(shares[1] / shares[0], Math.E);
});

test("neurons that are not kept say nothing", () => {
  const weights: Arrays = { A: numbers(width * width), R: numbers(8 * width) };
  const { attention, pooled } = attend(weights, columns);
  near(attention.reduce((sum, share) => sum + share, 0), 1);
  assert.equal(attention.length, count - 1);
  const each = Array.from({ length: 8 }, (_, n) => decide(weights, pooled, Uint8Array.from({ length: 8 }, (_, i) => Number(i === n))));
  near(each.reduce((sum, output) => sum + output, 0), decide(weights, pooled));
  assert.ok(each.slice(0, 4).every((output) => output >= 0) && each.slice(4).every((output) => output <= 0));
  assert.equal(decide(weights, pooled, new Uint8Array(8)), 0);
});

test("with weights for step and pattern a step copies the matching output", () => {
  const [dimension, steps] = [3, 2];
  const size = 2 * dimension + steps;
  const W = new Float64Array(size * size);
  for (const i of [0, 1, 2, 6, 7]) W[i * size + i] = 50; // input and step must agree
  const reasoner = { ...spec, kind: "chain" as const, layers: [{ W }] };
  const unit = (i: number): number[] => [0, 1, 2].map((j) => Number(i === j));
  const context: Steps = { count: 4, step: [0, 1, 0, 1], x: Float64Array.from([0, 1, 1, 2].flatMap(unit)), y: Float64Array.from([1, 2, 2, 0].flatMap(unit)) };
  const patterns = Float64Array.from([0, 1, 2].flatMap(unit));
  const first = ask(reasoner, steps, dimension, context, [Float64Array.from(unit(0))], patterns);
  assert.equal(first.answer, 1);
  near(first.attention[0], 1);
  const second = ask(reasoner, steps, dimension, context, [unit(0), unit(1)].map((x) => Float64Array.from(x)), patterns);
  assert.equal(second.answer, 2);
  assert.equal(second.attention.length, 5); // four columns and its own first step
  const ends = endsOnly(context, steps, dimension);
  assert.deepEqual([...ends.y.slice(0, 3)], unit(2));
  assert.deepEqual([...ends.x.slice(3, 6), ...ends.y.slice(3, 6)], [0, 0, 0, 0, 0, 0]);
  assert.equal(largest([1, 3, 3]), 1);
});
