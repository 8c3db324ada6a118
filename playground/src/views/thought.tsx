// Chain of thought: examples as chains, the model's attention on their columns, and plain in-context learning beside it.
import { announce } from "../announced";
import { exhibits } from "../exhibits";
import { drawnChains, odds, reasoner, thoughtErrors, thoughts } from "../lab";
import { type Chain, tally } from "../prompts/chains";
import { change, redraw, state } from "../state";
import { Choice, ErrorBar, largestOf, percent, type Preset, Presets, share, Slider } from "./parts";
import { Training } from "./training";

const STEPS = exhibits.chain?.prompts.steps ?? 0;
const { own } = exhibits.chain?.prompts ?? {};
const models = exhibits.chain?.models ?? [];
/** A to Z, then A1, B1, and so on. */
const letter = (pattern: number): string => String.fromCharCode(65 + (pattern % 26)) + (pattern < 26 ? "" : Math.floor(pattern / 26));

const presets: Preset[] = own !== undefined ? [
  { title: "As in training", values: {},
    look: "Examples as the models were trained on, but the query stands alone: the model has to write every step itself." },
  { title: "Slips that scatter", values: { right: 0.7 },
    look: "Three steps in ten are wrong, each somewhere else. Does the most frequent end of a chain still win?" },
  { title: "Slips that pile up", values: { right: 0.71, pile: 0.91 },
    look: "Nearly all slips go to the same neighbour. Each step is still right most often, but a chain seldom ends where it should: compare the two ways of answering." },
] : [
  { title: "Careful examples", values: { right: 1 },
    look: "No step is wrong. Both ways of prompting work: the model finds the columns whose step and input match its own, and copies their output." },
  { title: "Slips that scatter", values: { right: 0.7, pile: 0.12 },
    look: "Three steps in ten are wrong, each somewhere else. Only a third of the chains end right, but that is still the most frequent end: both ways survive." },
  { title: "Slips that pile up", values: { right: 0.71, pile: 0.91 },
    look: "Nearly all slips go to the same neighbour. Each step is still right most often, so step by step the model stays right. But the most frequent end of a chain is now a wrong one (the paper’s Condition 1 fails): asked at once, it answers that more often than not." },
  { title: "Few that match", values: { right: 1, matching: 0.15, length: 20 },
    look: "Hardly any example starts where the query does. Attention must find the few that do: compare with training step 0." },
];
function Token({ pattern, kind = "" }: { pattern: number; kind?: string }) {
  return <span class={`pattern p${pattern % 10} ${kind}`}>{letter(pattern)}</span>;
}

/** Make a step of an example wrong, or right again; as it was drawn, if that is what it comes to. */
function stepToggled(example: number, k: number): void {
  const isRight = ({ tokens, right }: Chain): boolean => tokens[k + 1] === right[k];
  const wanted = !isRight(thoughts.peek().prompt.examples[example]);
  const { [`${example}.${k}`]: _, ...chainEdits } = state.peek().chainEdits;
  if (isRight(drawnChains.peek().examples[example]) !== wanted) chainEdits[`${example}.${k}`] = wanted ? 0 : 1;
  state.value = { ...state.peek(), chainEdits };
  const now = thoughts.peek().prompt.examples[example];
  announce(`Step ${k + 1} of example ${example + 1} now leads from ${letter(now.tokens[k])} to ${letter(now.tokens[k + 1])}, `
    + `which is ${wanted ? "right" : "wrong"}.`);
}

