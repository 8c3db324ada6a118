// Errors over many random prompts, counted a few milliseconds at a time so that the page stays quick.
import { effect, type ReadonlySignal, signal } from "@preact/signals";

export interface Counted {
  prompts: number;
  /** Mean of each measure so far. */
  means: number[];
}

const SLICE = 4; // milliseconds of a frame
export const MANY = 4000;

/** Begins anew whenever `key` changes; `judge()` gives the function from a prompt's number to its measures. A key of ""
 *  means that nobody looks. */
export function running(key: ReadonlySignal<string>, judge: () => (prompt: number) => number[], many = MANY
): ReadonlySignal<Counted> {
  const counted = signal<Counted>({ prompts: 0, means: [] });
  let current = "";
  let frame = 0;
  effect(() => {
    if (key.value === current) return;
    current = key.value;
    cancelAnimationFrame(frame);
    counted.value = { prompts: 0, means: [] }; // the first count comes before the next picture
    if (current === "") return;
    const measure = judge();
    let sums: number[] = [];
    let prompts = 0;
    const work = (): void => {
      const until = performance.now() + SLICE;
      do {
        const found = measure(prompts);
        sums = found.map((value, i) => value + (sums[i] ?? 0));
        prompts += 1;
      } while (prompts < many && performance.now() < until);
      counted.value = { prompts, means: sums.map((sum) => sum / prompts) };
      if (prompts < many) frame = requestAnimationFrame(work);
    };
    frame = requestAnimationFrame(work);
  });
  return counted;
}

/** A 95 % interval of a mean of zeros and ones: Wilson's, which does not vanish at 0. */
export function interval(mean: number, prompts: number): [number, number] {
  if (prompts === 0) return [0, 1];
  const z = 1.96;
  const shrink = 1 + (z * z) / prompts;
  const middle = (mean + (z * z) / (2 * prompts)) / shrink;
  const half = (z * Math.sqrt((mean * (1 - mean)) / prompts + (z * z) / (4 * prompts * prompts))) / shrink;
  return [Math.max(middle - half, 0), Math.min(middle + half, 1)];
}
