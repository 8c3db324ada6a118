// Regression with outliers: models and estimators read one prompt of numbers, some of them poisoned.
import type { ComponentChildren } from "preact";
import { exhibits, type Model } from "../exhibits";
import { redraw, state } from "../state";
import { answers, ESTIMATORS, numberPrompt, outliersIn, regressors, squaredErrors } from "../regressions";
import { Choice, largestOf, percent, type Preset, Presets, share, signed, Slider, small, Strip } from "./parts";
import { PLACES } from "./poison";
import { Measures, MeasureEditor } from "./measures";
import { Scatter } from "./scatter";
import { Training } from "./training";

const prompts = exhibits.regression?.prompts;
const trained = prompts?.trained;

const presets: Preset[] = prompts?.words !== undefined ? [
  { title: "As in training", values: {}, look: "Prompts of the distribution that the models were trained on." },
  ...(outliersIn ? [
    { title: "No poison", values: { fraction: 0 }, look: "Clean examples only. Click a dot to poison it: which answers move?" },
    { title: "Labels turned around", values: { fraction: 0.6, rule: "flip" },
      look: "More examples are poisoned than not, and say the opposite. A model that lets them in answers with the wrong sign." }] : []),
] : [
  { title: "As in training", values: {},
    look: "Two in five examples carry a mark and a label of ±3 that means nothing. Mamba’s dots for them are empty: they do not arrive, and its answer is close to the truth. The linear Transformer lets all of them in." },
  { title: "Labels turned around", values: { fraction: 0.6, rule: "flip" },
    look: "A majority now says the opposite of the truth, which training never had. The linear Transformer, and ridge regression on all examples too, err more than who always answers 0; Mamba’s gate looks at the mark and not at the label, so it still reads the minority." },
  { title: "Larger lies", values: { size: 9 },
    look: "The labels of poisoned examples are three times as large as in training. What is let in of them hurts with its square: the linear Transformer’s error more than triples, Mamba’s stays where it was." },
  { title: "No poison", values: { fraction: 0 },
    look: "Clean examples only: the gate has nothing to shut out, but it still forgets, and the linear Transformer errs a little less than Mamba. Ridge regression, which is no single step, is far ahead of both. Click a dot to poison it." },
  { title: "Faint marks", values: { scale: 0.2 },
    look: "The mark that gives poison away is a tenth of what it was. Mamba’s gate hardly sees it: the dots of poisoned examples fill up, and its error with them. Raise the size of the mark again." },
  { title: "Before training", values: { trained: 0 },
    look: "The gate knows no marks yet, and forgets at once: only the last few examples arrive, whatever they are. Play the training: the clean dots fill, the poisoned ones do not." },
];

export function RegressionTab() {
  const values = state.value.values.regression;
  const poisoned = numberPrompt.value.examples.filter((example) => example.outlier).length;
  const rules = { random: "± a number (random)", flip: "the opposite (flip)", target: "always 1 (target)" };
  return (
    <>
      <p class="intro">{prompts!.words !== undefined ? `${prompts!.words} They run in this page, in double precision.` : <>Now labels are numbers: y = w·x with a little noise, and a new w in every prompt. The query asks
        for one more y. An attacker marks some of the examples with a number in a coordinate of its own and makes up their labels.</>}</p>
      <Presets tab="regression" presets={presets} />
      <div class="columns">
        <section class="controls" aria-label={outliersIn ? "The attack" : "The prompts"}>
          <h2>{outliersIn ? "The attack" : "The prompts"}</h2>
          {outliersIn && <>
            <Slider tab="regression" name="fraction" label="Poisoned examples" show={(value) => `${percent(value)}, here ${poisoned} of ${values.length}`}>
              Training had {percent(trained!.fraction)}.</Slider>
            <Slider tab="regression" name="scale" label="Size of the mark" show={(value) => value.toFixed(1)}>The outlier in their inputs, by which a gate can tell them; training had {trained!.scale}.</Slider>
            <Choice tab="regression" name="rule" label="They say" options={rules}>Training had {trained!.rule}.</Choice>
            {values.rule === "random" && <Slider tab="regression" name="size" label="Size of their labels" show={(value) => `±${value}`}>True labels have a spread of 1; training had ±{trained!.size}.</Slider>}
            <Choice tab="regression" name="placement" label="They stand" options={PLACES}>A gate forgets: what is near the query counts most.</Choice>
          </>}
          <Slider tab="regression" name="length" label="Examples">Training had {trained!.length}.</Slider>
        </section>
        <Stage />
      </div>
    </>
  );
}