export function Thought() {
  const values = state.value.values.thought;
  const look = Number(values.look) - 1;
  const condition = odds.value[0] > Math.max(...odds.value.slice(1));
  const rival = Math.max(...odds.value.slice(1));
  return (
    <>
      {own !== undefined && <p class="intro">{own.words}</p>}
      <p class="intro">An example is a chain: from one letter to the next in {STEPS} steps, and each step has its own rule. The query gives the first letter. With
        a <b>chain of thought</b> the model writes one step, reads it back, writes the next; with plain <b>in-context learning</b> it
        sees only the ends of the chains and answers at once. It never sees the rule, only examples, and those make mistakes.</p>
      <Presets tab="thought" presets={presets} />
      <div class="columns">
        <section class="controls" aria-label="The examples">
          <h2>The examples</h2>
          {models.length > 1 && <Choice tab="thought" name="model" label="The model" options={Object.fromEntries(models.map(({ name }, i) => [i + 1, name]))} />}
          <Slider tab="thought" name="right" label="Right steps" show={(value) => percent(value, 1)}>
            {percent(odds.value[0], 0)} of the chains of {STEPS} steps make no mistake or mend it.</Slider>
          <Slider tab="thought" name="pile" label="Slips that go to one rival" show={(value) => percent(value)}>
            The likeliest wrong end has {percent(rival, 0)}: the right one {condition ? "leads (Condition 1 holds)" : "does not lead (Condition 1 fails)"}.</Slider>
          <Slider tab="thought" name="matching" label="Examples that start like the query" show={(value) => percent(value)}>
            The others say nothing about the first step.</Slider>
          <Slider tab="thought" name="length" label="Examples">More of them help a vote only if the truth leads.</Slider>
        </section>
        <section class="stage" aria-label="The chains and what the model makes of them">
          <Answers />
          <div class="bar">
            <h2>The examples, seen from step {look + 1}</h2>
            <div class="buttons" role="group" aria-label="Which step of the reasoning to look at">
              {Array.from({ length: STEPS }, (_, k) => (
                <button key={k} type="button" aria-pressed={k === look} onClick={() => change("thought", { look: k + 1 })}>Step {k + 1}</button>))}
            </div>
            <button type="button" onClick={() => redraw("thought")}>Another prompt</button>
            <button type="button" aria-disabled={Object.keys(state.value.chainEdits).length === 0}
              onClick={() => { state.value = { ...state.peek(), chainEdits: {} }; }}>Undo my changes</button>
          </div>
          <p class="soft">Click a step’s output to make it wrong or right again; a <span class="bad">red</span> letter is a slip from the one before it, and what follows goes on from there. Letters without a
            colour belong to examples that do not match. Bars on
            the arrows are the attention of the chain of thought while it decodes step {look + 1}. The column on the right is all that
            in-context learning sees, its attention and the end of each chain: an end is red if it is not where a chain from its start leads.
            {reasoner.value.kind === "gated" && " For a gated stack the bars are score × gate in its last layer; hollow ones are negative."}</p>
          <Chains look={look} />
          {reasoner.value.steps.length > 1 && <Training tab="thought" steps={reasoner.value.steps}>At 0 attention is spread over all columns. First it leaves the other steps, then the other letters.</Training>}
        </section>
      </div>
    </>
  );
}

function Chains({ look }: { look: number }) {
  const { prompt, steps, direct } = thoughts.value;
  const mass = shares(steps[look].attention);
  const massAtOnce = shares(direct.attention);
  const top = largestOf(mass, mass.length);
  const topDirect = largestOf(massAtOnce, massAtOnce.length);
  const here = look === 0 ? prompt.truth[0] : steps[look - 1].answer;
  return (
    <ol class="chains" aria-label={`${prompt.examples.length} examples, then the query`}>
      {prompt.examples.map((example, i) => (
        <li key={i} class={example.tokens[look] === here ? "matches" : ""}>
          <span class="chain">
            <Token pattern={example.tokens[0]} />
            {example.right.map((right, k) => {
              const said = example.tokens[k + 1];
              return (
                <span key={k} class="step">
                  <Arrow mass={mass[i * STEPS + k]} top={top} />
                  <button type="button" data-step={`${i}.${k}`} aria-pressed={said !== right}
                    aria-label={`Example ${i + 1}, step ${k + 1}: ${letter(example.tokens[k])} to ${letter(said)}, ${said === right ? "right" : "wrong"}; attention ${percent(mass[i * STEPS + k], 1)}`}
                    onClick={() => stepToggled(i, k)}>
                    <Token pattern={said} kind={said === right ? "" : "slip"} />
                  </button>
                </span>
              );
            })}
          </span>
          <span class="direct">
            <Arrow mass={massAtOnce[i * STEPS]} top={topDirect} />
            <Token pattern={example.tokens[STEPS]} kind={example.tokens[STEPS] === example.end ? "" : "slip"} />
            <span class="unseen">attention at once {percent(massAtOnce[i * STEPS], 1)}</span>
          </span>
        </li>
      ))}
      <li class="own-steps matches" aria-label="The query and the steps that the model has written so far">
        <span class="chain">
          <Token pattern={prompt.truth[0]} />
          {steps.slice(0, look).map((step, k) => (
            <span key={k} class="step"><Arrow mass={mass[prompt.examples.length * STEPS + k]} top={top} />
              <Token pattern={step.answer} kind={step.answer === prompt.truth[k + 1] ? "" : "slip"} /></span>))}
          <span class="step"><Arrow mass={0} top={1} /><span class="pattern asked">?</span></span>
        </span>
        <span class="soft">the query, asked for step {look + 1}</span>
      </li>
    </ol>
  );
}

/** Weights as parts of their sum without signs: attention as it is, and the weights of a gated stack, which may be negative. */
function shares(weights: Float64Array): Float64Array {
  const total = weights.reduce((sum, weight) => sum + Math.abs(weight), 0);
  return weights.map((weight) => (total > 0 ? weight / total : 0));
}

