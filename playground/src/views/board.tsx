// One prompt, and what every model makes of it, layer by layer.
import { exhibits, type Model } from "../exhibits";
import { attackedErrors, attackedFloor, attackedPrompt, heldNow, readers, readings } from "../lab";
import type { Reading } from "../models/gated";
import { change, redraw, state } from "../state";
import { holdGate } from "./hold";
import { Answer, chosen, ErrorBar, firstEdits, largestOf, type OnStrip, percent, type Preset, signed, Slider, small, Strip } from "./parts";
import { Order } from "./order";
import { Editor, poisonable, selected, Shape, Tokens } from "./tokens";
import { Training } from "./training";

const NOTES: Record<string, string> = {
  mamba: "a gate on every example: what it lets in, and how much of the past it keeps",
  linear: "no gate: every example counts alike",
  mamba2_step: "its step also weighs the example itself, like Mamba’s gate",
  retnet: "the past fades at a fixed rate",
  gated_retention: "may forget the past, cannot refuse the present",
  mamba2: "may forget the past, cannot refuse the present",
  gla: "a gate for every coordinate, on the past only; the bars show their mean",
  softmax: "attention in shares that sum to 1, then neurons; no gate",
};
const DEPTH = exhibits.poison?.prompts.own?.depth ?? 1;
/** More examples than this leave no room for the names of the bars beside them. */
const MANY = 24;
/** Most layers with a button each. */
const BUTTONS = 8;

export function Board({ presets, training }: { presets: Preset[]; training: string }) {
  const first = firstEdits(presets.find((preset) => preset === chosen.value));
  const touched = JSON.stringify(state.value.edits) !== JSON.stringify(first);
  const { examples, truth, partner } = attackedPrompt.value;
  const bystanders = examples.some((example) => !example.same && example.pattern !== partner);
  const gated = readers.some((model) => model.kind === "gated");
  const attending = readers.some((model) => model.kind === "softmax");
  return (
    <section class="stage" aria-label="The prompt and what every model makes of it">
      <div class="bar">
        <h2>The prompt</h2>
        <button type="button" onClick={() => { selected.value = null; redraw("poison"); }}>Another prompt</button>
        <button type="button" aria-disabled={!touched}
          onClick={() => { state.value = { ...state.peek(), edits: first }; }}>Undo my changes</button>
      </div>
      <div class={`board ${examples.length > MANY || DEPTH > 1 ? "roomy" : ""}`}>
        <div class="head">
          <span class="side soft">far from the query → next to it</span>
          <Tokens />
          <span class="side"><b>truth {truth > 0 ? "+1" : "−1"}</b></span>
        </div>
        <p class="key soft"><span><Shape kind="same" /> the query’s pattern</span> <span><Shape kind="other" /> the
          other one</span> {bystanders && <span><Shape kind="third" /> neither</span>} {poisonable && <span class="poisoned"><Shape kind="same" poisoned /> poisoned</span>} <span><i class="label lies">+</i> a lie</span></p>
        <Editor />
        <p class="legend soft">Under each example {gated && <>three bars: <b>score</b> (how alike it is to the query), <b>gate</b> (how much of it
          arrives), {poisonable && <>both <span class="bad">red</span> if it is poisoned, </>}and <b>vote</b> (label × score × gate;{" "}
          <span class="for">up for</span>, <span class="against">down against</span> the truth)</>}{gated && attending && <>; of a softmax Transformer </>}
          {attending && <>two bars: <b>share</b> (of the attention) and <b>vote</b> (what the active neurons make of that share, <span class="for">up for</span>,{" "}
            <span class="against">down against</span> the truth)</>}, each scaled within its row. On the right: the answer with its margin, which is the sum of the votes, and the
          error over {attackedErrors.value.prompts.toLocaleString("en")} random prompts of this attack; the
          dotted line is the floor, {attackedFloor.value < 0.0001 ? "below 0.01\u00a0%" : percent(attackedFloor.value, 2)}, which nobody beats who knows neither attack nor task.</p>
        <Layers />
        {readers.map((model, i) => <Row key={model.key} model={model} reading={readings.value[i]} which={i} />)}
      </div>
      {readers[0].steps.length > 1 && <Training tab="poison" steps={readers[0].steps}>{training}</Training>}
      <Order />
    </section>
  );
}

/** Which layer the bars show, where a model has several. */
function Layers() {
  if (DEPTH === 1) return null;
  const now = Number(state.value.values.poison.layer);
  return (
    <div class="layers">
      {DEPTH > BUTTONS ? <Slider tab="poison" name="layer" label="Layer" />
        : <div class="buttons" role="group" aria-label="Which layer the bars show">
          {Array.from({ length: DEPTH }, (_, n) => (
            <button key={n} type="button" aria-pressed={n + 1 === now} onClick={() => change("poison", { layer: n + 1 })}>Layer {n + 1}</button>))}
        </div>}
      <p class="soft">Every layer adds votes to the margin. {now > 1 ? "A column now also holds what earlier layers wrote into it: its score and its vote are no longer those of its example alone, and the query’s own column votes too."
        : "In the first layer a column is its example and nothing else."}</p>
    </div>
  );
}

