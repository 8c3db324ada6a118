// What the visitor has chosen. One table of fields says what each may be; sliders, links and defaults read it.
import { signal } from "@preact/signals";
import { type Attack, DIRECTIONS, type Edits, type Mixing, PLACEMENTS, RULES } from "./prompts/classification";
import type { ChainEdits, Slips } from "./prompts/chains";

export const TABS = ["poison", "thought", "softmax"] as const;
export type Tab = (typeof TABS)[number];
export const QUERIES = ["first", "second", "third"] as const;
export const ORDERS = ["small", "large", "random"] as const;
export type Order = (typeof ORDERS)[number];

/** A number in a range, or one of some words. */
type Field = { least: number; most: number; step: number; usual: number } | { words: readonly string[]; usual: string };

const SEEDS = 9999;
const seed: Field = { least: 0, most: SEEDS, step: 1, usual: 1 };
const length: Field = { least: 4, most: 36, step: 1, usual: 20 };

export const FIELDS: Record<Tab, Record<string, Field>> = {
  poison: {
    seed: { ...seed, usual: 10 }, length,
    fraction: { least: 0, most: 0.95, step: 0.05, usual: 0.6 },
    scale: { least: 0, most: 5, step: 0.1, usual: 3 },
    direction: { words: DIRECTIONS, usual: "paper" },
    first: { least: -1, most: 1, step: 0.05, usual: 0.7 },
    second: { least: -1, most: 1, step: 0.05, usual: 0.6 },
    third: { least: -1, most: 1, step: 0.05, usual: -0.4 },
    rule: { words: RULES, usual: "flip" },
    placement: { words: PLACEMENTS, usual: "random" },
    trained: { least: 0, most: 8, step: 1, usual: 8 },
  },
  thought: {
    seed: { ...seed, usual: 3 }, length: { ...length, least: 1, most: 64, usual: 32 },
    matching: { least: 0.1, most: 1, step: 0.05, usual: 0.8 },
    right: { least: 0.4, most: 1, step: 0.005, usual: 0.71 },
    pile: { least: 0, most: 1, step: 0.01, usual: 0.91 },
    look: { least: 1, most: 3, step: 1, usual: 1 },
    trained: { least: 0, most: 7, step: 1, usual: 7 },
  },
  softmax: {
    seed: { ...seed, usual: 1 }, length,
    decisive: { least: 0.2, most: 1, step: 0.05, usual: 0.6 },
    irrelevantScale: { least: 0, most: 5, step: 0.25, usual: 5 },
    sum: { least: -1.28, most: 1.28, step: 0.04, usual: 1.28 },
    query: { words: QUERIES, usual: "second" },
    domain: { words: ["outside", "inside"], usual: "outside" },
    start: { words: ["usual", "small"], usual: "small" },
    pruned: { least: 0, most: 1, step: 0.01, usual: 0 },
    order: { words: ORDERS, usual: "large" },
    trained: { least: 0, most: 4, step: 1, usual: 4 },
  },
};

export type Values = Record<string, number | string>;

export interface State {
  tab: Tab;
  values: Record<Tab, Values>;
  edits: Edits;
  chainEdits: ChainEdits;
}

export function usual(): State {
  const values = Object.fromEntries(TABS.map((tab) =>
    [tab, Object.fromEntries(Object.entries(FIELDS[tab]).map(([name, field]) => [name, field.usual]))]));
  return { tab: "poison", values: values as Record<Tab, Values>, edits: untouched(), chainEdits: {} };
}

export function untouched(): Edits {
  return { poison: {}, flip: {}, order: null };
}

export const state = signal<State>(usual());

export function change(tab: Tab, changes: Values): void {
  const now = state.value;
  state.value = { ...now, values: { ...now.values, [tab]: { ...now.values[tab], ...changes } } };
}

/** Another prompt with the same settings; of changes by hand only the poison stays, which belongs to the attack. */
export function redraw(tab: Tab): void {
  const now = state.peek();
  if (tab === "poison") state.value = { ...now, edits: { ...untouched(), poison: now.edits.poison } };
  if (tab === "thought") state.value = { ...now, chainEdits: {} };
  change(tab, { seed: (Number(state.peek().values[tab].seed) + 1) % (SEEDS + 1) });
}

export function attackOf(values: Values): Attack {
  const { first, second, third } = values as Record<string, number>;
  return { ...(values as unknown as Attack), own: [first, second, third] };
}

export function slipsOf(values: Values): Slips {
  return values as unknown as Slips;
}

export function mixingOf(values: Values): Mixing {
  return { ...(values as unknown as Mixing), outside: values.domain === "outside" };
}
