// What Python wrote into the page: settings of the prompts, and models with their weights along training.
import type { Spec } from "./models/gated";
import type { Numbers, Poisoning } from "./prompts/regression";

export interface PackedModel extends Spec {
  key: string;
  kind: "gated" | "softmax" | "chain";
  name: string;
  /** What tells it from others of its name. */
  note?: string;
  colour: string;
  /** Training steps at which its weights are here. */
  steps: number[];
  /** |q|: length of the vector that stands for the label +1; for chains, of the position code. */
  norm: number;
  /** Whether the columns that attention reads carry the position code. */
  keyPositions?: boolean;
  /** At each of its steps, the arrays of each layer. */
  weights: Record<string, string>[][];
  /** Its name in the store, if it has one, and the spec it was trained by. */
  run: string | null;
  spec: unknown;
}

export interface Inputs {
  /** Coordinates in use: those of patterns and outliers, or all of them where patterns do not lie along the axes. */
  dimension: number;
  patterns: number;
  irrelevant: number;
  patternNorm: number;
  /** Rows along which the patterns lie; the axes without it. */
  basis?: string;
}

/** Tasks by name; without pairs, all of them. */
export interface Tasks { name: string; pairs: [number, number][] | null }

/** Prompts of the user's own models, as they were trained; models may differ in it, then it is the first one's. */
export interface Own {
  length: number;
  fraction: number;
  /** Size of the outlier in the models' own unit. */
  scale: number;
  rule: string;
  placement: string;
  decisive: number;
  /** Least and largest coefficient of the relevant pattern. */
  coefficients: [number, number];
  noise: number;
  /** Rows of coefficients over the relevant patterns: the patterns of the tasks. */
  mixtures: number[][] | null;
  tasks: Tasks[];
  /** Layers of the deepest model. */
  depth: number;
  /** What the prompts are made of. */
  words: string;
}

export interface Attacked extends Inputs {
  irrelevantScale: number;
  outliers: number;
  /** What the attack's strength is a multiple of. */
  trainingScale: number;
  /** Coefficients over the outlier patterns of the directions that one attack mixes. */
  directions: number[][];
  own?: Own;
}

export interface Chains {
  dimension: number;
  patterns: number;
  steps: number;
  noise: number;
  basis: string;
  own?: { length: number; matching: number; words: string };
}

/** Regression prompts as the models of the tab were trained on them. */
export interface Regressions extends Numbers {
  trained: Poisoning;
  /** The tasks of a pool, a row of weights each; without it every prompt has a new one. */
  tasks?: string;
  /** What the user's own prompts are made of. */
  words?: string;
}

/** Order parameters along training, and what the population dynamics predict of them. */
export interface OrderCurves {
  /** Key of the model. */
  model: string;
  steps: number[];
  curves: { name: string; trained: number[]; predicted: number[] }[];
}

/** A tab has its data, or is not there. */
export interface Exhibits {
  about: { version: string; date: string; seed: number; report: boolean; own: boolean };
  poison?: { prompts: Attacked; models: PackedModel[]; order?: OrderCurves };
  regression?: { prompts: Regressions; models: PackedModel[] };
  softmax?: { prompts: Inputs & { trainingIrrelevantScale: number }; models: PackedModel[] };
  chain?: { prompts: Chains; models: PackedModel[] };
}

export type Arrays = Record<string, Float64Array>;

/** Numbers from a text: their size in bytes, then base64, little-endian. The page computes in double precision. */
export function unpacked(text: string): Float64Array {
  const size = Number(text[0]);
  const letters = atob(text.slice(1));
  const bytes = new DataView(new ArrayBuffer(letters.length));
  for (let i = 0; i < letters.length; i++) bytes.setUint8(i, letters.charCodeAt(i));
  const found = new Float64Array(letters.length / size);
  for (let i = 0; i < found.length; i++) found[i] = size === 8 ? bytes.getFloat64(8 * i, true) : bytes.getFloat32(4 * i, true);
  return found;
}

export interface Model extends Omit<PackedModel, "weights"> {
  /** At each of its steps, by layer. */
  weights: Arrays[][];
}

export function model(packed: PackedModel): Model {
  const weights = packed.weights.map((layers) => layers.map((arrays) =>
    Object.fromEntries(Object.entries(arrays).map(([name, text]) => [name, unpacked(text)]))));
  return { ...packed, weights };
}

/** The page's data; tests of the program have none. */
export const exhibits: Exhibits = typeof document === "undefined"
  ? { about: { version: "", date: "", seed: 0, report: false, own: false } }
  : JSON.parse(document.getElementById("exhibits")!.textContent!);
