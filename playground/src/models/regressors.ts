// What regression prompts allow: the predictors of iclab.probes.regressors, for one prompt.
import { type Columns, dot } from "./gated";

const HUBER_STEPS = 30;
const HUBER_THRESHOLD = 1.345;

/** The solution of a positive definite system, by Gaussian elimination; both arguments are used up. */
function solved(matrix: Float64Array, right: Float64Array): Float64Array {
  const n = right.length;
  for (let i = 0; i < n; i++) {
    for (let row = i + 1; row < n; row++) {
      const factor = matrix[row * n + i] / matrix[i * n + i];
      if (factor === 0) continue;
      for (let j = i; j < n; j++) matrix[row * n + j] -= factor * matrix[i * n + j];
      right[row] -= factor * right[i];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let j = i + 1; j < n; j++) right[i] -= matrix[i * n + j] * right[j];
    right[i] /= matrix[i * n + i];
  }
  return right;
}

/** argmin_w sum_i used_i (y_i - w.x_i)^2 + penalty |w|^2; columns hold inputs and labels of norm 1, the query's last. */
function penalised({ width, count, values }: Columns, used: ArrayLike<number>, penalty: number): Float64Array {
  const d = width - 1;
  const moment = new Float64Array(d * d);
  const right = new Float64Array(d);
  for (let i = 0; i < d; i++) moment[i * d + i] = penalty;
  for (let t = 0; t < count - 1; t++) {
    if (used[t] === 0) continue;
    const [at, label] = [t * width, values[t * width + d]];
    for (let i = 0; i < d; i++) {
      const weighted = used[t] * values[at + i];
      if (weighted === 0) continue;
      for (let j = 0; j < d; j++) moment[i * d + j] += weighted * values[at + j];
      right[i] += weighted * label;
    }
  }
  return solved(moment, right);
}

const answered = (weights: Float64Array, { width, count, values }: Columns): number => dot(weights, 0, values, (count - 1) * width, width - 1);

/** sigma^2 signals: with it, ridge is the posterior mean of Gaussian tasks. */
export const bestPenalty = (noise: number, signals: number): number => Math.max(noise ** 2, 1e-12) * signals;

/** Ridge regression on the examples that are used. */
export function ridge(columns: Columns, used: ArrayLike<number>, penalty: number): number {
  return answered(penalised(columns, used, penalty), columns);
}

/** Huber's regression by reweighted fits; it knows the scale of the noise. */
export function huber(columns: Columns, penalty: number, noise: number): number {
  const { width, count, values } = columns;
  const threshold = HUBER_THRESHOLD * Math.max(noise, 1e-6);
  const used = new Float64Array(count - 1).fill(1);
  let fitted = penalised(columns, used, penalty);
  for (let step = 1; step < HUBER_STEPS; step++) {
    for (let i = 0; i < count - 1; i++) {
      const residual = Math.abs(values[i * width + width - 1] - dot(fitted, 0, values, i * width, width - 1));
      used[i] = Math.min(1, threshold / Math.max(residual, 1e-12));
    }
    fitted = penalised(columns, used, penalty);
  }
  return answered(fitted, columns);
}

/** One step of gradient descent from 0 on the mean squared error of the examples that are used. */
export function descentStep(columns: Columns, used: ArrayLike<number>, rate: number): number {
  const { width, count, values } = columns;
  let [sum, total] = [0, 0];
  for (let i = 0; i < count - 1; i++) {
    sum += used[i] * values[i * width + width - 1] * dot(values, i * width, values, (count - 1) * width, width - 1);
    total += used[i];
  }
  return (rate * sum) / Math.max(total, 1);
}

/** The rate of the best such step on the clean ones of `length` examples. */
export function cleanStepRate(length: number, fraction: number, signals: number, noise: number): number {
  const share = 1 - fraction;
  let [chances, weighted] = [0, 0];
  let logChoose = 0; // log of length over count
  for (let count = 1; count <= length; count++) {
    logChoose += Math.log((length - count + 1) / count);
    const rest = length - count;
    const chance = Math.exp(logChoose + count * Math.log(share) + (rest === 0 ? 0 : rest * Math.log(fraction)));
    chances += chance;
    weighted += chance * (1 + (1 + signals * (1 + noise ** 2)) / count);
  }
  return chances / weighted;
}
