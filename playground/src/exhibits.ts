// What Python wrote into the page: settings of the prompts, and models with their weights along training.
import type { Spec } from "./models/gated";

export interface PackedModel extends Spec {
  name: string;
  colour: string;
  /** Training steps at which its weights are here. */
  steps: number[];
  /** |q|: length of the vector that stands for the label +1. */
  norm: number;
  weights: Record<string, string>[];
  /** Its name in the store, and the spec it was trained by. */
  run: string;
  spec: unknown;
}

export interface Inputs {
  /** Coordinates in use: those of patterns and outliers. */
  dimension: number;
  patterns: number;
  irrelevant: number;
  patternNorm: number;
}

export interface Exhibits {
  about: { version: string; date: string; seed: number; report: boolean };
  poison: {
    prompts: Inputs & { irrelevantScale: number; outliers: number; trainingScale: number; directions: number[][] };
    models: PackedModel[];
  };
  softmax: { prompts: Inputs & { trainingIrrelevantScale: number }; models: PackedModel[] };
  chain: {
    prompts: { dimension: number; patterns: number; steps: number; noise: number; basis: string };
    model: PackedModel;
  };
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
  /** At each of its steps. */
  weights: Arrays[];
}

export function model(packed: PackedModel): Model {
  const weights = packed.weights.map((arrays) =>
    Object.fromEntries(Object.entries(arrays).map(([name, text]) => [name, unpacked(text)])));
  return { ...packed, weights };
}
