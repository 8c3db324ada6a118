// Gates held by hand: for a kind of examples in one move, and for the chosen one; the bars themselves can be dragged.
import { announce } from "../announced";
import { exhibits } from "../exhibits";
import { heldNow } from "../lab";
import { FINE, fine, type Hold } from "../models/held";
import { FIELDS, state } from "../state";
import { Choice, Slider } from "./parts";

/** Whether a model has gates to hold. */
export const holdable = FIELDS.poison.hold !== undefined;
const WORDS: Record<Hold, string> = { none: "no gates, all are free", poisoned: "of the poisoned examples", clean: "of the clean examples", examples: "of all examples" };
const softmax = exhibits.poison?.models.some(({ kind }) => kind === "softmax");

/** Hold the gate of one example, or let it go. */
export function holdGate(id: number, value: number | null): void {
  const now = state.peek();
  const { [id]: _, ...rest } = now.edits.gates;
  const gates = value === null ? rest : { ...rest, [id]: fine(value) };
  if (JSON.stringify(gates) !== JSON.stringify(now.edits.gates)) state.value = { ...now, edits: { ...now.edits, gates } };
  announce(value === null ? "Its gate is free" : `Its gate is held at ${fine(value).toFixed(2)}`);
}

/** By the keyboard: up opens, down shuts, both by a step once the gate is held. */
export function nudgeGate(id: number, direction: 1 | -1): void {
  const held = state.peek().edits.gates[id];
  holdGate(id, held === undefined ? (direction === 1 ? 1 : 0) : held + direction / FINE);
}

/** Gates of many examples, in this prompt and in the random ones over which errors are counted. */
export function HoldMany() {
  if (!holdable) return null;
  const { hold, gate } = state.value.values.poison;
  const { words } = FIELDS.poison.hold as { words: readonly Hold[] };
  return (
    <>
      <Choice tab="poison" name="hold" label="Hold gates" options={Object.fromEntries(words.map((word) => [word, WORDS[word]]))}>
        {hold === "none" ? "Take the gate out of the models’ hands: open it on poison, or shut it." : <>What arrives of these examples is fixed in every model with
          gates; all other gates stay as they are. In Python: <code>clamp("gates", {Number(gate)}, where="{hold}")</code>.</>}
        {softmax && " A softmax Transformer has no gate to hold."}</Choice>
      {hold !== "none" && <Slider tab="poison" name="gate" label="at" show={(value) => value.toFixed(2)}>0 is shut, 1 lets all of it in.</Slider>}
    </>
  );
}

/** The gate of the chosen example. */
export function HoldOne({ id, place }: { id: number; place: number }) {
  const own = state.value.edits.gates[id];
  const held = heldNow.value?.[place] ?? NaN;
  if (own === undefined) {
    return (
      <span class="buttons hold">
        {!Number.isNaN(held) && <span class="soft">gate held with the others’</span>}
        <button type="button" onClick={() => holdGate(id, 1)}>Hold its gate open</button>
        <button type="button" onClick={() => holdGate(id, 0)}>Shut it</button>
      </span>
    );
  }
  return (
    <span class="buttons hold holding">
      <label>gate held at <output>{own.toFixed(2)}</output>
        <input type="range" min="0" max="1" step={1 / FINE} value={own} data-hold
          onInput={(event) => holdGate(id, Number(event.currentTarget.value))} /></label>
      <button type="button" onClick={() => holdGate(id, null)}>Let it go</button>
    </span>
  );
}
