// The row of examples: click, drag or press keys to poison them, flip their labels, and move them.
import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { announce } from "../announced";
import { exhibits } from "../exhibits";
import { attackedPrompt, drawnPrompt, heldNow } from "../lab";
import type { Example } from "../prompts/classification";
import { state } from "../state";
import { holdable, holdGate, HoldOne, nudgeGate } from "./hold";

/** Which example the numbers and the buttons below the row speak of. */
export const selected = signal<number | null>(null);

/** Whether there is poison: prompts may have no outlier patterns. */
export const poisonable = (exhibits.poison?.prompts.outliers ?? 0) > 0;

const now = () => attackedPrompt.peek().examples;
const find = (id: number): Example => now().find((example) => example.id === id)!;

/** Marks with one of them set, or taken away where it says what is so anyway. */
export function marked(marks: Record<number, boolean>, id: number, value: boolean, anyway: boolean): Record<number, boolean> {
  const { [id]: _, ...rest } = marks;
  return value === anyway ? rest : { ...rest, [id]: value };
}

function poisonToggled(id: number): void {
  if (!poisonable) return labelFlipped(id);
  const { edits } = state.peek();
  const drawn = drawnPrompt.peek().examples.find((example) => example.id === id)!;
  state.value = { ...state.peek(), edits: { ...edits, poison: marked(edits.poison, id, !find(id).outlier, drawn.outlier) } };
  said(id);
}

function labelFlipped(id: number): void {
  const { edits } = state.peek();
  state.value = { ...state.peek(), edits: { ...edits, flip: marked(edits.flip, id, !edits.flip[id], false) } };
  said(id);
}

/** Put an example at a place of the row; 0 is farthest from the query. */
function movedTo(id: number, place: number): void {
  const order = now().map((example) => example.id).filter((other) => other !== id);
  order.splice(Math.max(0, Math.min(place, order.length)), 0, id);
  if (order.join() !== now().map((example) => example.id).join()) {
    state.value = { ...state.peek(), edits: { ...state.peek().edits, order } };
  }
  said(id);
}

/** Tell a screen reader what an example is now. */
function said(id: number): void {
  const place = now().findIndex((example) => example.id === id);
  announce(described(now()[place], place, now().length));
}

function described(example: Example, place: number, count: number): string {
  const shape = { same: "circle, the query’s pattern", other: "square, the other pattern", third: "triangle, neither pattern of the task" }[kindOf(example)];
  const label = `label ${example.label > 0 ? "plus" : "minus"}${lies(example) ? ", which is wrong" : ""}`;
  const held = heldNow.peek()?.[place] ?? NaN;
  const gate = Number.isNaN(held) ? "" : `, gate held at ${held.toFixed(2)}`;
  return `Example ${place + 1} of ${count}: ${shape}, ${label}${example.outlier ? ", poisoned" : ""}${gate}`;
}

type Kind = "same" | "other" | "third";

/** Whether an example carries the query's pattern, the other one of the task, or neither. */
export function kindOf(example: Example, partner = attackedPrompt.peek().partner): Kind {
  return example.same ? "same" : example.pattern === partner ? "other" : "third";
}

/** Whether the label is wrong; of a pattern that the task does not name none is. */
const lies = (example: Example): boolean => example.label !== example.clean && kindOf(example) !== "third";

/** The pattern as a shape; a poisoned one in a spiked ring. */
export function Shape({ kind, poisoned = false }: { kind: Kind; poisoned?: boolean }) {
  return (
    <svg class="shape" viewBox="-12 -12 24 24" aria-hidden="true">
      {poisoned && <path class="spikes" d={SPIKES} />}
      {kind === "same" ? <circle r="5" /> : kind === "other" ? <rect x="-4.6" y="-4.6" width="9.2" height="9.2" /> : <path class="third" d="M0-4.6L4.6 3.6H-4.6z" />}
    </svg>
  );
}

export const SPIKES = `M${Array.from({ length: 20 }, (_, i) => {
  const [radius, angle] = [i % 2 === 0 ? 11.4 : 8, (i * Math.PI) / 10];
  return `${(radius * Math.cos(angle)).toFixed(1)} ${(radius * Math.sin(angle)).toFixed(1)}`;
}).join("L")}Z`;

