// Poisoned prompts: the whole gated family reads one prompt side by side.
import { attack, attackedErrors, attackedFloor, attackedPrompt, exhibits, gated, readings } from "../lab";
import type { Model } from "../exhibits";
import type { Reading } from "../models/gated";
import { directionsOf } from "../prompts/classification";
import { redraw, state } from "../state";
import { Answer, Choice, chosen, ErrorBar, firstEdits, largestOf, percent, type Preset, Presets, signed, Slider, small, Strip } from "./parts";
import { Editor, selected, Shape, Tokens } from "./tokens";
import { Training } from "./training";

const NOTES: Record<string, string> = {
  mamba: "a gate on every example: what it lets in, and how much of the past it keeps",
  linear: "no gate: every example counts alike",
  mamba2_step: "its step also weighs the example itself, like Mamba’s gate",
  retnet: "the past fades at a fixed rate",
  gated_retention: "may forget the past, cannot refuse the present",
  mamba2: "may forget the past, cannot refuse the present",
  gla: "a gate for every coordinate, on the past only; the bars show their mean",
};

const presets: Preset[] = [
  { title: "A few lies", values: { fraction: 0.3 },
    look: "30 % of the examples are poisoned and say the opposite of the truth. All models still get nearly every prompt right: the truth outvotes the lies." },
  { title: "A majority of lies", values: { fraction: 0.6 },
    look: "More examples lie than tell the truth. The linear Transformer believes the majority; Mamba’s gate bars under poisoned examples are flat, so their votes never arrive." },
  { title: "Before training", values: { fraction: 0.6, trained: 0 },
    look: "The gate is random and mostly lets the last examples in, poisoned or not. Now move the training slider to the right: within 20 steps the gate bars under poisoned examples are gone." },
  { title: "Weak poison", values: { fraction: 0.6, scale: 1, direction: "v3" },
    look: "Poison no stronger than in training, in a direction that barely moves the gate: the bars under poisoned examples are back, and Mamba’s error with them. Raise the strength to bring the filter back." },
  { title: "The gate opens", values: { fraction: 0, direction: "against" }, poisoned: [0],
    look: "One example carries poison that points against the training outliers. Far from the query Mamba has forgotten it. Drag it next to the query: it opens Mamba’s gate, gets nearly all of it, and the answer flips, as with other models whose gate it moves. For the linear Transformer it is one vote of twenty, wherever it stands." },
];
const DIRECTIONS = {
  paper: "the paper’s v1′, v2′, v3′", v1: "v1′ = .7 v1 + .6 v2 − .4 v3", v2: "v2′ = .4 v1 + .7 v2 − .6 v3",
  v3: "v3′ = −.7 v1 + .5 v2 + .5 v3", training: "as in training: v1, v2, v3", against: "against training: −v1′", own: "my own mixture …",
};
const RULES = { flip: "the opposite (flip)", target: "always +1 (target)", random: "a fair coin (random)" };
const PLACES = { random: "anywhere", far: "all far from the query", close: "all next to the query" };

export function Poison() {
  const values = state.value.values.poison;
  const first = firstEdits(presets.find((preset) => preset === chosen.value));
  const touched = JSON.stringify(state.value.edits) !== JSON.stringify(first);
  const poisoned = attackedPrompt.value.examples.filter((example) => example.outlier).length;
  const moved = state.value.edits.order !== null;
  const sum = directionsOf(attack.value, exhibits.poison.prompts).map((row) => row.reduce((a, b) => a + b, 0));
  return (
    <>
      <p class="intro">A prompt shows examples of a pattern and a label, then asks for the label of a last one, the query. An attacker
        adds a vector to some of the examples and chooses their labels. All models were trained on prompts in which 60&nbsp;% of the
        examples were poisoned and had random labels; they run in this page.</p>
      <Presets tab="poison" presets={presets} />
      <div class="columns">
        <section class="controls" aria-label="The attack">
          <h2>The attack</h2>
          <Slider tab="poison" name="fraction" label="Poisoned examples" show={(value) => `${percent(value)}, here ${poisoned} of ${values.length}`}>
            Past 50 % flipped labels outvote the truth.</Slider>
          <Choice tab="poison" name="rule" label="They say" options={RULES}>Only flipped labels push the linear Transformer’s error past one half.</Choice>
          <Slider tab="poison" name="scale" label="Strength" show={(value) => `${value.toFixed(1)} × training`}>
            Weak poison is hard to see: the gate needs a signal.</Slider>
          <Choice tab="poison" name="direction" label="Direction" options={DIRECTIONS}>
            v1, v2, v3 are the poison of training; an attack mixes them. The coefficients sum to {[...new Set(sum.map((one) => one.toFixed(2).replace("-", "−")))].join(", ")}:
            below 0 the gate opens instead of closing.</Choice>
          {values.direction === "own" && <div class="own">
            {(["first", "second", "third"] as const).map((name, i) => (
              <Slider key={name} tab="poison" name={name} label={`v${i + 1}`} show={(value) => value.toFixed(2)} />))}
          </div>}
          <Choice tab="poison" name="placement" label="They stand" options={PLACES}
            onChange={() => { state.value = { ...state.peek(), edits: { ...state.peek().edits, order: null } }; }}>
            {moved ? "You moved examples by hand; undo to sort them again." : "What is near the query is remembered best: try it with strength 1."}</Choice>
          <Slider tab="poison" name="length" label="Examples">More examples, smaller floor.</Slider>
        </section>
        <section class="stage" aria-label="The prompt and what every model makes of it">
          <div class="bar">
            <h2>The prompt</h2>
            <button type="button" onClick={() => { selected.value = null; redraw("poison"); }}>Another prompt</button>
            <button type="button" aria-disabled={!touched}
              onClick={() => { state.value = { ...state.peek(), edits: first }; }}>Undo my changes</button>
          </div>
          <div class="board">
            <div class="head">
              <span class="side soft">far from the query → next to it</span>
              <Tokens />
              <span class="side"><b>truth {attackedPrompt.value.truth > 0 ? "+1" : "−1"}</b></span>
            </div>
            <p class="key soft"><span><Shape same poisoned={false} /> the query’s pattern</span> <span><Shape same={false} poisoned={false} /> the
              other one</span> <span class="poisoned"><Shape same poisoned /> poisoned</span> <span><i class="label lies">+</i> a lie</span></p>
            <Editor />
            <p class="legend soft">Under each example three bars: <b>score</b> (how alike it is to the query), <b>gate</b> (how much of it
              arrives), both <span class="bad">red</span> if it is poisoned, and <b>vote</b> (label × score × gate;{" "}
              <span class="for">up for</span>, <span class="against">down against</span> the truth), each scaled within its row. On the right: the answer with its margin, and the
              error over {attackedErrors.value.prompts.toLocaleString("en")} random prompts of this attack; the
              dotted line is the floor, {attackedFloor.value < 0.0001 ? "below 0.01\u00a0%" : percent(attackedFloor.value, 2)}, which nobody beats who knows neither attack nor task.</p>
            {gated.map((model, i) => <Row key={model.key} model={model} reading={readings.value[i]} which={i} />)}
          </div>
          <Training tab="poison" steps={gated[0].steps}>At 0 the gate does not know poison: the last examples arrive, clean or not.</Training>
        </section>
      </div>
    </>
  );
}

