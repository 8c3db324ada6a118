// The gated linear attention family, any depth: what iclab.models.gated_attention computes, for one prompt.
//   o_t = sum_{i<=t} G_{i,t} p_i s_{i,t},   s_{i,t} = p_i^T W_B^T W_C p_t,   G_{i,t} = b_i d_{i+1} ... d_t
//   P <- P + o from layer to layer; F is the label coordinate of the query's column at the end
import type { Arrays } from "../exhibits";

export interface Spec {
  member: string;
  retention: number;
  temperature: number;
  /** Whether a column reads only itself and those before it. */
  causal: boolean;
  /** Whether a layer's output is divided by the number of columns. */
  normalise: boolean;
}

/** A prompt as a model reads it: rows of `width` numbers, the query's last; its label coordinate, the last, is 0. */
export interface Columns {
  width: number;
  count: number;
  values: Float64Array;
}

/** What gates are held at, one per column, NaN where a gate is free: iclab.clamp("gates", value, where=...). Only what
 *  readers get of that column changes; a gate that is held open does not forget the columns before it. */
export type Held = Float64Array;

/** What the query sees of every column in one layer, its own last. */
export interface Layer {
  scores: Float64Array;
  /** None where a model has no gate. */
  gates: Float64Array | null;
  /** What each column adds to the output. */
  votes: Float64Array;
}

export interface Reading {
  /** The sum of all votes. */
  output: number;
  layers: Layer[];
}

const softplus = (x: number): number => (x > 30 ? x : Math.log1p(Math.exp(x)));
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Decay (as a logarithm) and intake of a column, from its logit w.p, by the member's rule (iclab.models.gates). */
function gate(spec: Spec, logit: number, rate: number): [number, number] {
  switch (spec.member) {
    case "linear": return [0, 1];
    case "retnet": return [Math.log(spec.retention), 1];
    case "mamba": return [-softplus(logit), sigmoid(logit)];
    case "gated_retention": return [-softplus(-logit) / spec.temperature, 1];
    case "mamba2": return [-softplus(logit) * Math.exp(rate), 1];
    case "mamba2_step": return [-softplus(logit) * Math.exp(rate), softplus(logit)];
    default: throw new Error(`no such member: ${spec.member}`);
  }
}

/** The product of a matrix (rows of `width`) and a part of `values`. */
export function product(matrix: Float64Array, width: number, values: Float64Array, at: number): Float64Array {
  const rows = matrix.length / width;
  const found = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let j = 0; j < width; j++) sum += matrix[row * width + j] * values[at + j];
    found[row] = sum;
  }
  return found;
}

/** A row of `values` times a matrix. */
export function rowProduct(values: Float64Array, at: number, matrix: Float64Array, width: number): Float64Array {
  const found = new Float64Array(width);
  for (let row = 0; row < matrix.length / width; row++) {
    const value = values[at + row];
    if (value === 0) continue; // most coordinates of a column are
    for (let j = 0; j < width; j++) found[j] += value * matrix[row * width + j];
  }
  return found;
}

export function dot(a: Float64Array, i: number, b: Float64Array, j: number, length: number): number {
  let sum = 0;
  for (let k = 0; k < length; k++) sum += a[i + k] * b[j + k];
  return sum;
}

/** One layer seen from the query: scores, gates, and their product, by which the query takes up each column. */
interface Seen {
  scores: Float64Array;
  gates: Float64Array;
  weights: Float64Array;
}

/** What the query sees with these gates held. */
function clamped(seen: Seen, held: Held | undefined): Seen {
  held?.forEach((value, i) => {
    if (Number.isNaN(value)) return;
    seen.gates[i] = value;
    seen.weights[i] = value * seen.scores[i];
  });
  return seen;
}

