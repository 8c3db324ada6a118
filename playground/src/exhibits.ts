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

/** Numbers from base64 of little-endian float32; the page computes in double precision. */
export function unpacked(text: string): Float64Array {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
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
