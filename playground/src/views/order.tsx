// How the order parameters of a model move along training, on the scale of the training slider's stops.
import { exhibits, type OrderCurves } from "../exhibits";
import { state } from "../state";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [300, 120, 26, 12, 8, 22];
type Line = OrderCurves["curves"][number];

/** Whether this page has the curves. */
const order = exhibits.poison?.order;
const PANELS = [
  { title: "Score of two examples’ patterns", names: { "score, equal": "equal patterns", "score, pairs": "different ones" } },
  { title: "Gate weights w along patterns", names: { "w, relevant": "relevant", "w, irrelevant": "irrelevant", "w, outlier": "outliers" } },
];

/** Where a training step lies between the stops of the slider, as a number of stops. */
export function stopAt(step: number, stops: number[]): number {
  const next = Math.max(stops.findIndex((stop) => stop >= step), 1);
  return next - 1 + (step - stops[next - 1]) / (stops[next] - stops[next - 1]);
}

export function Order() {
  if (order === undefined) return null;
  const model = exhibits.poison!.models.find(({ key }) => key === order.model)!;
  const foretold = order.curves.every(({ predicted }) => predicted.length > 0);
  const at = Number(state.value.values.poison.trained);
  return (
    <section class="order" aria-label="Order parameters along training" style={{ "--model": model.colour }}>
      <h2>What training changes in {model.name}</h2>
      <p class="soft">A few numbers tell most of it. The score of equal patterns grows: examples of the query’s pattern speak up. w along the outliers falls, so the gate shuts on
        poison. {foretold && "Solid: this model. Dashed: what the population dynamics predict, the expected gradient without a seed. "}The mark is the step of the slider above.</p>
      <div class="curves">
        {PANELS.map(({ title, names }) => (
          <Chart key={title} title={title} stops={model.steps} at={at} labels={Object.values(names)}
            lines={Object.keys(names).map((name) => order.curves.find((curve) => curve.name === name)!)} />))}
      </div>
    </section>
  );
}

function Chart({ title, stops, at, labels, lines }: { title: string; stops: number[]; at: number; labels: string[]; lines: Line[] }) {
  const every = [0, ...lines.flatMap(({ trained, predicted }) => [...trained, ...predicted])];
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const x = (step: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * stopAt(step, stops)) / (stops.length - 1);
  const y = (value: number): number => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (value - low)) / (high - low);
  const points = (values: number[]): string => values.map((value, i) => `${x(order!.steps[i]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const now = order!.steps.indexOf(stops[at]);
  return (
    <figure class="curve">
      <figcaption>{title}<span class="soft keys">{labels.map((label, i) => (
        <span key={label}><i class={`line${i}`} aria-hidden="true" />{label} <b data-order={lines[i].name}>{lines[i].trained[now].toFixed(2).replace("-", "−")}</b></span>))}</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}. ${labels.map((label, i) =>
        `${label}: ${lines[i].trained[0].toFixed(2)} at first, ${lines[i].trained[now].toFixed(2)} now, ${lines[i].trained[lines[i].trained.length - 1].toFixed(2)} at the end`).join("; ")}`}>
        <line class="axis" x1={LEFT} x2={WIDTH - RIGHT} y1={y(0)} y2={y(0)} />
        <text x={LEFT - 4} y={y(0) + 3} text-anchor="end">0</text>
        {[low, high].filter((value) => Math.abs(value) > 0.15 * (high - low)).map((value) => (
          <text key={value} x={LEFT - 4} y={y(value) + 3} text-anchor="end">{value.toFixed(1).replace("-", "−")}</text>))}
        {stops.map((step) => <text key={step} x={x(step)} y={HEIGHT - 4} text-anchor="middle">{step}</text>)}
        <line class="now" x1={x(stops[at])} x2={x(stops[at])} y1="2" y2={HEIGHT - BOTTOM + 4} />
        {lines.map(({ name, trained, predicted }, i) => (
          <g key={name} class={`line${i}`}>
            <polyline class="second" points={points(predicted)} />
            <polyline points={points(trained)} />
            <circle cx={x(stops[at])} cy={y(trained[now])} r="3" />
          </g>))}
      </svg>
    </figure>
  );
}
