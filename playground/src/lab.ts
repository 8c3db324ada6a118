// The models and what they make of the chosen prompts; everything that the views show is computed here.
import { computed, untracked } from "@preact/signals";
import { exhibits, type Model, model, unpacked } from "./exhibits";
import { QUERIES } from "./fields";
import { type Columns, type Held, read, type Reading } from "./models/gated";
import { heldGates, type Hold } from "./models/held";
import { attend, decide, readSoftmax } from "./models/softmax";
import { ask, chainOfThought, endsOnly, type Reasoner } from "./models/chain";
import { columnsOf, drawAttacked, drawMixed, edited, floor, newPatterns, type Prompt } from "./prompts/classification";
import { answerOdds, type ChainEdits, drawChains, type Slips, vectorsOf, votes } from "./prompts/chains";
import { shuffled, source } from "./random";
import { running } from "./running";
import { attackOf, mixingOf, type Order, slipsOf, state, type Tab } from "./state";

// A tab without data is not shown, and what belongs to it is never computed.
/** The models that read labelled prompts. */
export const readers = (exhibits.poison?.models ?? []).map(model);
export const softmaxes = (exhibits.softmax?.models ?? []).map(model);
const reasoners = (exhibits.chain?.models ?? []).map(model);
const chains = exhibits.chain?.prompts!;
const basis = chains === undefined ? new Float64Array(0) : unpacked(chains.basis);
const patternVectors = basis.slice(0, chains?.patterns * chains?.dimension);
export const MANY_PROMPTS = 7_654_321; // the seed of the prompts over which errors are counted

/** The values of a tab; computed, so that what depends on them rests while others change. */
export const of = (tab: Tab) => computed(() => state.value.values[tab]);
const poison = of("poison");
const thought = of("thought");
const mixing = of("softmax");
export const watched = (tab: Tab, text: () => string) => computed(() => (state.value.tab === tab ? text() : ""));

// --- poisoned prompts -------------------------------------------------------------------------------------------

export const attack = computed(() => attackOf(poison.value));
const edits = computed(() => state.value.edits);
const attacked = exhibits.poison?.prompts!;
const outlierScale = computed(() => attack.value.scale * attacked.trainingScale);

const attackedSource = computed(() => source(Number(poison.value.seed), 0));
/** As it was drawn, and with the changes by hand. */
export const drawnPrompt = computed<Prompt>(() => drawAttacked(attack.value, attacked, attackedSource.value));
export const attackedPrompt = computed<Prompt>(() =>
  edited(drawnPrompt.value, edits.value, attack.value, attackedSource.value));

/** A prompt as models with different label norms read it, each made when it is first asked for. */
function columnsByNorm(prompt: Prompt, scale: number): (norm: number) => Columns {
  const made = new Map<number, Columns>();
  return (norm) => {
    if (!made.has(norm)) made.set(norm, columnsOf(prompt, attacked, scale, norm, attacked.own?.mixtures));
    return made.get(norm)!;
  };
}

/** What a model makes of a labelled prompt; a softmax has no gate that could be held. */
export function readWith(one: Model, at: number, columns: Columns, held?: Held): Reading {
  return one.kind === "softmax" ? readSoftmax(one.weights[at][0], columns) : read(one, one.weights[at], columns, held);
}

const attackedByNorm = computed(() => columnsByNorm(attackedPrompt.value, outlierScale.value));
export const attackedColumns = computed<Columns>(() => attackedByNorm.value(1));

/** What the gates of the examples are held at: in every prompt, and by hand in this one. */
const heldIn = ({ examples }: Prompt, single?: Record<number, number>): Held | undefined =>
  heldGates(examples, (poison.value.hold ?? "none") as Hold, Number(poison.value.gate), single);
export const heldNow = computed(() => heldIn(attackedPrompt.value, edits.value.gates));

export const readings = computed<Reading[]>(() =>
  readers.map((one) => readWith(one, Number(poison.value.trained), attackedByNorm.value(one.norm), heldNow.value)));

export const attackedErrors = running(
  watched("poison", () => JSON.stringify({ ...poison.value, seed: 0, layer: 0 })),
  () => {
    const [now, at, scale] = [attack.value, Number(poison.value.trained), outlierScale.value];
    return (prompt) => {
      const drawn = drawAttacked(now, attacked, source(MANY_PROMPTS, prompt));
      const columns = columnsByNorm(drawn, scale);
      const held = heldIn(drawn);
      return readers.map((one) => (readWith(one, at, columns(one.norm), held).output * drawn.truth > 0 ? 0 : 1));
    };
  });

