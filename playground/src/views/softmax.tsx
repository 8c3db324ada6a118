// The softmax Transformer: patterns mixed out of the training ones, and neurons pruned by their norms.
import type { ReadonlySignal } from "@preact/signals";
import { exhibits } from "../exhibits";
import {
  kept, mixedErrors, mixedFloor, mixedPrompt, mixedReading, norms, pruningOrder, RATES, rateCurve, softmaxModel, SUMS, sumCurve,
} from "../lab";
import { newPatterns } from "../prompts/classification";
import type { Counted } from "../running";
import { type Order, redraw, state } from "../state";
import { Answer, Choice, ErrorBar, largestOf, percent, type Preset, Presets, signed, Slider, Strip } from "./parts";
import { Shape } from "./tokens";
import { Training } from "./training";

const presets: Preset[] = [
  { title: "A pattern from outside", values: {},
    look: "The patterns of this task were never trained: they are mixtures of trained ones, μ1′ with a coefficient sum S1 of 1.28. The model answers as if it knew them." },
  { title: "Below one", values: { sum: 0 },
    look: "The coefficients of μ1′ sum to 0. A query that carries μ2′ no longer looks past the examples of μ1′: about half of its attention goes to them, and about a quarter of the prompts that ask for μ2′ go wrong. The paper’s theorem asks for a sum of at least 1; the curve below shows how sharp that line is." },
  { title: "Prune the small", values: { pruned: 0.75, order: "small" },
    look: "Three quarters of the neurons are gone, the smallest first: margins shrink, the answers hardly change." },
  { title: "Prune the large", values: { pruned: 0.75, order: "large" },
    look: "As many are gone, the largest first: nothing that decides is left. Move the slider back: the hinge loss grows from the first neuron on, the error only at the end. The paper’s figure has the error rise at once." },
  { title: "At home", values: { domain: "inside", irrelevantScale: 0.5 },
    look: "Patterns of training, in pairs that training never showed: no error to speak of." },
];
const STARTS = { small: "small start (δ .05, |q| 1)", usual: "usual start (δ .13, |q| 3)" };
const QUERIES = { first: "μ1′, against μ2′", second: "μ2′, against μ1′", third: "μ3′, against μ1′" };
const ORDERS = { small: "smallest first", large: "largest first", random: "at random" };
const DOMAINS = { outside: "new ones, out of domain", inside: "trained ones, new pairs" };