/** An arrow with a bar for the attention on its column; a hollow one if its weight is negative. */
function Arrow({ mass, top }: { mass: number; top: number }) {
  return <span class={`arrow ${mass < 0 ? "negative" : ""}`} data-share={mass}><span style={{ transform: `scaleX(${(top > 0 ? Math.abs(mass) / top : 0).toFixed(4)})` }} /></span>;
}

function Answers() {
  const { prompt, steps, direct, voted } = thoughts.value;
  const truth = prompt.truth.slice(1);
  const start = prompt.truth[0];
  const last = STEPS - 1;
  const rows = [
    { name: "Chain of thought", key: "cot", said: steps.map((step) => step.answer), which: 0, reference: thoughtErrors.value.means[3] },
    { name: "ideal vote, step by step", key: "vote", said: voted.chain, which: 3 },
    { name: "In-context learning", key: "icl", said: [direct.answer], which: 2, reference: thoughtErrors.value.means[5] },
    { name: "ideal vote, at once", key: "vote_icl", said: [voted.direct], which: 5 },
  ];
  return (
    <section class="answers" aria-label="Answers">
      <p class="truth">Query <Token pattern={start} />, the right chain: {truth.map((pattern, k) => <span key={k}> → <Token pattern={pattern} /></span>)}</p>
      <table>
        <thead><tr><th scope="col">who</th><th scope="col">says</th><th scope="col">error of the answer over {thoughtErrors.value.prompts.toLocaleString("en")} random prompts; dotted: the ideal vote, a count of the examples that match</th></tr></thead>
        <tbody>
          {rows.map(({ name, key, said, which, reference }) => {
            const ends = said.length === 1 ? [truth[last]] : truth;
            const right = said[said.length - 1] === truth[last];
            return (
              <tr key={key} data-who={key} class={key.startsWith("vote") ? "ideal" : ""}>
                <th scope="row">{name}</th>
                <td><Token pattern={start} />{said.map((pattern, k) => (
                  <span key={k}> {said.length === 1 ? "⇒" : "→"} <Token pattern={pattern} kind={pattern === ends[k] ? "" : "slip"} /></span>))}
                  <span class={`mark ${right ? "right" : "wrong"}`}> {right ? "✓ right" : "✗ wrong"}</span></td>
                <td><ErrorBar counted={thoughtErrors} which={which} name={key} reference={reference} referenceName="ideal vote" />
                  {said.length > 1 && <span class="soft">mean over the steps {percent(thoughtErrors.value.means[which + 1] ?? 0, 1)}</span>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <Supports />
    </section>
  );
}

/** How much each letter is supported: by the model's attention, and by the count of matching examples. */
function Supports() {
  const { prompt, steps, direct } = thoughts.value;
  const look = Number(state.value.values.thought.look) - 1;
  const here = look === 0 ? prompt.truth[0] : steps[look - 1].answer;
  const panels = [
    { title: `Chain of thought, step ${look + 1}`, model: steps[look].support, counts: tally(prompt, here, look, look + 1), right: prompt.truth[look + 1] },
    { title: "In-context learning", model: direct.support, counts: tally(prompt, prompt.truth[0], 0, STEPS), right: prompt.truth[STEPS] },
  ];
  return (
    <div class="supports">
      {panels.map(({ title, model, counts, right }) => {
        const total = Math.max(counts.reduce((a, b) => a + b, 0), 1);
        const top = Math.max(...model, 1e-9);
        const most = Math.max(...counts) / total || 1;
        return (
          <figure key={title}>
            <figcaption>{title} <span class="soft">solid: the model’s support, outline: share of the matching examples</span></figcaption>
            <div class="letters" style={{ "--letters": Math.min(counts.length, 20) }}>
              {counts.map((count, pattern) => (
                <span key={pattern} class={`letter ${pattern === right ? "right" : ""}`} title={`${letter(pattern)}: ${percent(count / total)} of the matching examples`}>
                  <span class="pair" aria-hidden="true">
                    <span class="model" style={{ height: share(Math.max(model[pattern], 0) / top) }} />
                    <span class="count" style={{ height: share(count / total / most) }} />
                  </span>
                  <Token pattern={pattern} />
                </span>
              ))}
            </div>
          </figure>
        );
      })}
    </div>
  );
}

export function thoughtSummary(): string {
  const { prompt, steps, direct } = thoughts.value;
  const truth = prompt.truth[STEPS];
  const said = (answer: number): string => `${letter(answer)}, ${answer === truth ? "right" : "wrong"}`;
  return `Chain of thought answers ${said(steps[STEPS - 1].answer)}; in-context learning ${said(direct.answer)}.`;
}
