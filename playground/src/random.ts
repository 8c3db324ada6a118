// Random numbers by their place: the same seed, prompt and slot give the same number, whatever else is drawn.
// So a slider that poisons more examples leaves the others as they were, and a link brings a prompt back.

/** A well mixed 32-bit number of three. */
function mixed(a: number, b: number, c: number): number {
  let h = 0x9e3779b9;
  for (const word of [a, b, c]) {
    h = Math.imul(h ^ word, 0x85ebca6b);
    h ^= h >>> 13;
    h = Math.imul(h, 0xc2b2ae35);
    h ^= h >>> 16;
    h = (h + 0x9e3779b9) | 0;
  }
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return (h ^ (h >>> 15)) >>> 0;
}

/** Uniform numbers in [0, 1) of one prompt, one a slot. */
export type Source = (slot: number) => number;

export function source(seed: number, prompt: number): Source {
  return (slot) => mixed(seed, prompt, slot) / 2 ** 32;
}

/** One of 0 .. count - 1. */
export function choice(uniform: number, count: number): number {
  return Math.min(Math.floor(uniform * count), count - 1);
}

/** A random order of 0 .. count - 1, by the slots from `first` on. */
export function shuffled(draw: Source, first: number, count: number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  const key = order.map((i) => draw(first + i));
  return order.sort((i, j) => key[i] - key[j]);
}

/** Independent numbers from N(0, 1), two slots each from `first` on. */
export function normals(draw: Source, first: number, count: number): Float64Array {
  return Float64Array.from({ length: count }, (_, i) =>
    Math.sqrt(-2 * Math.log(1 - draw(first + 2 * i))) * Math.cos(2 * Math.PI * draw(first + 2 * i + 1)));
}
