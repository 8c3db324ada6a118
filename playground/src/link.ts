// The state as a link: #tab?field=value&..., with the fields that differ from the usual ones, and changes by hand.
// What a link gets wrong is left as usual: a link may be edited, or come from another version.
import { FINE } from "./models/held";
import { FIELDS, SHOWN, type State, type Tab, usual } from "./state";

const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/** Steps of a chain. */
const STEPS = "most" in FIELDS.thought.look ? FIELDS.thought.look.most : 0;

/** Numbers below 64, a letter each. */
const letters = (numbers: Iterable<number>): string => [...numbers].map((n) => DIGITS[n]).join("");
const numbers = (text: string): number[] => [...text].map((letter) => DIGITS.indexOf(letter)).filter((n) => n >= 0);
const ids = (marks: Record<number, boolean>, wanted: boolean): string =>
  letters(Object.keys(marks).map(Number).filter((id) => marks[id] === wanted));

export function toLink(state: State): string {
  const { tab, edits } = state;
  const found = new URLSearchParams();
  for (const [name, field] of Object.entries(FIELDS[tab])) {
    const value = state.values[tab][name];
    if (value !== field.usual) found.set(name, String(value));
  }
  if (tab === "poison") {
    const marks = { poisoned: ids(edits.poison, true), cleaned: ids(edits.poison, false), flipped: ids(edits.flip, true) };
    for (const [name, text] of Object.entries(marks)) if (text !== "") found.set(name, text);
    if (edits.order !== null) found.set("moved", letters(edits.order));
    const held = Object.entries(edits.gates).flatMap(([id, value]) => [Number(id), Math.round(FINE * value)]);
    if (held.length > 0) found.set("held", letters(held));
  }
  if (tab === "regression") {
    for (const [name, wanted] of [["poisoned", true], ["cleaned", false]] as const) {
      const text = ids(state.outliers, wanted);
      if (text !== "") found.set(name, text);
    }
  }
  if (tab === "thought" && Object.keys(state.chainEdits).length > 0) {
    found.set("steps", Object.entries(state.chainEdits).map(([place, off]) => `${place}.${off}`).join("_"));
  }
  const text = found.toString();
  return `#${tab}${text === "" ? "" : `?${text}`}`;
}

export function fromLink(link: string): State {
  const made = usual();
  const [name, query] = link.replace(/^#/, "").split("?");
  if (!(SHOWN as readonly string[]).includes(name)) return made;
  const tab = name as Tab;
  made.tab = tab;
  const given = new URLSearchParams(query ?? "");
  for (const [field, rule] of Object.entries(FIELDS[tab])) {
    const text = given.get(field);
    if (text === null) continue;
    if ("words" in rule) {
      if (rule.words.includes(text)) made.values[tab][field] = text;
    } else if (text.trim() !== "" && Number.isFinite(Number(text))) {
      const value = Math.min(Math.max(Number(text), rule.least), rule.most);
      made.values[tab][field] = rule.step === 1 ? Math.round(value) : value;
    }
  }
  const length = Number(made.values[tab].length);
  const known = (text: string | null): number[] => [...new Set(numbers(text ?? ""))].filter((id) => id < length);
  if (tab === "regression") {
    for (const id of known(given.get("poisoned"))) made.outliers[id] = true;
    for (const id of known(given.get("cleaned"))) made.outliers[id] = false;
  }
  if (tab === "poison") {
    for (const id of known(given.get("poisoned"))) made.edits.poison[id] = true;
    for (const id of known(given.get("cleaned"))) made.edits.poison[id] = false;
    for (const id of known(given.get("flipped"))) made.edits.flip[id] = true;
    const held = numbers(given.get("held") ?? "");
    for (let i = 0; i + 1 < held.length; i += 2) {
      if (held[i] < length && held[i + 1] <= FINE) made.edits.gates[held[i]] = held[i + 1] / FINE;
    }
    if (given.has("moved")) made.edits.order = known(given.get("moved"));
  }
  if (tab === "thought") {
    for (const text of (given.get("steps") ?? "").split("_")) {
      const match = /^(\d{1,2})\.(\d{1,3})\.(\d)$/.exec(text);
      if (match !== null && Number(match[2]) < STEPS) made.chainEdits[`${Number(match[1])}.${match[2]}`] = Number(match[3]);
    }
  }
  return made;
}