export const attackedFloor = computed(() => floor(attack.value.length, attack.value.fraction, attack.value.decisive));

// --- chains -----------------------------------------------------------------------------------------------------

/** The model that is chosen, where there are several. */
export const reasoner = computed(() => reasoners[Number(thought.value.model ?? 1) - 1]);
/** The same with its weights at the step of training that is chosen. */
const reasoning = computed<Reasoner>(() => ({ ...reasoner.value, layers: reasoner.value.weights[Number(thought.value.trained)] }));

function think(one: Reasoner, seed: number, number: number, slips: Slips, changes: ChainEdits = {}) {
  const draw = source(seed, number);
  const prompt = drawChains(slips, chains.patterns, chains.steps, draw, changes);
  const context = vectorsOf(prompt, basis, chains.dimension, chains.noise, chains.steps, draw);
  return { prompt, context, ...thoughtsOn(one, context, prompt.truth[0]), voted: votes(prompt) };
}

/** Both ways of reasoning about a query, on examples given as vectors. */
export function thoughtsOn(one: Reasoner, context: ReturnType<typeof vectorsOf>, query: number) {
  const { steps, dimension } = chains;
  const first = patternVectors.slice(query * dimension, (query + 1) * dimension);
  return {
    steps: chainOfThought(one, steps, dimension, context, first, patternVectors),
    direct: ask(one, steps, dimension, endsOnly(context, steps, dimension), [first], patternVectors),
  };
}

/** The chains as they were drawn, and with the steps changed by hand. */
export const drawnChains = computed(() =>
  drawChains(slipsOf(thought.value), chains.patterns, chains.steps, source(Number(thought.value.seed), 0)));
export const thoughts = computed(() =>
  think(reasoning.value, Number(thought.value.seed), 0, slipsOf(thought.value),
    state.value.chainEdits));

/** Errors of the last step of the chain, of all its steps, of the answer at once; the same of the ideal votes. */
export const thoughtErrors = running(
  watched("thought", () => JSON.stringify({ ...thought.value, seed: 0, look: 0 })),
  () => {
    const slips = slipsOf(thought.value);
    const one = reasoning.value;
    return (number) => {
      const { prompt, steps, direct, voted } = think(one, MANY_PROMPTS, number, slips);
      const truth = prompt.truth.slice(1);
      const last = truth.length - 1;
      const wrong = (said: number, k: number): number => (said === truth[k] ? 0 : 1);
      const mean = (said: number[]): number => said.reduce((sum, one, k) => sum + wrong(one, k), 0) / truth.length;
      const said = steps.map((step) => step.answer);
      return [wrong(said[last], last), mean(said), wrong(direct.answer, last), wrong(voted.chain[last], last),
        mean(voted.chain), wrong(voted.direct, last)];
    };
  }, 2000);

export const odds = computed(() => answerOdds(slipsOf(thought.value), chains.patterns, chains.steps));

// --- softmax ----------------------------------------------------------------------------------------------------

export const softmaxModel = computed(() => softmaxes[mixing.value.start === "usual" ? 0 : 1]);
const softmaxWeights = computed(() => softmaxModel.value.weights[Number(mixing.value.trained)][0]);
const mixed = exhibits.softmax?.prompts!;
/** The norm of what each neuron reads; pruning goes by it (li2024icl, section 3.5). */
export const norms = computed(() => softmaxWeights.value.norms);

/** Neurons in the order in which they are pruned. */
export function pruningOrder(found: Float64Array, order: Order): number[] {
  if (order === "random") return shuffled(source(11, 0), 0, found.length);
  const ranked = Array.from(found.keys()).sort((i, j) => found[i] - found[j]);
  return order === "small" ? ranked : ranked.reverse();
}

function keptNeurons(found: Float64Array, rate: number, order: Order): Uint8Array {
  const keep = new Uint8Array(found.length).fill(1);
  for (const neuron of pruningOrder(found, order).slice(0, Math.round(rate * found.length))) keep[neuron] = 0;
  return keep;
}

export const kept = computed(() => keptNeurons(norms.value, Number(mixing.value.pruned), mixing.value.order as Order));

