// Models that reason in K steps: what iclab.probes.reasoning makes of iclab.models.chain_attention,
//   F = sum_i y_i softmax_i(p_i^T W p_query),   p = (x; y; position code),
// and of a gated stack, whose output is the output half of the query's column.
import type { Arrays, Model } from "../exhibits";
import { dot, layersOf, product } from "./gated";
import { softmax } from "./softmax";

/** A model with its weights at one step of training. */
export type Reasoner = Pick<Model, "kind" | "norm" | "keyPositions" | "member" | "retention" | "temperature" | "causal" | "normalise"> & { layers: Arrays[] };

/** Columns of examples as vectors: input and output of every step. */
export interface Steps {
  count: number;
  x: Float64Array;
  y: Float64Array;
  step: number[];
}

export interface Step {
  /** On every column of the examples, then on the query's own earlier steps; of a gated stack, score times gate in its
   *  last layer. */
  attention: Float64Array;
  output: Float64Array;
  /** Its product with every pattern. */
  support: Float64Array;
  answer: number;
}

/** One step of reasoning: what the model says after its own columns `seen` (inputs of the query's steps so far). */
export function ask(reasoner: Reasoner, steps: number, dimension: number, context: Steps, seen: Float64Array[],
  patterns: Float64Array): Step {
  const width = 2 * dimension + steps;
  const own = seen.map((x, k) => {
    const column = new Float64Array(width);
    column.set(x, 0);
    if (k + 1 < seen.length) column.set(seen[k + 1], dimension);
    column[2 * dimension + k] = reasoner.norm;
    return column;
  });
  const { attention, output } = (reasoner.kind === "gated" ? stacked : attended)(reasoner, width, dimension, context, own);
  const support = product(patterns, dimension, output, 0);
  return { attention, output, support, answer: largest(support) };
}

type Found = Pick<Step, "attention" | "output">;

function attended({ layers: [{ W }], norm, keyPositions }: Reasoner, width: number, dimension: number, context: Steps,
  own: Float64Array[]): Found {
  const asked = product(W, width, own[own.length - 1], 0);
  if (keyPositions === false) asked.fill(0, 2 * dimension);
  const logits = new Float64Array(context.count + own.length - 1);
  for (let i = 0; i < context.count; i++) {
    logits[i] = dot(context.x, i * dimension, asked, 0, dimension)
      + dot(context.y, i * dimension, asked, dimension, dimension) + norm * asked[2 * dimension + context.step[i]];
  }
  own.slice(0, -1).forEach((column, k) => { logits[context.count + k] = dot(column, 0, asked, 0, width); });
  const attention = softmax(logits);
  const output = new Float64Array(dimension);
  for (let i = 0; i < context.count; i++) {
    for (let j = 0; j < dimension; j++) output[j] += attention[i] * context.y[i * dimension + j];
  }
  own.slice(0, -1).forEach((column, k) => {
    for (let j = 0; j < dimension; j++) output[j] += attention[context.count + k] * column[dimension + j];
  });
  return { attention, output };
}

function stacked(reasoner: Reasoner, width: number, dimension: number, context: Steps, own: Float64Array[]): Found {
  const count = context.count + own.length;
  const columns = new Float64Array(count * width);
  for (let i = 0; i < context.count; i++) {
    columns.set(context.x.subarray(i * dimension, (i + 1) * dimension), i * width);
    columns.set(context.y.subarray(i * dimension, (i + 1) * dimension), i * width + dimension);
    columns[i * width + 2 * dimension + context.step[i]] = reasoner.norm;
  }
  own.forEach((column, k) => columns.set(column, (context.count + k) * width));
  const { weights, columns: { values } } = layersOf(reasoner, reasoner.layers, { width, count, values: columns }).pop()!;
  const scale = reasoner.normalise ? 1 / count : 1;
  const output = values.slice((count - 1) * width + dimension, (count - 1) * width + 2 * dimension);
  weights.forEach((weight, i) => {
    for (let j = 0; j < dimension; j++) output[j] += scale * weight * values[i * width + dimension + j];
  });
  return { attention: weights.subarray(0, count - 1), output };
}

/** The place of the largest number, the first of several. */
export function largest(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** Decode a step to the nearest pattern, append it, go on (li2024cot, algorithm 2). */
export function chainOfThought(reasoner: Reasoner, steps: number, dimension: number, context: Steps, query: Float64Array,
  patterns: Float64Array): Step[] {
  const seen = [query];
  return Array.from({ length: steps }, () => {
    const step = ask(reasoner, steps, dimension, context, seen, patterns);
    seen.push(patterns.slice(step.answer * dimension, (step.answer + 1) * dimension));
    return step;
  });
}

/** The same examples with only their inputs and last outputs left, the columns between them blank but for their code. */
export function endsOnly(context: Steps, steps: number, dimension: number): Steps {
  const x = new Float64Array(context.x.length);
  const y = new Float64Array(context.y.length);
  for (let i = 0; i < context.count; i += steps) {
    x.set(context.x.subarray(i * dimension, (i + 1) * dimension), i * dimension);
    y.set(context.y.subarray((i + steps - 1) * dimension, (i + steps) * dimension), i * dimension);
  }
  return { ...context, x, y };
}
