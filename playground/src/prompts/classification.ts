// Labelled prompts, poisoned or out of domain: the data model of iclab.prompts.classification.
//   x = beta mu_j + kappa nu_k + [outlier] kappa_a v
import { type Attacked, type Inputs, unpacked } from "../exhibits";
import { type Columns, rowProduct } from "../models/gated";
import { choice, normals, type Source } from "../random";

export const RULES = ["flip", "target", "random"] as const;
export const PLACEMENTS = ["random", "far", "close"] as const;
/** Of the page of the papers' models. */
export const DIRECTIONS = ["paper", "v1", "v2", "v3", "training", "against", "own"] as const;
export type Rule = (typeof RULES)[number];
export type Placement = (typeof PLACEMENTS)[number];

export interface Attack {
  length: number;
  fraction: number;
  /** In units of the training scale. */
  scale: number;
  /** One of the directions by its name (v1, v2, ...), all of them (paper or training), against them, or one's own. */
  direction: string;
  /** Coefficients over the training outliers when the direction is one's own. */
  own: number[];
  rule: Rule;
  placement: Placement;
  /** Of the user's own prompts: the name of the tasks, and what training has fixed for the papers' ones. */
  tasks?: string;
  decisive?: number;
  irrelevantScale?: number;
}

export interface Example {
  id: number;
  pattern: number;
  /** Whether it carries the query's pattern. */
  same: boolean;
  /** Coefficient of the relevant pattern; 1 if it is not given. */
  lambda?: number;
  irrelevant: number;
  kappa: number;
  /** Noise on its input. */
  noise?: Float64Array;
  outlier: boolean;
  /** Coefficients over the training outliers, should it be poisoned. */
  direction: number[];
  clean: number;
  label: number;
}

export interface Prompt {
  examples: Example[];
  query: Example;
  /** The task's other pattern. */
  partner: number;
  /** The query's true label. */
  truth: number;
}

/** Changes by hand to a drawn prompt. */
export interface Edits {
  poison: Record<number, boolean>;
  flip: Record<number, boolean>;
  order: number[] | null;
  /** What gates of single examples are held at. */
  gates: Record<number, number>;
}

const SLOTS = 8;
const FIRST = 16;

export function unit(row: number[]): number[] {
  const norm = Math.hypot(...row);
  return norm === 0 ? row.map(() => 0) : row.map((value) => value / norm);
}

/** The directions among which every poisoned example draws its own. */
export function directionsOf(attack: Attack, prompts: Attacked): number[][] {
  const axes = Array.from({ length: prompts.outliers }, (_, i) =>
    Array.from({ length: prompts.outliers }, (_, j) => (i === j ? 1 : 0)));
  switch (attack.direction) {
    case "paper": return prompts.directions;
    case "training": return prompts.own === undefined ? axes : prompts.directions;
    case "against": {
      const against = prompts.own === undefined ? prompts.directions.slice(0, 1) : prompts.directions;
      return [unit(axes.map((_, j) => -against.reduce((sum, row) => sum + row[j], 0)))];
    }
    case "own": return [unit(attack.own.slice(0, prompts.outliers))];
    default: return [prompts.directions[Number(attack.direction.slice(1)) - 1]];
  }
}

function labelled(rule: Rule, clean: number, coin: number): number {
  return rule === "flip" ? -clean : rule === "target" ? 1 : coin;
}

/** Where the numbers begin that only the user's own prompts need, and those of the noise. */
const MORE = 2 ** 16;
const NOISE = 2 ** 20;