function Row({ model, reading, which }: { model: Model; reading: Reading; which: number }) {
  const { examples, truth } = attackedPrompt.value;
  const count = examples.length;
  const depth = reading.layers.length;
  const at = Math.min(Number(state.value.values.poison.layer ?? depth), depth);
  const { scores, gates, votes } = reading.layers[at - 1];
  // From the second layer on the query's column votes too: earlier layers wrote into it.
  const bars = depth > 1 ? count + 1 : count;
  const kinds = Array.from({ length: bars }, (_, i) => (i === count ? "other" : examples[i].outlier ? "poisoned" : "clean"));
  const voted = Array.from(votes.subarray(0, bars), (vote) => vote * truth);
  const voteKinds = kinds.map((kind, i) => `${kind === "poisoned" ? "poisoned " : ""}${voted[i] < 0 ? "against" : "for"}`);
  const place = examples.findIndex((example) => example.id === selected.value);
  const margin = reading.output * truth;
  // A softmax has no gate: what an example gets is its share of the attention.
  const taken = gates ?? scores;
  const mostTaken = largestOf(taken, bars);
  const what = gates === null ? "attention" : "gate";
  const poisonedShare = kinds.reduce((sum, kind, i) => sum + (kind === "poisoned" ? taken[i] : 0), 0)
    / Math.max(taken.subarray(0, count).reduce((a, b) => a + b, 0), 1e-300);
  const added = reading.layers.map((layer) => truth * layer.votes.reduce((a, b) => a + b, 0));
  return (
    <article class="row" data-model={model.key} style={{ "--model": model.colour }}>
      <h3><span class="dot" aria-hidden="true" />{model.name}{model.note !== undefined && <small class="note">{model.note}</small>}<small>{NOTES[model.member]}</small></h3>
      <div class={`strips ${gates === null ? "ungated" : ""} ${depth > 1 ? "whole" : ""}`} role="img" aria-label={`${model.name}: poisoned examples get ${percent(poisonedShare)} of the ${what}`}
        style={{ "--columns": count + 1, "--chosen": place }}>
        {place >= 0 && <span class="column" />}
        <span class="names" aria-hidden="true"><i>{gates === null ? "share" : "score"}</i>{gates !== null && <i>gate</i>}<i>vote</i></span>
        <Strip name="score" values={scores} kinds={kinds} most={largestOf(scores, bars)} height={gates === null ? 45 : 20} />
        {gates !== null && <Strip name="gate" values={gates} kinds={kinds} most={Math.max(mostTaken, heldNow.value === undefined ? 0.25 : 1)} height={22}
          held={heldNow.value} onDrag={grip} />}
        <Strip name="vote" values={voted} kinds={voteKinds} most={largestOf(voted, bars)} height={26} />
      </div>
      <div class="result">
        <Answer output={reading.output} truth={truth} /> <span class="margin" data-output={reading.output}>margin {signed(margin)}</span>
        {depth > 1 && <span class="numbers soft" data-layers>layers add {depth > BUTTONS ? `${signed(added[at - 1])} in layer ${at}` : added.map(signed).join(" ")}</span>}
        <ErrorBar counted={attackedErrors} which={which} reference={attackedFloor.value} referenceName="information floor" name={model.key} caption="error, random prompts" />
        { kinds.includes("poisoned") && <span class="numbers soft">poison gets {percent(poisonedShare, poisonedShare < 0.1 ? 1 : 0)} of the {what}; the largest is {mostTaken.toFixed(2)}</span>}
        {place >= 0 && <span class="numbers soft">example {place + 1}: {gates === null ? "" : `score ${scores[place].toFixed(2)}, `}{gates === null ? "share" : "gate"} {small(taken[place])}, vote {signed(voted[place])}</span>}
      </div>
    </article>
  );
}

/** The bar that the mouse drags: where it took hold, whether it has moved since, and where the bar stood then, as the
 *  page below an example's words may move when that example is chosen. */
let grasped: { id: number; y: number; moves: boolean; foot: number; height: number } | null = null;

/** Drag a gate bar: the height of the strip is the range from 0 to 1. A finger only chooses; it may want to scroll. */
function grip(event: OnStrip): void {
  const strip = event.currentTarget;
  const box = strip.getBoundingClientRect();
  if (event.type === "pointerdown") {
    if (event.button !== 0 || !event.isPrimary) return;
    const example = attackedPrompt.peek().examples[Math.floor(((event.clientX - box.left) / box.width) * strip.viewBox.baseVal.width)];
    if (example === undefined) return; // the query's own column
    selected.value = example.id;
    if (event.pointerType === "touch") return;
    grasped = { id: example.id, y: event.clientY, moves: false, foot: box.bottom, height: box.height };
    strip.setPointerCapture(event.pointerId);
    event.preventDefault(); // no text is selected meanwhile
  } else if (grasped !== null && event.buttons === 0) grasped = null;
  else if (grasped !== null) {
    grasped.moves ||= Math.abs(event.clientY - grasped.y) > 2;
    if (grasped.moves) holdGate(grasped.id, (grasped.foot - event.clientY) / grasped.height);
  }
}

/** What the models said, in one sentence for screen readers. */
export function poisonSummary(): string {
  const { truth } = attackedPrompt.value;
  const right = readers.filter((_, i) => readings.value[i].output * truth > 0).map((model) => model.name);
  const wrong = readers.filter((model) => !right.includes(model.name)).map((model) => model.name);
  return `Right: ${right.join(" · ") || "none"}. Wrong: ${wrong.join(" · ") || "none"}.`;
}