function Row({ model, reading, which }: { model: Model; reading: Reading; which: number }) {
  const { examples, truth } = attackedPrompt.value;
  const count = examples.length;
  const kinds = examples.map((example) => (example.outlier ? "poisoned" : "clean"));
  const voted = Array.from(reading.votes.subarray(0, count), (vote) => vote * truth);
  const voteKinds = examples.map((example, i) => `${example.outlier ? "poisoned " : ""}${voted[i] < 0 ? "against" : "for"}`);
  const place = examples.findIndex((example) => example.id === selected.value);
  const mostGate = largestOf(reading.gates, count);
  const margin = reading.output * truth;
  const poisonedShare = kinds.reduce((sum, kind, i) => sum + (kind === "poisoned" ? reading.gates[i] : 0), 0)
    / Math.max(reading.gates.subarray(0, count).reduce((a, b) => a + b, 0), 1e-300);
  return (
    <article class="row" data-model={model.key} style={{ "--model": model.colour }}>
      <h3><span class="dot" aria-hidden="true" />{model.name}<small>{NOTES[model.key]}</small></h3>
      <div class="strips" role="img" aria-label={`${model.name}: poisoned examples get ${percent(poisonedShare)} of the gate`}
        style={{ "--columns": count + 1, "--chosen": place }}>
        {place >= 0 && <span class="column" />}
        <span class="names" aria-hidden="true"><i>score</i><i>gate</i><i>vote</i></span>
        <Strip name="score" values={reading.scores} kinds={kinds} most={largestOf(reading.scores, count)} height={20} />
        <Strip name="gate" values={reading.gates} kinds={kinds} most={Math.max(mostGate, 0.25)} height={22} />
        <Strip name="vote" values={voted} kinds={voteKinds} most={largestOf(voted, count)} height={26} />
      </div>
      <div class="result">
        <Answer output={reading.output} truth={truth} /> <span class="margin" data-output={reading.output}>margin {signed(margin)}</span>
        <ErrorBar counted={attackedErrors} which={which} reference={attackedFloor.value} referenceName="information floor" name={model.key} caption="error, random prompts" />
        { kinds.includes("poisoned") && <span class="numbers soft">poison gets {percent(poisonedShare, poisonedShare < 0.1 ? 1 : 0)} of the gate; the largest is {mostGate.toFixed(2)}</span>}
        {place >= 0 && <span class="numbers soft">example {place + 1}: score {reading.scores[place].toFixed(2)}, gate {small(reading.gates[place])}, vote {signed(voted[place])}</span>}
      </div>
    </article>
  );
}

/** What the models said, in one sentence for screen readers. */
export function poisonSummary(): string {
  const { truth } = attackedPrompt.value;
  const right = gated.filter((_, i) => readings.value[i].output * truth > 0).map((model) => model.name);
  const wrong = gated.filter((model) => !right.includes(model.name)).map((model) => model.name);
  return `Right: ${right.join(" · ") || "none"}. Wrong: ${wrong.join(" · ") || "none"}.`;
}
