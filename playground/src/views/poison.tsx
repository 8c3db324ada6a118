// Poisoned prompts, as the mamba paper attacks them: the whole gated family reads one prompt side by side.
import { exhibits } from "../exhibits";
import { attack, attackedPrompt } from "../lab";
import { directionsOf } from "../prompts/classification";
import { state } from "../state";
import { Board } from "./board";
import { HoldMany } from "./hold";
import { Choice, percent, type Preset, Presets, Slider } from "./parts";

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
  { title: "Hold the gate open", values: { fraction: 0.6, hold: "examples", gate: 1 },
    look: "The gates of all examples are held open by hand, in every model: the lies arrive, and Mamba errs like the linear Transformer. So it is the gate that saves it. Open it on the poisoned ones alone, and it is worse still." },
  { title: "Shut it on poison", values: { fraction: 0.6, hold: "poisoned", gate: 0 },
    look: "The gates of poisoned examples are held shut in every model, and every model filters: even the linear Transformer, which has no gate of its own. How far can you open them before it goes wrong?" },
];
const DIRECTIONS = {
  paper: "the paper’s v1′, v2′, v3′", v1: "v1′ = .7 v1 + .6 v2 − .4 v3", v2: "v2′ = .4 v1 + .7 v2 − .6 v3",
  v3: "v3′ = −.7 v1 + .5 v2 + .5 v3", training: "as in training: v1, v2, v3", against: "against training: −v1′", own: "my own mixture …",
};
export const RULES = { flip: "the opposite (flip)", target: "always +1 (target)", random: "a fair coin (random)" };
export const PLACES = { random: "anywhere", far: "all far from the query", close: "all next to the query" };

export function Poison() {
  const values = state.value.values.poison;
  const poisoned = attackedPrompt.value.examples.filter((example) => example.outlier).length;
  const moved = state.value.edits.order !== null;
  const sum = directionsOf(attack.value, exhibits.poison!.prompts).map((row) => row.reduce((a, b) => a + b, 0));
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
          <HoldMany />
          <Slider tab="poison" name="length" label="Examples">More examples, smaller floor.</Slider>
        </section>
        <Board presets={presets} training="At 0 the gate does not know poison: the last examples arrive, clean or not." />
      </div>
    </>
  );
}