function fromQuery(spec: Spec, layer: Arrays, { width, count, values }: Columns): Seen {
  const query = (count - 1) * width;
  const [scores, gates, weights] = [0, 1, 2].map(() => new Float64Array(count));
  if (spec.member === "gla") {
    const asked = product(layer.W_C, width, values, query);
    const axes = asked.length;
    const left = new Float64Array(axes).fill(1); // of each key axis, what later columns let through
    for (let i = count - 1; i >= 0; i--) {
      const keys = product(layer.W_B, width, values, i * width);
      scores[i] = dot(keys, 0, asked, 0, axes);
      let mean = 0;
      for (let k = 0; k < axes; k++) {
        weights[i] += left[k] * keys[k] * asked[k];
        mean += left[k];
      }
      gates[i] = mean / axes; // its gate has no single value; the mean over the axes is shown
      const logits = product(layer.w, width, values, i * width);
      for (let k = 0; k < axes; k++) left[k] *= sigmoid(logits[k]);
    }
    return { scores, gates, weights };
  }
  const asked = rowProduct(values, query, layer.A, width);
  // Of gates that every channel has for itself the label's, which is the last, is the one that the output feels.
  const row = Math.max(layer.w.length - width, 0);
  let after = 0; // the sum of the log decays of all later columns
  for (let i = count - 1; i >= 0; i--) {
    scores[i] = dot(values, i * width, asked, 0, width);
    const logit = layer.w.length > 0 ? dot(values, i * width, layer.w, row, width) : 0;
    const [decay, intake] = gate(spec, logit, layer.a[0] ?? 0);
    gates[i] = intake * Math.exp(after);
    weights[i] = gates[i] * scores[i];
    after += decay;
  }
  return { scores, gates, weights };
}

/** The columns after a layer, P + o, computed state by state: h_t = d_t h_{t-1} + b_t p_t k_t^T, o_t = h_t q_t. A column
 *  whose gate is held reaches every reader alike, so it is kept in a state of its own, which all read. */
function passed(spec: Spec, layer: Arrays, { width, count, values }: Columns, held: Held | undefined): Float64Array {
  const gla = spec.member === "gla";
  const scale = spec.normalise ? 1 / count : 1;
  const found = Float64Array.from(values);
  const axes = gla ? layer.W_B.length / width : width;
  const state = new Float64Array(width * axes); // h, a row for every channel
  const fixed = new Float64Array(width * axes); // the same of the columns whose gates are held
  const keyOf = (t: number): Float64Array =>
    (gla ? product(layer.W_B, width, values, t * width) : values.subarray(t * width, (t + 1) * width));
  const free = (t: number): boolean => held === undefined || Number.isNaN(held[t]);
  const ones = new Float64Array(axes).fill(1);
  const takeUp = (t: number): void => {
    const key = keyOf(t);
    const logits = layer.w.length > 0 ? product(layer.w, width, values, t * width) : undefined;
    const kept = gla ? logits!.map(sigmoid) : ones;
    const shared = gla ? [0, 1] : gate(spec, logits?.[0] ?? 0, layer.a[0] ?? 0);
    for (let j = 0; j < width; j++) {
      const [decay, intake] = gla || logits === undefined || logits.length === 1 || j === 0
        ? shared : gate(spec, logits[j], layer.a[0] ?? 0);
      const [keep, value] = [Math.exp(decay), free(t) ? intake * values[t * width + j] : 0];
      for (let k = 0; k < axes; k++) state[j * axes + k] = keep * kept[k] * state[j * axes + k] + value * key[k];
    }
  };
  for (let t = 0; t < count; t++) {
    if (free(t)) continue;
    const key = keyOf(t);
    for (let j = 0; j < width; j++) {
      for (let k = 0; k < axes; k++) fixed[j * axes + k] += held![t] * values[t * width + j] * key[k];
    }
  }
  if (!spec.causal) for (let t = 0; t < count; t++) takeUp(t);
  for (let t = 0; t < count; t++) {
    if (spec.causal) takeUp(t);
    const query = gla ? product(layer.W_C, width, values, t * width) : rowProduct(values, t * width, layer.A, width);
    for (let j = 0; j < width; j++) {
      found[t * width + j] += scale * (dot(state, j * axes, query, 0, axes) + dot(fixed, j * axes, query, 0, axes));
    }
  }
  return found;
}

/** Every layer as the query sees it, with the columns that it reads. */
export function layersOf(spec: Spec, weights: Arrays[], columns: Columns, held?: Held): (Seen & { columns: Columns })[] {
  let now = columns;
  return weights.map((layer, n) => {
    const seen = { ...clamped(fromQuery(spec, layer, now), held), columns: now };
    if (n + 1 < weights.length) now = { ...now, values: passed(spec, layer, now, held) };
    return seen;
  });
}

/** The output for the query, read off the label coordinate, in which every layer adds something. */
export function read(spec: Spec & { norm: number }, weights: Arrays[], columns: Columns, held?: Held): Reading {
  const scale = spec.norm * (spec.normalise ? 1 / columns.count : 1);
  let output = 0;
  const layers = layersOf(spec, weights, columns, held).map(({ scores, gates, weights: taken, columns: { width, values } }) => {
    const votes = taken.map((weight, i) => scale * weight * values[i * width + width - 1]);
    for (const vote of votes) output += vote;
    return { scores, gates, votes };
  });
  return { output, layers };
}