/** The prompt that a source of numbers determines. */
export function drawAttacked(attack: Attack, prompts: Attacked, draw: Source): Prompt {
  const { own } = prompts;
  const patterns = own?.mixtures?.length ?? prompts.patterns;
  const pairs = own?.tasks.find(({ name }) => name === attack.tasks)?.pairs;
  const truth = draw(2) < 0.5 ? 1 : -1;
  let asked = choice(draw(0), patterns);
  let partner = (asked + 1 + choice(draw(1), patterns - 1)) % patterns;
  if (pairs) { // the first pattern of a task is +1
    const [a, b] = pairs[choice(draw(0), pairs.length)];
    [asked, partner] = truth > 0 ? [a, b] : [b, a];
  }
  const rest = own === undefined ? [] : Array.from({ length: patterns }, (_, j) => j).filter((j) => j !== asked && j !== partner);
  const decisiveFraction = rest.length === 0 ? 1 : attack.decisive ?? 1;
  const [low, high] = own?.coefficients ?? [1, 1];
  const directions = directionsOf(attack, prompts);
  const example = (id: number, isQuery: boolean): Example => {
    const [at, more] = [FIRST + SLOTS * id, MORE + SLOTS * id];
    const decisive = isQuery || decisiveFraction === 1 || draw(more) < decisiveFraction;
    const same = decisive && (isQuery || draw(at + 5) < 0.5);
    const clean = decisive ? (same ? truth : -truth) : draw(more + 1) < 0.5 ? 1 : -1;
    const outlier = !isQuery && draw(at) < attack.fraction;
    const coin = draw(at + 1) < 0.5 ? 1 : -1;
    return {
      id, same, pattern: decisive ? (same ? asked : partner) : rest[choice(draw(more + 2), rest.length)],
      lambda: low + (high - low) * (low === high ? 0 : draw(more + 3)),
      irrelevant: choice(draw(at + 2), prompts.irrelevant),
      kappa: prompts.irrelevant === 0 ? 0 : (2 * draw(at + 3) - 1) * (attack.irrelevantScale ?? prompts.irrelevantScale),
      outlier, clean, direction: directions[choice(draw(at + 4), directions.length)] ?? [],
      noise: own !== undefined && own.noise > 0 ? inBall(own.noise, prompts.dimension, draw, NOISE + 2 * id * (prompts.dimension + 1)) : undefined,
      label: isQuery ? 0 : outlier ? labelled(attack.rule, clean, coin) : clean,
    };
  };
  const examples = Array.from({ length: attack.length }, (_, id) => example(id, false));
  // The query has the slots of an example far behind: its own do not move when examples are added.
  return { examples: placed(examples, attack.placement), query: example(1000, true), partner, truth };
}

/** A point drawn evenly from a ball. */
function inBall(radius: number, dimension: number, draw: Source, at: number): Float64Array {
  const point = normals(draw, at + 1, dimension);
  const scale = (radius * draw(at) ** (1 / dimension)) / Math.hypot(...point);
  return point.map((value) => scale * value);
}

/** Poisoned examples all farthest from the query, all closest to it, or where they are. */
export function placed<Any extends { outlier: boolean }>(examples: Any[], placement: Placement): Any[] {
  if (placement === "random") return examples;
  const [poisoned, others] = [true, false].map((kind) => examples.filter((example) => example.outlier === kind));
  return placement === "far" ? [...poisoned, ...others] : [...others, ...poisoned];
}

/** The prompt with its changes by hand; a hand-poisoned example carries the label of the attack's rule. */
export function edited(prompt: Prompt, edits: Edits, attack: Attack, draw: Source): Prompt {
  let examples = prompt.examples.map((example) => {
    const outlier = edits.poison[example.id] ?? example.outlier;
    let label = example.clean;
    if (outlier) label = labelled(attack.rule, example.clean, draw(FIRST + SLOTS * example.id + 1) < 0.5 ? 1 : -1);
    return { ...example, outlier, label: edits.flip[example.id] ? -label : label };
  });
  if (edits.order !== null) {
    const byId = new Map(examples.map((example) => [example.id, example]));
    const listed = edits.order.filter((id) => byId.has(id));
    examples = [...listed, ...[...byId.keys()].filter((id) => !listed.includes(id))].map((id) => byId.get(id)!);
  }
  return { ...prompt, examples };
}

