// What the visitor has chosen. One table of fields says what each may be; sliders, links and defaults read it.
import { signal } from "@preact/signals";
import { exhibits } from "./exhibits";
import { fieldsOf, type Fields, MIXED, MOST_SEED } from "./fields";
import type { Attack, Edits, Mixing } from "./prompts/classification";
import type { Poisoning } from "./prompts/regression";
import type { ChainEdits, Slips } from "./prompts/chains";

export const TABS = ["poison", "regression", "thought", "softmax"] as const;
export type Tab = (typeof TABS)[number];
export type Order = "small" | "large" | "random";

export const FIELDS: Record<Tab, Fields> = fieldsOf(exhibits);
const DATA: Record<Tab, unknown> = { poison: exhibits.poison, regression: exhibits.regression, thought: exhibits.chain, softmax: exhibits.softmax };
/** The tabs that this page has; all of them where there is no page. */
export const SHOWN: readonly Tab[] = typeof document === "undefined" ? TABS : TABS.filter((tab) => DATA[tab] !== undefined);

export type Values = Record<string, number | string>;

export interface State {
  tab: Tab;
  values: Record<Tab, Values>;
  edits: Edits;
  chainEdits: ChainEdits;
  /** Examples of regression prompts poisoned or cleaned by hand. */
  outliers: Record<number, boolean>;
}

export function usual(): State {
  const values = Object.fromEntries(TABS.map((tab) =>
    [tab, Object.fromEntries(Object.entries(FIELDS[tab]).map(([name, field]) => [name, field.usual]))]));
  return { tab: SHOWN[0], values: values as Record<Tab, Values>, edits: untouched(), chainEdits: {}, outliers: {} };
}

export function untouched(): Edits {
  return { poison: {}, flip: {}, order: null, gates: {} };
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
  change(tab, { seed: (Number(state.peek().values[tab].seed) + 1) % (MOST_SEED + 1) });
}

export function attackOf(values: Values): Attack {
  const own = MIXED.map((name) => Number(values[name] ?? 0));
  // Prompts without outliers have no fields for them.
  return { fraction: 0, scale: 0, direction: "training", rule: "flip", placement: "random", ...(values as object), own } as Attack;
}

export function poisoningOf(values: Values): Poisoning {
  // Prompts without outliers have no fields for them.
  return { fraction: 0, scale: 0, size: 0, rule: "random", placement: "random", ...(values as object) } as Poisoning;
}

export function slipsOf(values: Values): Slips {
  return values as unknown as Slips;
}

export function mixingOf(values: Values): Mixing {
  return { ...(values as unknown as Mixing), outside: values.domain === "outside" };
}
