// Prompts of K-step reasoning whose examples go wrong: the data model of iclab.prompts.chain.
import { largest, type Steps } from "../models/chain";
import { choice, shuffled, type Source } from "../random";

export interface Slips {
  length: number;
  /** Probability that an example starts at the query's pattern. */
  matching: number;
  /** Probability that a step of an example is right. */
  right: number;
  /** Of the wrong steps, the share that goes to one rival: the pattern next to the right one in the task's order. */
  pile: number;
}

export interface Chain {
  /** Patterns: the input of the first step and the output of each. */
  tokens: number[];
  /** The right output of each step, given its input. */
  right: number[];
  /** Where a chain from its start should end. */
  end: number;
  matches: boolean;
}

export interface ChainPrompt {
  examples: Chain[];
  /** The query and the right output of each of its steps. */
  truth: number[];
  /** Patterns in the order of the task: step k goes k places on. */
  order: number[];
}

/** Steps changed by hand, "example.step" to how many places its output is off. */
export type ChainEdits = Record<string, number>;

const FIRST = 64;
/** How many numbers an example has, and where those begin that say whereto a step slips; before them, whether. */
const slotsOf = (steps: number): [number, number] => [Math.max(16, 2 + 2 * steps), Math.max(8, 2 + steps)];

export function drawChains(slips: Slips, patterns: number, steps: number, draw: Source, edits: ChainEdits = {}
): ChainPrompt {
  // Orders of up to 63 patterns have the numbers before those of the examples, longer ones a place of their own.
  const order = shuffled(draw, patterns < FIRST ? 1 : 2 ** 16, patterns);
  const [slots, where] = slotsOf(steps);
  const chain = (start: number, off: (k: number) => number): Chain => {
    const places = [start];
    const right: number[] = [];
    for (let k = 0; k < steps; k++) {
      const goal = (places[k] + k + 1) % patterns;
      right.push(order[goal]);
      places.push((goal + off(k)) % patterns);
    }
    const end = order[(start + (steps * (steps + 1)) / 2) % patterns];
    return { tokens: places.map((place) => order[place]), right, end, matches: start === 0 };
  };
  const examples = Array.from({ length: slips.length }, (_, i) => {
    const at = FIRST + slots * i;
    const start = draw(at) < slips.matching ? 0 : 1 + choice(draw(at + 1), patterns - 1);
    return chain(start, (k) => edits[`${i}.${k}`] ?? slip(slips, patterns, draw(at + 2 + k), draw(at + where + k)));
  });
  return { examples, truth: chain(0, () => 0).tokens, order };
}

/** How many places a step is off: none, one (the rival), or any of the others alike. */
function slip(slips: Slips, patterns: number, first: number, second: number): number {
  if (first < slips.right) return 0;
  if (first < slips.right + (1 - slips.right) * slips.pile) return 1;
  return patterns > 2 ? 2 + choice(second, patterns - 2) : 1;
}

/** How likely each number of places off is after all steps: what direct prompting sees. */
export function answerOdds(slips: Slips, patterns: number, steps: number): number[] {
  const pile = patterns > 2 ? slips.pile : 1; // of two patterns only one is wrong
  const rest = ((1 - slips.right) * (1 - pile)) / (patterns - 2);
  const row = Array.from({ length: patterns }, (_, i) =>
    i === 0 ? slips.right : i === 1 ? (1 - slips.right) * pile : rest);
  let odds = row;
  for (let k = 1; k < steps; k++) {
    odds = odds.map((_, i) => row.reduce((sum, chance, j) => sum + chance * odds[(i - j + patterns) % patterns], 0));
  }
  return odds;
}

/** The examples as vectors: patterns of the basis, with noise along its other rows (a random corner of a cube). */
export function vectorsOf(prompt: ChainPrompt, basis: Float64Array, dimension: number, noise: number, steps: number,
  draw: Source): Steps {
  const patterns = prompt.order.length;
  const rest = dimension - patterns;
  const size = noise / Math.sqrt(rest);
  const count = prompt.examples.length * steps;
  const x = new Float64Array(count * dimension);
  const y = new Float64Array(count * dimension);
  prompt.examples.forEach((example, i) => {
    example.tokens.forEach((pattern, t) => {
      const vector = basis.slice(pattern * dimension, (pattern + 1) * dimension);
      let bits = 0;
      for (let r = 0; r < rest; r++) {
        if (r % 32 === 0) bits = Math.floor(draw(2 ** 20 + i * (steps + 1) + t + 2 ** 20 * (r / 32)) * 2 ** 32);
        const sign = (bits & 1) === 1 ? size : -size;
        bits >>>= 1;
        for (let j = 0; j < dimension; j++) vector[j] += sign * basis[(patterns + r) * dimension + j];
      }
      if (t < steps) x.set(vector, (i * steps + t) * dimension);
      if (t > 0) y.set(vector, (i * steps + t - 1) * dimension);
    });
  });
  return { count, x, y, step: Array.from({ length: count }, (_, i) => i % steps) };
}

/** Counts of what the examples say after the pattern `here`, from place `from` of a chain to place `to`. */
export function tally(prompt: ChainPrompt, here: number, from: number, to: number): number[] {
  const counts = prompt.order.map(() => 0);
  for (const { tokens } of prompt.examples) if (tokens[from] === here) counts[tokens[to]] += 1;
  return counts;
}

/** What an ideal reader says: the most frequent output among matching columns, step by step and at once. A tie goes to
 *  the first pattern of the alphabet, which is any of them: patterns are in a random order in every prompt. */
export function votes(prompt: ChainPrompt): { chain: number[]; direct: number } {
  const steps = prompt.truth.length - 1;
  const chain: number[] = [];
  for (let k = 0; k < steps; k++) chain.push(largest(tally(prompt, chain[k - 1] ?? prompt.truth[0], k, k + 1)));
  return { chain, direct: largest(tally(prompt, prompt.truth[0], 0, steps)) };
}