/** The prompt as a model with this label norm reads it. */
export function columnsOf(prompt: Prompt, inputs: Inputs, outlierScale: number, labelNorm: number,
  mixtures?: number[][] | null): Columns {
  const width = inputs.dimension + 1;
  const tokens = [...prompt.examples, prompt.query];
  const values = new Float64Array(tokens.length * width);
  const basis = basisOf(inputs);
  tokens.forEach((token, i) => {
    const at = i * width;
    const beta = inputs.patternNorm;
    const relevant = beta * (token.lambda ?? 1);
    if (!mixtures) values[at + token.pattern] = relevant;
    else mixtures[token.pattern].forEach((coefficient, j) => { values[at + j] = relevant * coefficient; });
    if (inputs.irrelevant > 0) values[at + inputs.patterns + token.irrelevant] += beta * token.kappa;
    if (token.outlier) {
      const first = at + inputs.patterns + inputs.irrelevant;
      token.direction.forEach((coefficient, j) => { values[first + j] = outlierScale * coefficient; });
    }
    if (basis !== undefined) {
      values.set(rowProduct(values.slice(at, at + inputs.dimension), 0, basis, inputs.dimension), at);
    }
    token.noise?.forEach((value, j) => { values[at + j] += value; });
    values[at + inputs.dimension] = labelNorm * token.label;
  });
  return { width, count: tokens.length, values };
}

const bases = new WeakMap<Inputs, Float64Array>();

function basisOf(inputs: Inputs): Float64Array | undefined {
  if (inputs.basis !== undefined && !bases.has(inputs)) bases.set(inputs, unpacked(inputs.basis));
  return bases.get(inputs);
}

/** (1 - decisive (1 - outlier))^l / 2: what a learner errs at least that knows neither the attack nor the task. */
export function floor(length: number, fraction: number, decisive = 1): number {
  return (1 - decisive * (1 - fraction)) ** length / 2;
}

export interface Mixing {
  length: number;
  /** Fraction of examples that carry one of the task's two patterns. */
  decisive: number;
  irrelevantScale: number;
  /** S1: the coefficient sum of the first new pattern. */
  sum: number;
  outside: boolean;
}

/** Coefficients over the training patterns of mu1', mu2', mu3' (iclab.papers.icl.settings). */
export function newPatterns(sum: number): number[][] {
  const apart = Math.sqrt(Math.max(2 * 0.82 - sum * sum, 0));
  const [a, b, r] = [(sum + apart) / 2, (sum - apart) / 2, Math.SQRT1_2];
  return [[0.3, -0.3, 0, 0, a, b], [r, r, 0, 0, 0, 0], [0, 0, r, r, 0, 0]];
}

/** A prompt of the icl paper's tests; `asked` fixes the query's pattern and its partner.
 *  In domain the tasks are those that training does not show (all but j against j + 1, in that order). */
export function drawMixed(mixing: Mixing, prompts: Inputs, draw: Source, asked?: readonly [number, number]): Prompt {
  const patterns = mixing.outside ? 3 : prompts.patterns;
  const query = asked?.[0] ?? choice(draw(0), patterns);
  const truth = draw(2) < 0.5 ? 1 : -1;
  // Trained: pattern j against j + 1, j being +1. So a query that is +1 was met with the next one, else with the last.
  const trained = mixing.outside ? -1 : (query + (truth > 0 ? 1 : patterns - 1)) % patterns;
  const partners = Array.from({ length: patterns }, (_, j) => j).filter((j) => j !== query && j !== trained);
  const partner = asked?.[1] ?? partners[choice(draw(1), partners.length)];
  const rest = Array.from({ length: patterns }, (_, j) => j).filter((j) => j !== query && j !== partner);
  const example = (id: number, isQuery: boolean): Example => {
    const at = FIRST + SLOTS * id;
    const decisive = isQuery || draw(at) < mixing.decisive;
    const same = isQuery || draw(at + 5) < 0.5;
    const coin = draw(at + 1) < 0.5 ? 1 : -1;
    const clean = decisive ? (same ? truth : -truth) : coin;
    return {
      id, pattern: decisive ? (same ? query : partner) : rest[choice(draw(at + 4), rest.length)],
      same: decisive && same, irrelevant: choice(draw(at + 2), prompts.irrelevant),
      kappa: (2 * draw(at + 3) - 1) * mixing.irrelevantScale, outlier: false, direction: [], clean, label: clean,
    };
  };
  const examples = Array.from({ length: mixing.length }, (_, id) => example(id, false));
  return { examples, query: { ...example(1000, true), label: 0 }, partner, truth };
}