export function Softmax() {
  const values = state.value.values.softmax;
  const outside = values.domain === "outside";
  const { examples, truth } = mixedPrompt.value;
  const { attention, output } = mixedReading.value;
  const matching = examples.reduce((sum, example, i) => sum + (example.same ? attention[i] : 0), 0);
  return (
    <>
      <p class="intro">Training used six patterns, μ1 to μ6; here new ones are weighted sums of them, and S1 is the sum of the weights of the first. One layer of softmax attention and {norms.value.length} neurons. Attention gathers the examples that carry the query’s
        pattern; the neurons read their labels. Mix the pattern out of trained ones, or take neurons away, and watch the error.</p>
      <Presets tab="softmax" presets={presets} />
      <div class="columns">
        <section class="controls" aria-label="The test">
          <h2>The test</h2>
          <Choice tab="softmax" name="domain" label="Patterns" options={DOMAINS}>The model was trained on 6 of the 30 pairs.</Choice>
          {outside && <Slider tab="softmax" name="sum" label="S1, coefficient sum of μ1′" show={(value) => value.toFixed(2)}>
            The theorem needs 1 or more. Is there a cliff, or a slope?</Slider>}
          {outside && <Choice tab="softmax" name="query" label="The query carries" options={QUERIES}>The other pattern of the task is then μ2′ or μ1′; the error
            is over all tasks.</Choice>}
          <Slider tab="softmax" name="pruned" label="Neurons taken away" show={(value) => percent(value)}>Watch the margin first, then the error.</Slider>
          <Choice tab="softmax" name="order" label="Which ones" options={ORDERS}>By the length of what a neuron reads (a row of W_O W_V).</Choice>
          <Choice tab="softmax" name="start" label="The model" options={STARTS}>The paper leaves the start open; it decides how sharp its figures are.</Choice>
          <Slider tab="softmax" name="decisive" label="Examples that carry the task’s patterns" show={(value) => percent(value)}>
            The others carry a third pattern and a random label.</Slider>
          <Slider tab="softmax" name="irrelevantScale" label="Size of irrelevant patterns" show={(value) => `${(value / exhibits.softmax!.prompts.trainingIrrelevantScale).toFixed(1)} × training`}>
            1 × is the paper’s scale in domain, 10 × the one it tests with out of domain.</Slider>
          <Slider tab="softmax" name="length" label="Examples">Too few, and no example carries the query’s pattern.</Slider>
        </section>
        <section class="stage" aria-label="What the model makes of it">
          <div class="verdict">
            <p><b>This prompt</b> <Answer output={output} truth={truth} /> <span class="margin" data-output={output}>margin {signed(output * truth)}</span></p>
            <p><b>Error</b> over {mixedErrors.value.prompts.toLocaleString("en")} random prompts
              (dotted: the floor) <ErrorBar counted={mixedErrors} which={0} name="softmax" reference={mixedFloor.value} referenceName="information floor" />
              {outside && <span class="soft">by the query’s pattern: {[0, 1, 2].map((one) => {
                const [asked, wrong] = [2, 3].map((measure) => mixedErrors.value.means[measure + 2 * one] ?? 0);
                return <span key={one} data-query={one}>μ{one + 1}′ {percent(asked > 0 ? wrong / asked : 0, 1)}{one < 2 ? ", " : ""}</span>;
              })}</span>}</p>
            <p><b>Hinge loss</b> <span data-hinge={mixedErrors.value.means[1] ?? 0}>{(mixedErrors.value.means[1] ?? 0).toFixed(3)}</span>
              <span class="soft"> (it sees the margin shrink before an answer turns)</span></p>
          </div>
          {outside && <Mixture sum={Number(values.sum)} />}
          <div class="bar"><h2>Attention of the query</h2>
            <button type="button" onClick={() => redraw("softmax")}>Another prompt</button></div>
          <p class="soft">{percent(matching)} lies on examples that carry the query’s pattern (circles). Squares carry the other pattern
            of the task, small ones neither.</p>
          <Attention />
          <h2 class="next">Neurons</h2>
          <p class="soft">Sorted by the norm of what they read; <span class="for">blue</span> ones push towards +1,{" "}
            <span class="against">ochre</span> ones towards −1; grey ones are taken away. No answer at all counts as wrong.</p>
          <Neurons />
          <div class="curves">
            {outside && <Curve title="Error against S1; the theorem’s line at 1" counted={sumCurve} x={SUMS} now={Number(values.sum)} line={1} name="sum" />}
            <Curve title={`Error (solid) and hinge loss (dashed) against the share of neurons taken away, ${ORDERS[values.order as Order]}`}
              counted={rateCurve} x={RATES} now={Number(values.pruned)} name="pruned" />
          </div>
          <Training tab="softmax" steps={softmaxModel.value.steps}>At 0 attention hardly tells patterns apart and neurons are random.</Training>
        </section>
      </div>
    </>
  );
}

function Mixture({ sum }: { sum: number }) {
  const row = newPatterns(sum)[0];
  return (
    <figure class="mixture">
      <figcaption>μ1′ = {row.map((value, j) => (Math.abs(value) < 0.005 ? "" : ` ${value < 0 ? "−" : j === 0 ? "" : "+"} ${Math.abs(value).toFixed(2)} μ${j + 1}`)).join("")}
        <span class="soft"> sum {sum.toFixed(2)}, length 1</span></figcaption>
      <Strip name="coefficients" values={row} kinds={row.map((value) => (value < 0 ? "against" : "for"))} most={1} height={44} />
    </figure>
  );
}

