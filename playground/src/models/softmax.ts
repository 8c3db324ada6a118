// Softmax attention with a ReLU MLP: what iclab.models.softmax_mlp computes, for one prompt.
//   F = a^T relu(W_O W_V sum_i p_i softmax_i(p_i^T W_K^T W_Q p_query)),   a = +-1/m
import type { Arrays } from "../exhibits";
import { type Columns, dot, product, type Reading, rowProduct } from "./gated";

interface Attended {
  /** Of every example; they sum to 1. */
  attention: Float64Array;
  /** The mean column that the neurons read. */
  pooled: Float64Array;
}

/** Numbers as shares of 1 that grow with them exponentially. */
export function softmax(logits: Float64Array): Float64Array {
  const top = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const shares = logits.map((value) => Math.exp(value - top));
  const total = shares.reduce((sum, value) => sum + value, 0);
  return shares.map((value) => value / total);
}

export function attend(weights: Arrays, columns: Columns): Attended {
  const { width, count, values } = columns;
  const asked = rowProduct(values, (count - 1) * width, weights.A, width);
  const attention = softmax(Float64Array.from({ length: count - 1 }, (_, i) => dot(values, i * width, asked, 0, width)));
  const pooled = new Float64Array(width);
  attention.forEach((share, i) => {
    for (let j = 0; j < width; j++) pooled[j] += share * values[i * width + j];
  });
  return { attention, pooled };
}

/** The output of the neurons that are kept; all of them when `keep` is not given. */
export function decide(weights: Arrays, pooled: Float64Array, keep?: Uint8Array): number {
  const width = pooled.length;
  const neurons = weights.R.length / width;
  let output = 0;
  for (let n = 0; n < neurons; n++) {
    if (keep !== undefined && keep[n] === 0) continue;
    const hidden = dot(weights.R, n * width, pooled, 0, width);
    if (hidden > 0) output += n < neurons >> 1 ? hidden : -hidden;
  }
  return output / neurons;
}

/** What each neuron says of a pooled column before its ReLU. */
export function hidden(weights: Arrays, pooled: Float64Array): Float64Array {
  return product(weights.R, pooled.length, pooled, 0);
}

/** The output as a sum over the examples. Where a neuron is active it is linear, so what an example adds is its share of
 *  the attention times what the active neurons make of its column. */
export function readSoftmax(weights: Arrays, columns: Columns): Reading {
  const { width, count, values } = columns;
  const { attention, pooled } = attend(weights, columns);
  const neurons = weights.R.length / width;
  const active = new Float64Array(width); // the sum of what they read, with their signs
  hidden(weights, pooled).forEach((value, n) => {
    const sign = value <= 0 ? 0 : n < neurons >> 1 ? 1 / neurons : -1 / neurons;
    for (let j = 0; j < width; j++) active[j] += sign * weights.R[n * width + j];
  });
  const scores = new Float64Array(count); // the query stands outside the sum
  scores.set(attention);
  const votes = scores.map((share, i) => share * dot(values, i * width, active, 0, width));
  return { output: decide(weights, pooled), layers: [{ scores, gates: null, votes }] };
}
