// What Python wrote into the page: settings of the prompts, and models with their weights along training.
import type { Spec } from "./models/gated";

export interface PackedModel {
  key: string;
  name: string;
  colour: string;
  steps: number[];
  norm: number;
  retention: number;
  temperature: number;
  weights: Record<string, string>[];
  run: string;
  spec: unknown;
}

export interface Inputs {
  /** Coordinates in use: those of patterns and outliers. */
  dimension: number;
  patterns: number;
  irrelevant: number;
  patternNorm: number;
  irrelevantScale: number;
}

export interface Exhibits {
  about: { version: string; date: string; seed: number; report: boolean };
  poison: {
    prompts: Inputs & { outliers: number; trainingScale: number; directions: number[][] };
    models: PackedModel[];
  };
  softmax: { prompts: Inputs & { largestSum: number }; models: PackedModel[] };
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

export interface Model extends Spec {
  name: string;
  colour: string;
  steps: number[];
  norm: number;
  weights: Arrays[];
  run: string;
  spec: unknown;
}

export function model(packed: PackedModel): Model {
  const weights = packed.weights.map((arrays) =>
    Object.fromEntries(Object.entries(arrays).map(([name, text]) => [name, unpacked(text)])));
  return { ...packed, weights };
}
