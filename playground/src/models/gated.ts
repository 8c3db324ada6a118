// The gated linear attention family, one layer: what iclab.models.gated_attention computes, for one prompt.
//   F = sum_i G_i y_i s_i,   s_i = p_i^T W_B^T W_C p_query,   G_i = b_i d_{i+1} ... d_query
import type { Arrays } from "../exhibits";

export interface Spec {
  key: string;
  retention: number;
  temperature: number;
}

/** A prompt as a model reads it: rows of `width` numbers, the query's last; its label coordinate, the last, is 0. */
export interface Columns {
  width: number;
  count: number;
  values: Float64Array;
}

export interface Reading {
  output: number;
  /** Of every column, the query's own last. */
  scores: Float64Array;
  gates: Float64Array;
  /** What each column adds to the output. */
  votes: Float64Array;
}

const softplus = (x: number): number => (x > 30 ? x : Math.log1p(Math.exp(x)));
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Decay (as a logarithm) and intake of a column, from its logit w.p, by the member's rule (iclab.models.gates). */
function gate(spec: Spec, logit: number, rate: number): [number, number] {
  switch (spec.key) {
    case "linear": return [0, 1];
    case "retnet": return [Math.log(spec.retention), 1];
    case "mamba": return [-softplus(logit), sigmoid(logit)];
    case "gated_retention": return [-softplus(-logit) / spec.temperature, 1];
    case "mamba2": return [-softplus(logit) * Math.exp(rate), 1];
    case "mamba2_step": return [-softplus(logit) * Math.exp(rate), softplus(logit)];
    default: throw new Error(`no such member: ${spec.key}`);
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

export function read(spec: Spec, weights: Arrays, columns: Columns): Reading {
  const { width, count, values } = columns;
  const query = (count - 1) * width;
  const scores = new Float64Array(count);
  const gates = new Float64Array(count);
  const votes = new Float64Array(count);
  let output = 0;
  const voted = (i: number, reached: number): void => {
    votes[i] = reached * values[i * width + width - 1];
    output += votes[i];
  };
  if (spec.key === "gla") {
    const asked = product(weights.W_C, width, values, query);
    const axes = asked.length;
    const left = new Float64Array(axes).fill(1); // of each key axis, what later columns let through
    for (let i = count - 1; i >= 0; i--) {
      const keys = product(weights.W_B, width, values, i * width);
      scores[i] = dot(keys, 0, asked, 0, axes);
      let reached = 0;
      let mean = 0;
      for (let k = 0; k < axes; k++) {
        reached += left[k] * keys[k] * asked[k];
        mean += left[k];
      }
      gates[i] = mean / axes; // its gate has no single value; the mean over the axes is shown
      voted(i, reached);
      const logits = product(weights.w, width, values, i * width);
      for (let k = 0; k < axes; k++) left[k] *= sigmoid(logits[k]);
    }
  } else {
    const asked = rowProduct(values, query, weights.A, width);
    let after = 0; // the sum of the log decays of all later columns
    for (let i = count - 1; i >= 0; i--) {
      scores[i] = dot(values, i * width, asked, 0, width);
      const logit = weights.w.length > 0 ? dot(values, i * width, weights.w, 0, width) : 0;
      const [decay, intake] = gate(spec, logit, weights.a[0] ?? 0);
      gates[i] = intake * Math.exp(after);
      voted(i, gates[i] * scores[i]);
      after += decay;
    }
  }
  return { output, scores, gates, votes };
}
