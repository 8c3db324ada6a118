// The user's own models on prompts like those they were trained on, and the attack that the visitor chooses.
import { exhibits } from "../exhibits";
import { MIXED, MOST_EXAMPLES } from "../fields";
import { attack, attackedPrompt } from "../lab";
import { directionsOf } from "../prompts/classification";
import { FIELDS, state } from "../state";
import { Board } from "./board";
import { HoldMany } from "./hold";
import { Choice, percent, type Preset, Presets, Slider } from "./parts";
import { PLACES, RULES } from "./poison";
import { poisonable } from "./tokens";

const prompts = exhibits.poison?.prompts;
const own = prompts?.own;
const names = (prompts?.directions ?? []).map((_, i) => `v${i + 1}`);
const has = (field: string): boolean => FIELDS.poison[field] !== undefined;

const presets: Preset[] = [
  { title: "As in training", values: {},
    look: "Prompts of the distribution that the models were trained on." },
  ...(poisonable ? [
    { title: "No poison", values: { fraction: 0 },
      look: "Clean examples only. Poison some of them by hand: which bars react?" },
    { title: "A majority of lies", values: { fraction: 0.6, rule: "flip" },
      look: "60 % of the examples carry an outlier and the opposite label. A model that lets them in follows the majority; one whose gate bars are flat under them does not." },
    { title: "Against training", values: { fraction: 0, rule: "flip", direction: "against" }, poisoned: [0],
      look: "One example, far from the query, carries an outlier that points against those of training. Drag it next to the query: a gate that has learned to close for the one may open for the other." },
  ] : []),
];

export function OwnModels() {
  const values = state.value.values.poison;
  const poisoned = attackedPrompt.value.examples.filter((example) => example.outlier).length;
  const sums = new Set(directionsOf(attack.value, prompts!).map((row) => row.reduce((a, b) => a + b, 0).toFixed(2).replace("-", "−")));
  const tasks = Object.fromEntries(own!.tasks.map(({ name, pairs }) =>
    [name, name === "training" ? `as in training${pairs === null ? " (all)" : `, ${pairs.length}`}` : pairs === null ? "all" : `those that training left out, ${pairs.length}`]));
  const directions = {
    training: names.length === 1 ? "as in training" : `as in training: one of ${names.length}`, ...Object.fromEntries(names.map((name) => [name, `only ${name}`])),
    against: `against training: −${names.length === 1 ? "v1" : `(v1 + … + v${names.length})`}, length 1`, own: "my own mixture …",
  };
  return (
    <>
      <p class="intro">{own!.words} They run in this page, in double precision.</p>
      <Presets tab="poison" presets={presets} />
      <div class="columns">
        <section class="controls" aria-label="The prompts">
          <h2>The prompts</h2>
          {poisonable && <>
            <Slider tab="poison" name="fraction" label="Poisoned examples" show={(value) => `${percent(value)}, here ${poisoned} of ${values.length}`}>
              Training had {percent(own!.fraction)}.</Slider>
            <Choice tab="poison" name="rule" label="They say" options={RULES}>{own!.rule in RULES ? `Training had ${own!.rule}.`
              : `Training had a rule of your own, ${own!.rule}, which only Python can run.`}</Choice>
            <Slider tab="poison" name="scale" label="Strength" show={(value) => value.toFixed(2)}>Length of the outlier; training had {own!.scale}.</Slider>
            <Choice tab="poison" name="direction" label="Direction" options={Object.fromEntries(Object.entries(directions).filter(([name]) => words("direction").includes(name)))}>
              Coefficients over the outlier patterns; they sum to {[...sums].join(", ")}.</Choice>
            {values.direction === "own" && <div class="own">
              {MIXED.filter(has).map((name, i) => (
                <Slider key={name} tab="poison" name={name} label={`outlier pattern ${i + 1}`} show={(value) => value.toFixed(2)} />))}
            </div>}
            <Choice tab="poison" name="placement" label="They stand" options={PLACES}
              onChange={() => { state.value = { ...state.peek(), edits: { ...state.peek().edits, order: null } }; }}>
              {state.value.edits.order !== null && "You moved examples by hand; undo to sort them again."}</Choice>
          </>}
          <Choice tab="poison" name="tasks" label="Tasks" options={tasks}>Pairs of patterns; the first of a pair is +1.</Choice>
          {has("decisive") && <Slider tab="poison" name="decisive" label="Examples that carry the task’s patterns" show={(value) => percent(value)}>
            The others carry a third pattern and a random label.</Slider>}
          {has("irrelevantScale") && <Slider tab="poison" name="irrelevantScale" label="Size of irrelevant patterns" show={(value) => value.toFixed(2)}>
            Training had {prompts!.irrelevantScale}.</Slider>}
          <HoldMany />
          <Slider tab="poison" name="length" label="Examples">Training had {own!.length}{own!.length > MOST_EXAMPLES && `; the page shows at most ${MOST_EXAMPLES}`}.</Slider>
        </section>
        <Board presets={presets} training="" />
      </div>
    </>
  );
}

function words(field: string): readonly string[] {
  const rule = FIELDS.poison[field];
  return rule !== undefined && "words" in rule ? rule.words : [];
}
