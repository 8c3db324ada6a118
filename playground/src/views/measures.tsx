// The row of numbers: a bar for every label; click or press keys to poison an example.
import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { announce } from "../announced";
import type { Measured } from "../prompts/regression";
import { drawnNumbers, numberPrompt, outliersIn } from "../regressions";
import { state } from "../state";
import { share, signed } from "./parts";
import { marked } from "./tokens";

/** Which example the words below the row speak of. */
export const pointed = signal<number | null>(null);
const now = (): Measured[] => numberPrompt.peek().examples;

/** Poison an example or clean it. */
export function toggled(id: number): void {
  pointed.value = id;
  if (!outliersIn) return;
  const drawn = drawnNumbers.peek().examples.find((example) => example.id === id)!;
  const place = now().findIndex((example) => example.id === id);
  state.value = { ...state.peek(), outliers: marked(state.peek().outliers, id, !now()[place].outlier, drawn.outlier) };
  announce(described(now()[place], place, now().length));
}

function described({ label, clean, outlier }: Measured, place: number, count: number): string {
  return `Example ${place + 1} of ${count}: label ${signed(label)}${outlier ? `, poisoned; it would be ${signed(clean)}` : ""}`;
}

export function Measures() {
  const row = useRef<HTMLDivElement>(null);
  const { examples, query } = numberPrompt.value;
  const most = Math.max(...examples.map(({ label }) => Math.abs(label)), Math.abs(query.clean), 1e-9);
  const focused = examples.some(({ id }) => id === pointed.value) ? pointed.value : examples[0].id;
  const focus = (place: number): void => {
    const { id } = now()[Math.max(0, Math.min(place, examples.length - 1))];
    pointed.value = id;
    requestAnimationFrame(() => row.current?.querySelector<HTMLElement>(`[data-id="${id}"]`)?.focus());
  };
  const pressed = (event: KeyboardEvent, id: number, place: number): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: examples.length - 1 }[event.key];
    if (to !== undefined) focus(to);
    else if (["enter", " ", "p"].includes(event.key.toLowerCase())) toggled(id);
    else if (event.key === "Escape") pointed.value = null;
    else return;
    event.preventDefault();
  };
  return (
    <div class="tokens measures" ref={row} role="group" style={{ "--columns": examples.length + 1 }}
      aria-label={`Labels of the examples, the query last. Arrow keys choose${outliersIn ? ", Enter poisons" : ""}.`}>
      {examples.map((example, place) => (
        <div key={example.id} data-id={example.id} role="button" tabIndex={example.id === focused ? 0 : -1} aria-pressed={example.outlier}
          aria-label={described(example, place, examples.length)}
          class={`token ${example.outlier ? "poisoned" : ""} ${pointed.value === example.id ? "selected" : ""}`}
          onFocus={() => { pointed.value = example.id; }} onClick={() => toggled(example.id)} onKeyDown={(event) => pressed(event, example.id, place)}>
          <Bar value={example.label / most} />
        </div>
      ))}
      <div class="token query" title={`The query; its true value is ${signed(query.clean)}`}>
        <Bar value={query.clean / most} />
        <span class="unseen">The query: its true value is {signed(query.clean)}.</span>
      </div>
    </div>
  );
}

function Bar({ value }: { value: number }) {
  return <span class="stem" aria-hidden="true"><i style={{ [value < 0 ? "top" : "bottom"]: "50%", height: share(Math.abs(value) / 2) }} /></span>;
}

/** What is known of the chosen example, and a button that poisons it. */
export function MeasureEditor() {
  const { examples } = numberPrompt.value;
  const place = examples.findIndex(({ id }) => id === pointed.value);
  if (place < 0) return <p class="editor">{outliersIn && "Click a dot or a bar to poison its example. "}By keys: arrows choose{outliersIn && ", Enter poisons"}.</p>;
  const example = examples[place];
  return (
    <p class="editor">
      <span class="which">{described(example, place, examples.length)}.</span>
      {outliersIn && <button type="button" onClick={() => toggled(example.id)}>{example.outlier ? "Clean it" : "Poison it"}</button>}
    </p>
  );
}