type Query = (typeof QUERIES)[number];
/** The query's pattern and the other one, by the name of the first. */
const TASKS: Record<Query, readonly [number, number]> = { first: [0, 1], second: [1, 0], third: [2, 0] };

const mixtures = computed(() => {
  const now = mixingOf(mixing.value);
  return now.outside ? newPatterns(now.sum) : undefined;
});

export const mixedPrompt = computed(() =>
  // Outside one of the task's two patterns is mu1', which the slider mixes.
  drawMixed(mixingOf(mixing.value), mixed, source(Number(mixing.value.seed), 0),
    mixing.value.domain === "outside" ? TASKS[mixing.value.query as Query] : undefined));

export const mixedColumns = computed(() =>
  columnsOf(mixedPrompt.value, mixed, 0, softmaxModel.value.norm, mixtures.value));

export const mixedReading = computed(() => {
  const { attention, pooled } = attend(softmaxWeights.value, mixedColumns.value);
  return { attention, pooled, output: decide(softmaxWeights.value, pooled, kept.value) };
});

/** What decides how the neurons see a prompt; the same text while only pruning changes. */
const seenBy = computed(() => JSON.stringify({ ...mixing.value, pruned: 0, order: "", seed: 0, query: "" }));

/** Prompts as the neurons read them, each made when it is first asked for. */
const pooledPrompts = computed(() => {
  void seenBy.value;
  const [now, weights, norm, patterns] = untracked(() =>
    [mixingOf(mixing.value), softmaxWeights.value, softmaxModel.value.norm, mixtures.value] as const);
  const found: { pooled: Float64Array; truth: number; query: number }[] = [];
  return (number: number) => {
    if (found[number] === undefined) {
      const prompt = drawMixed(now, mixed, source(MANY_PROMPTS, number));
      const { pooled } = attend(weights, columnsOf(prompt, mixed, 0, norm, patterns));
      found[number] = { pooled, truth: prompt.truth, query: prompt.query.pattern };
    }
    return found[number];
  };
});

/** Error and hinge loss with the neurons that are kept; then, for each pattern of a query, how often it is asked and
 *  answered wrong. */
export const mixedErrors = running(
  watched("softmax", () => JSON.stringify({ ...mixing.value, seed: 0, query: "" })),
  () => {
    const [weights, keep, prompts] = [softmaxWeights.value, kept.value, pooledPrompts.value];
    return (number) => {
      const { pooled, truth, query } = prompts(number);
      const margin = truth * decide(weights, pooled, keep);
      const wrong = margin > 0 ? 0 : 1;
      return [wrong, Math.max(0, 1 - margin), ...[0, 1, 2].flatMap((one) => (one === query ? [1, wrong] : [0, 0]))];
    };
  });

export const mixedFloor = computed(() => floor(Number(mixing.value.length), 0, Number(mixing.value.decisive)));

/** Errors over the whole range of S1 and of pruning, for the curves beside the sliders. */
export const SUMS = [-1.28, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.28];
export const RATES = Array.from({ length: 11 }, (_, i) => i / 10);

export const sumCurve = running(
  watched("softmax", () => mixing.value.domain === "outside"
    ? JSON.stringify({ ...mixing.value, seed: 0, query: "", sum: 0 }) : ""),
  () => {
    const [now, weights, norm, keep] = [mixingOf(mixing.value), softmaxWeights.value, softmaxModel.value.norm, kept.value];
    const tables = SUMS.map(newPatterns);
    return (number) => {
      const prompt = drawMixed(now, mixed, source(MANY_PROMPTS, number));
      return tables.map((table) =>
        (decide(weights, attend(weights, columnsOf(prompt, mixed, 0, norm, table)).pooled, keep) * prompt.truth > 0 ? 0 : 1));
    };
  }, 1000);

export const rateCurve = running(
  watched("softmax", () => JSON.stringify({ ...mixing.value, seed: 0, query: "", pruned: 0 })),
  () => {
    const [weights, prompts, found] = [softmaxWeights.value, pooledPrompts.value, norms.value];
    const keeps = RATES.map((rate) => keptNeurons(found, rate, mixing.value.order as Order));
    return (number) => {
      const { pooled, truth } = prompts(number);
      const margins = keeps.map((keep) => truth * decide(weights, pooled, keep));
      return [...margins.map((margin) => (margin > 0 ? 0 : 1)), ...margins.map((margin) => Math.max(0, 1 - margin))];
    };
  }, 1000);