function Attention() {
  const { examples, partner } = mixedPrompt.value;
  const { attention } = mixedReading.value;
  return (
    <div class="attention" style={{ "--columns": examples.length }}>
      <Strip name="score" values={attention} kinds={examples.map((example) => (example.same ? "clean" : "other"))} most={largestOf(attention, examples.length)} height={60} />
      <div class="tokens small" aria-hidden="true" style={{ "--columns": examples.length }}>
        {examples.map((example) => (
          <span key={example.id} class={`token ${example.same || example.pattern === partner ? "" : "bystander"}`}>
            <Shape kind={example.same ? "same" : "other"} /><span class="label">{example.label > 0 ? "+" : "−"}</span>
          </span>))}
      </div>
    </div>
  );
}

function Neurons() {
  const order = pruningOrder(norms.value, "small");
  const keep = kept.value;
  const half = order.length / 2;
  return <div class="neurons" role="img" aria-label={`${keep.reduce((a, b) => a + b, 0)} of ${keep.length} neurons are left`}>
    <Strip name="norms" values={order.map((neuron) => norms.value[neuron])} height={70} most={largestOf(norms.value, order.length)}
      kinds={order.map((neuron) => (keep[neuron] === 0 ? "gone" : neuron < half ? "for" : "against"))} />
  </div>;
}

/** The error over the range of a slider, where it stands now, and perhaps a second measure and a line. */
function Curve({ title, counted, x, now, line, name }: {
  title: string; counted: ReadonlySignal<Counted>; x: number[]; now: number; line?: number; name: string;
}) {
  const { means, prompts } = counted.value;
  const [left, right] = [x[0], x[x.length - 1]];
  const at = (value: number): number => 26 + (170 * (value - left)) / (right - left);
  const curves = Array.from({ length: Math.round(means.length / x.length) }, (_, i) => means.slice(i * x.length, (i + 1) * x.length));
  const top = Math.max(0.1, Math.ceil(Math.max(...means, 0) * 10) / 10);
  const y = (value: number): number => 84 - (76 * value) / top;
  const said = x.map((value, i) => `${value.toFixed(2)}: ${percent(means[i] ?? 0, 1)}`).join(", ");
  return (
    <figure class="curve" data-curve={name}>
      <figcaption>{title} <span class="soft">({prompts.toLocaleString("en")} prompts)</span></figcaption>
      <svg viewBox="0 0 200 100" role="img" aria-label={`${title}. Errors: ${said}`}>
        <line class="axis" x1="26" x2="196" y1="84" y2="84" />
        <text x="23" y="11" text-anchor="end">{top.toFixed(1)}</text><text x="23" y="86" text-anchor="end">0</text>
        <text x="26" y="96">{left.toFixed(1)}</text><text x="196" y="96" text-anchor="end">{right.toFixed(1)}</text>
        {line !== undefined && <line class="rule" x1={at(line)} x2={at(line)} y1="8" y2="84" />}
        {line !== undefined && <text x={at(line)} y="96" text-anchor="middle">{line}</text>}
        <line class="now" x1={at(now)} x2={at(now)} y1="8" y2="84" />
        {prompts > 0 && curves.map((values, i) => <polyline key={i} class={i === 0 ? "" : "second"} points={values.map((value, j) => `${at(x[j])},${y(value)}`).join(" ")} />)}
        {prompts > 0 && curves[0].map((value, i) => <circle key={i} cx={at(x[i])} cy={y(value)} r="2" />)}
      </svg>
    </figure>
  );
}

export function softmaxSummary(): string {
  const { output } = mixedReading.value;
  return `The model is ${output * mixedPrompt.value.truth > 0 ? "right" : "wrong"}, margin ${signed(output * mixedPrompt.value.truth)}.`;
}
