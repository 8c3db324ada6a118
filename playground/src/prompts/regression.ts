// Regression prompts: the data model of iclab.prompts.regression.
//   y = w.x + noise e,   x = (signal, 1 if there is a constant, outlier marks)
import { type Columns, dot } from "../models/gated";
import { choice, normals, shuffled, type Source } from "../random";
import { type Placement, placed, type Rule } from "./classification";

export interface Numbers {
  dimension: number;
  /** Coordinates that labels depend on, before the constant and the outliers' ones. */
  signals: number;
  constant: boolean;
  outliers: number;
  /** Standard deviation of the labels' noise. */
  noise: number;
  /** How many weights of a task are not 0; null: all. */
  nonzero: number | null;
}

export interface Poisoning {
  length: number;
  fraction: number;
  /** What a poisoned example has in the coordinate of its outlier. */
  scale: number;
  /** Size of its label under the rule "random". */
  size: number;
  rule: Rule;
  placement: Placement;
}

export interface Measured {
  id: number;
  signal: Float64Array;
  /** The label without noise, w.x. */
  exact: number;
  /** The label without poison. */
  clean: number;
  direction: number;
  coin: number;
  outlier: boolean;
  label: number;
}

export interface NumberPrompt {
  examples: Measured[];
  /** Its label is the answer. */
  query: Measured;
}

const SLOTS = 8;
const FIRST = 16;
/** Where the numbers of the task and those of the examples begin. */
const TASK = 2 ** 16;
const EXAMPLES = 2 ** 20;

export function drawNumbers(now: Poisoning, prompts: Numbers, draw: Source, tasks?: Float64Array): NumberPrompt {
  const { signals } = prompts;
  const weights = drawTask(prompts, draw, tasks);
  const example = (id: number, isQuery: boolean): Measured => {
    const at = FIRST + SLOTS * id;
    const gaussian = normals(draw, EXAMPLES + 2 * (signals + 1) * id, signals + 1);
    const exact = dot(weights, 0, gaussian, 0, signals);
    const clean = exact + prompts.noise * gaussian[signals];
    const coin = draw(at + 1) < 0.5 ? 1 : -1;
    const outlier = !isQuery && draw(at) < now.fraction;
    return { id, signal: gaussian.subarray(0, signals), exact, clean, coin, outlier, direction: choice(draw(at + 2), Math.max(prompts.outliers, 1)),
      label: outlier ? poisonedLabel(now, clean, coin) : clean };
  };
  // As in prompts of patterns, the query has the slots of an example far behind.
  const examples = Array.from({ length: now.length }, (_, id) => example(id, false));
  return { examples: placed(examples, now.placement), query: example(1000, true) };
}

function drawTask({ signals, nonzero }: Numbers, draw: Source, tasks?: Float64Array): Float64Array {
  if (tasks !== undefined) { // one of a pool
    const task = choice(draw(0), tasks.length / signals);
    return tasks.slice(task * signals, (task + 1) * signals);
  }
  const weights = normals(draw, TASK, signals).map((value) => value / Math.sqrt(nonzero ?? signals));
  if (nonzero !== null) for (const place of shuffled(draw, TASK / 2, signals).slice(nonzero)) weights[place] = 0;
  return weights;
}

function poisonedLabel({ rule, size }: Poisoning, clean: number, coin: number): number {
  return rule === "flip" ? -clean : rule === "target" ? 1 : coin * size;
}

/** The prompt with examples poisoned and cleaned by hand. */
export function poisonedByHand(prompt: NumberPrompt, marks: Record<number, boolean>, now: Poisoning): NumberPrompt {
  const examples = prompt.examples.map((example) => {
    const outlier = marks[example.id] ?? example.outlier;
    return { ...example, outlier, label: outlier ? poisonedLabel(now, example.clean, example.coin) : example.clean };
  });
  return { ...prompt, examples };
}

/** The prompt as a model with this label norm reads it. */
export function numberColumns({ examples, query }: NumberPrompt, prompts: Numbers, scale: number, labelNorm: number): Columns {
  const { dimension, signals, constant } = prompts;
  const width = dimension + 1;
  const count = examples.length + 1;
  const values = new Float64Array(count * width);
  [...examples, query].forEach((one, i) => {
    values.set(one.signal, i * width);
    if (constant) values[i * width + signals] = 1;
    if (one.outlier) values[i * width + signals + (constant ? 1 : 0) + one.direction] = scale;
    values[i * width + dimension] = i < examples.length ? labelNorm * one.label : 0;
  });
  return { width, count, values };
}
