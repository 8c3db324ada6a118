// What the models and the estimators make of regression prompts; the views of the tab show it.
import { computed } from "@preact/signals";
import { exhibits, model, unpacked } from "./exhibits";
import { MANY_PROMPTS, of, readWith, watched } from "./lab";
import type { Columns, Reading } from "./models/gated";
import { bestPenalty, cleanStepRate, descentStep, huber, ridge } from "./models/regressors";
import { drawNumbers, numberColumns, type NumberPrompt, poisonedByHand, type Poisoning } from "./prompts/regression";
import { source } from "./random";
import { running } from "./running";
import { poisoningOf, state } from "./state";

export const regressors = (exhibits.regression?.models ?? []).map(model);
const prompts = exhibits.regression?.prompts!;
const tasks = prompts?.tasks === undefined ? undefined : unpacked(prompts.tasks);
const values = of("regression");
const poisoning = computed<Poisoning>(() => poisoningOf(values.value));

export interface Estimator { key: string; name: string; words: string; answer(columns: Columns, clean: Uint8Array, now: Poisoning): number }

/** Of Gaussian tasks, ridge on the clean examples is the best that can be. */
const floor = prompts?.tasks === undefined && prompts?.nonzero === null ? "the floor" : "the best for Gaussian tasks, which these are not";
const onAll: Estimator[] = [
  { key: "ridge", name: "ridge on all examples", words: "it also sees the outlier’s coordinates, but believes every label",
    answer: (columns, clean) => ridge(columns, new Uint8Array(clean.length).fill(1), bestPenalty(prompts.noise, prompts.signals)) },
  { key: "huber", name: "Huber’s regression", words: "gives labels far from its fit less weight",
    answer: (columns) => huber(columns, bestPenalty(prompts.noise, prompts.signals), prompts.noise) },
];
const onClean: Estimator[] = [
  { key: "step", name: "one step", words: "the best step of gradient descent, which is what one layer with a perfect gate can do",
    answer: (columns, clean, now) => descentStep(columns, clean, cleanStepRate(now.length, now.fraction, prompts.signals, prompts.noise)) },
  { key: "ridge_clean", name: "ridge", words: `${floor}, the dotted line of every bar`,
    answer: (columns, clean) => ridge(columns, clean, bestPenalty(prompts.noise, prompts.signals)) },
];

/** Whether examples can be poisoned. */
export const outliersIn = (prompts?.outliers ?? 0) > 0;
/** The estimators beside which the models stand; the last knows everything that can be known. */
export const ESTIMATORS: Estimator[] = outliersIn
  ? [...onAll, ...onClean.map((one) => ({ ...one, name: `${one.name}, clean examples`, words: `told which are clean: ${one.words}` }))] : onClean;

/** Answers of models and estimators to a prompt. */
function asked(prompt: NumberPrompt, now: Poisoning, at: number): { readings: Reading[]; estimates: number[] } {
  const clean = Uint8Array.from(prompt.examples, ({ outlier }) => (outlier ? 0 : 1));
  const columns = numberColumns(prompt, prompts, now.scale, 1);
  return {
    readings: regressors.map((one) => readWith(one, at, one.norm === 1 ? columns : numberColumns(prompt, prompts, now.scale, one.norm))),
    estimates: ESTIMATORS.map((one) => one.answer(columns, clean, now)),
  };
}

const draw = (seed: number, number: number): NumberPrompt => drawNumbers(poisoning.value, prompts, source(seed, number), tasks);
export const drawnNumbers = computed(() => draw(Number(values.value.seed), 0));
export const numberPrompt = computed(() => poisonedByHand(drawnNumbers.value, state.value.outliers, poisoning.value));
export const answers = computed(() => asked(numberPrompt.value, poisoning.value, Number(values.value.trained)));

/** Squared errors of models and estimators, then their squares, which tell how sure the means are. */
export const squaredErrors = running(
  watched("regression", () => JSON.stringify({ ...values.value, seed: 0 })),
  () => {
    const [now, at] = [poisoning.value, Number(values.value.trained)];
    return (number) => {
      const prompt = draw(MANY_PROMPTS, number);
      const { readings, estimates } = asked(prompt, now, at);
      const squares = [...readings.map(({ output }) => output), ...estimates].map((answer) => (answer - prompt.query.clean) ** 2);
      return [...squares, ...squares.map((square) => square ** 2)];
    };
  }, 2000);