function Stage() {
  const { query } = numberPrompt.value;
  const touched = Object.keys(state.value.outliers).length > 0;
  const { readings, estimates } = answers.value;
  const top = topOf(squaredErrors.value.means);
  return (
    <section class="stage" aria-label="The prompt and what everyone makes of it">
      <div class="bar">
        <h2>The prompt</h2>
        <button type="button" onClick={() => redraw("regression")}>Another prompt</button>
        <button type="button" aria-disabled={!touched} onClick={() => { state.value = { ...state.peek(), outliers: {} }; }}>Undo my changes</button>
      </div>
      <p class="legend soft">Every dot is an example: across what its label should be, up what it is. On the diagonal lies the truth{outliersIn && <>; <span class="bad">poisoned</span> ones
        have spikes</>}. A dot is as full as much of it arrives in the model. On the dotted line stands the query: a ring for its true value, the model’s answer in the model’s colour,
        and between them the error.{outliersIn && " Click a dot to poison it, or to clean it."}</p>
      <div class="scatters">
        {regressors.map((model, i) => <Scatter key={model.key} model={model} reading={readings[i]} ridge={outliersIn ? estimates[0] : undefined} clean={estimates[estimates.length - 1]} />)}
      </div>
      <div class={`board numbers-board ${numberPrompt.value.examples.length > 24 || readings.some(({ layers }) => layers.length > 1) ? "roomy" : ""}`}>
        <div class="head">
          <span class="side soft">labels; far from the query → next to it</span>
          <Measures />
          <span class="side"><b>truth {signed(query.clean)}</b></span>
        </div>
        <MeasureEditor />
        <p class="legend soft">Right: the answer, and the mean squared error over {squaredErrors.value.prompts.toLocaleString("en")} random prompts{outliersIn && " of this attack"}, on a
          scale up to {top.toFixed(1)}. Dotted: ridge regression{outliersIn && " that is told which examples are clean"}. Who always answers 0 errs by about {(1 + prompts!.noise ** 2).toFixed(2)}.</p>
        {regressors.map((model, i) => <ModelRow key={model.key} model={model} which={i} top={top} />)}
        {ESTIMATORS.map(({ key, name, words }, i) => (
          <article key={key} class="row reference-row" data-model={key}>
            <h3>{name}</h3>
            <p class="strips soft">{words}</p>
            <Result answer={estimates[i]} which={regressors.length + i} name={key} top={top} />
          </article>))}
      </div>
      {regressors[0].steps.length > 1 && <Training tab="regression" steps={regressors[0].steps}>At 0 the gate knows no marks.</Training>}
    </section>
  );
}

/** The upper end of the bars: a bit above the largest error. */
const topOf = (means: number[]): number => Math.max(1.5, Math.ceil(2 * Math.max(0, ...means.slice(0, means.length / 2))) / 2);

function ModelRow({ model, which, top }: { model: Model; which: number; top: number }) {
  const { examples } = numberPrompt.value;
  const { output, layers } = answers.value.readings[which];
  const { scores, gates, votes } = layers[layers.length - 1];
  const taken = gates ?? scores;
  const bars = layers.length > 1 ? examples.length + 1 : examples.length;
  const kinds = Array.from({ length: bars }, (_, i) => (i === examples.length ? "other" : examples[i].outlier ? "poisoned" : "clean"));
  const [all, poison] = examples.reduce(([sum, bad], { outlier }, i) => [sum + Math.abs(taken[i]), bad + (outlier ? Math.abs(taken[i]) : 0)], [0, 0]);
  const part = poison / Math.max(all, 1e-300);
  const what = gates === null ? "attention" : "gate";
  return (
    <article class="row" data-model={model.key} style={{ "--model": model.colour }}>
      <h3><span class="dot" aria-hidden="true" />{model.name}{model.note !== undefined && <small class="note">{model.note}</small>}
        <small>{gates === null ? "attention in shares that sum to 1, then neurons" : model.member === "linear" ? "no gate: every example counts alike" : "a gate on every example"}
          {layers.length > 1 && "; the bars show its last layer"}</small></h3>
      <div class={`strips two ${layers.length > 1 ? "whole" : ""}`} role="img" aria-label={`${model.name}: poisoned examples get ${percent(part)} of the ${what}`} style={{ "--columns": examples.length + 1 }}>
        <span class="names" aria-hidden="true"><i>{gates === null ? "share" : "gate"}</i><i>vote</i></span>
        <Strip name="gate" values={taken} kinds={kinds} most={largestOf(taken, bars)} height={26} />
        <Strip name="vote" values={votes} kinds={kinds} most={largestOf(votes, bars)} height={30} />
      </div>
      <Result answer={output} which={which} name={model.key} top={top}>
        {kinds.includes("poisoned") && <span class="numbers soft">poison gets {percent(part, part < 0.1 ? 1 : 0)} of the {what}</span>}
      </Result>
    </article>
  );
}

function Result({ answer, which, name, top, children }: { answer: number; which: number; name: string; top: number; children?: ComponentChildren }) {
  const off = answer - numberPrompt.value.query.clean;
  return (
    <div class="result">
      <span><b data-output={answer}>{signed(answer)}</b> <span class="margin">off by {Math.abs(off).toFixed(2)}</span></span>
      <SquaredBar which={which} name={name} top={top} />
      {children}
    </div>
  );
}

/** A mean squared error with its uncertainty, beside the floor. */
function SquaredBar({ which, name, top }: { which: number; name: string; top: number }) {
  const { prompts: counted, means } = squaredErrors.value;
  const half = means.length / 2;
  const [mean, floor] = [means[which] ?? 0, means[half - 1] ?? 0];
  const spread = counted > 1 ? 1.96 * Math.sqrt(Math.max(means[half + which] - mean ** 2, 0) / counted) : 0;
  const at = (value: number): string => share(Math.min(Math.max(value, 0) / top, 1));
  return (
    <span class="error" data-error={name} data-prompts={counted} data-mean={mean}>
      <span class="caption soft">mean squared error</span>
      <span class="track" aria-hidden="true">
        <span class="fill" style={{ width: at(mean) }} />
        <span class="range" style={{ left: at(mean - spread), width: at(2 * spread) }} />
        <span class="reference" style={{ left: at(floor) }} title={ESTIMATORS[ESTIMATORS.length - 1].name} />
      </span>
      <span class="number">{counted === 0 ? "…" : small(mean)}<span class="unseen"> squared error</span></span>
    </span>
  );
}

export function regressionSummary(): string {
  const { readings, estimates } = answers.value;
  const said = [...regressors.map(({ name }, i) => `${name} ${signed(readings[i].output)}`), `${ESTIMATORS[0].name} ${signed(estimates[0])}`];
  return `The true value is ${signed(numberPrompt.value.query.clean)}. ${said.join(" · ")}.`;
}