export function Tokens() {
  const row = useRef<HTMLDivElement>(null);
  const drag = useRef<{ id: number; x: number; moved: boolean } | null>(null);
  const { examples, truth } = attackedPrompt.value;
  const count = examples.length;
  const focused = examples.some((example) => example.id === selected.value) ? selected.value : examples[0].id;

  const focus = (place: number): void => {
    const id = now()[Math.max(0, Math.min(place, count - 1))].id;
    selected.value = id;
    requestAnimationFrame(() => row.current?.querySelector<HTMLElement>(`[data-id="${id}"]`)?.focus());
  };
  const pressed = (event: KeyboardEvent, id: number, place: number): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
    const key = event.key.toLowerCase();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined && event.shiftKey) {
      movedTo(id, place + step);
      focus(place + step);
    } else if (step !== undefined) focus(place + step);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(count - 1);
    else if (key === "enter" || key === " " || key === "p") poisonToggled(id);
    else if (key === "f") labelFlipped(id);
    else if (holdable && (event.key === "ArrowUp" || event.key === "ArrowDown")) nudgeGate(id, event.key === "ArrowUp" ? 1 : -1);
    else if (holdable && key === "g") holdGate(id, null);
    else if (key === "escape") selected.value = null;
    else return;
    event.preventDefault();
  };
  const placeAt = (x: number): number => {
    const box = row.current!.getBoundingClientRect();
    return Math.floor(((x - box.left) / box.width) * (count + 1));
  };

  return (
    <div class="tokens" ref={row} role="group" style={{ "--columns": count + 1 }}
      onPointerMove={(event) => {
        const held = drag.current;
        if (held === null || !event.isPrimary) return;
        if (event.buttons === 0) { // it was let go elsewhere
          drag.current = null;
          return;
        }
        if (!held.moved && Math.abs(event.clientX - held.x) > 6) {
          held.moved = true;
          row.current!.setPointerCapture(event.pointerId); // by the row, so that no click on an example follows
        }
        if (held.moved) movedTo(held.id, Math.min(placeAt(event.clientX), count - 1));
      }}
      onPointerUp={() => { drag.current = null; }} onPointerCancel={() => { drag.current = null; }}
      aria-label={`Examples of the prompt, the query last. Arrow keys choose, ${poisonable ? "Enter poisons, " : ""}F flips the label, Shift with an arrow moves${holdable ? ", up opens its gate and down shuts it, G lets the gate go" : ""}.`}>
      {examples.map((example, place) => (
        <div key={example.id} data-id={example.id} role="button" tabIndex={example.id === focused ? 0 : -1}
          class={`token ${example.outlier ? "poisoned" : ""} ${selected.value === example.id ? "selected" : ""}`}
          aria-pressed={poisonable ? example.outlier : lies(example)} aria-label={described(example, place, count)}
          onFocus={() => { selected.value = example.id; }}
          onKeyDown={(event) => pressed(event, example.id, place)}
          onClick={(event) => {
            if ((event.target as HTMLElement).closest(".label") !== null) labelFlipped(example.id);
            else poisonToggled(example.id);
          }}
          onPointerDown={(event) => {
            if (event.button === 0 && event.isPrimary) drag.current = { id: example.id, x: event.clientX, moved: false };
          }}>
          <Shape kind={kindOf(example)} poisoned={example.outlier} />
          <span class={`label ${lies(example) ? "lies" : ""}`}>{example.label > 0 ? "+" : "−"}</span>
        </div>
      ))}
      <div class="token query" title={`The query; its true label is ${truth > 0 ? "+1" : "−1"}`}>
        <Shape kind="same" />
        <span class="label">?</span>
        <span class="unseen">The query: a circle, its true label is {truth > 0 ? "plus" : "minus"}.</span>
      </div>
    </div>
  );
}

/** Buttons for the chosen example: for touch, and for whoever does not like keys. */
export function Editor() {
  const { examples } = attackedPrompt.value;
  const place = examples.findIndex((example) => example.id === selected.value);
  if (place < 0) {
    return <p class={`editor ${holdable ? "holds" : ""}`}>Click an example to {poisonable ? "poison it, its sign to flip its label" : "flip its label"}; drag it nearer to the query or away from it{holdable && "; drag a gate bar up or down to hold that gate"}.<br />By keys: arrows choose, {poisonable && "Enter poisons, "}F flips, Shift with an arrow moves{holdable && ", up and down hold its gate, G lets go"}.</p>;
  }
  const example = examples[place];
  return (
    <p class={`editor ${holdable ? "holds" : ""}`}>
      <span class="which">{described(example, place, examples.length)}.</span>
      <span class="buttons">
        {poisonable && <button type="button" onClick={() => poisonToggled(example.id)}>{example.outlier ? "Clean it" : "Poison it"}</button>}
        <button type="button" onClick={() => labelFlipped(example.id)}>Flip its label</button>
        <button type="button" aria-disabled={place === 0} onClick={() => movedTo(example.id, place - 1)}>← Farther</button>
        <button type="button" aria-disabled={place === examples.length - 1} onClick={() => movedTo(example.id, place + 1)}>Nearer →</button>
      </span>
      {holdable && <HoldOne id={example.id} place={place} />}
    </p>
  );
}
