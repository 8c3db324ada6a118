// One prompt of numbers as a model sees it: labels against what they should be, every example as full as it arrives.
import type { Model } from "../exhibits";
import type { Reading } from "../models/gated";
import { numberPrompt } from "../regressions";
import { pointed, toggled } from "./measures";
import { largestOf, signed } from "./parts";
import { SPIKES } from "./tokens";

const [WIDTH, HEIGHT, EDGE] = [300, 220, 8];
/** How far from a dot a click may be, in units of the drawing. */
const REACH = 16;
const DOT = 4.2;

export function Scatter({ model, reading, ridge, clean }: {
  model: Model; reading: Reading;
  /** What ridge regression says on all examples, if some can be poisoned, and on the clean ones. */
  ridge?: number; clean: number;
}) {
  const { examples, query } = numberPrompt.value;
  const { gates, scores } = reading.layers[reading.layers.length - 1];
  const taken = gates ?? scores;
  const most = largestOf(taken, examples.length);
  const across = Math.max(2, Math.abs(query.exact), ...examples.map(({ exact }) => Math.abs(exact))) * 1.08;
  const up = Math.max(2, Math.abs(query.clean), ...examples.map(({ label, clean: true_ }) => Math.max(Math.abs(label), Math.abs(true_)))) * 1.12;
  const x = (value: number): number => WIDTH / 2 + (value / across) * (WIDTH / 2 - EDGE);
  const y = (value: number): number => HEIGHT / 2 - (Math.max(-up, Math.min(value, up)) / up) * (HEIGHT / 2 - EDGE);
  const slope = Math.min(across, up);
  const asked = x(query.exact);
  // Words stand towards the middle; those of two estimates that are close on either side.
  const side = asked > WIDTH / 2 ? -1 : 1;
  const apart = ridge !== undefined && Math.abs(y(ridge) - y(clean)) < 11 ? -side : side;
  const word = (text: string, value: number, where: number) => (
    <text class="said" x={asked + 12 * where} y={y(value) + 3} text-anchor={where < 0 ? "end" : "start"}>{text}</text>);
  const nearest = (event: MouseEvent & { currentTarget: SVGSVGElement }): void => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(event.currentTarget.getScreenCTM()!.inverse());
    const away = examples.map(({ exact, label }) => Math.hypot(x(exact) - at.x, y(label) - at.y));
    const found = away.indexOf(Math.min(...away));
    if (away[found] <= REACH) toggled(examples[found].id);
  };
  return (
    <figure class="scatter" data-scatter={model.key} style={{ "--model": model.colour }}>
      <figcaption><span class="dot" aria-hidden="true" /><b>{model.name}</b> says {signed(reading.output)}, truth {signed(query.clean)}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" onClick={nearest}
        aria-label={`${model.name} answers ${signed(reading.output)}, the true value is ${signed(query.clean)}; ridge regression ${ridge === undefined ? "" : `on all examples ${signed(ridge)}, on the clean ones `}${signed(clean)}`}>
        <path class="axis" d={`M0 ${HEIGHT / 2}H${WIDTH}M${WIDTH / 2} 0V${HEIGHT}`} />
        <path class="diagonal" d={`M${x(-slope)} ${y(-slope)}L${x(slope)} ${y(slope)}`} />
        <text x={WIDTH - 2} y={HEIGHT / 2 + 11} text-anchor="end">should be</text>
        <text x={WIDTH / 2 + 4} y="10">is</text>
        <path class="asked" d={`M${asked} 0V${HEIGHT}`} />
        {examples.map(({ id, exact, label, outlier }, i) => (
          <g key={id} class={`${outlier ? "poisoned" : "clean"} ${pointed.value === id ? "pointed" : ""}`} transform={`translate(${x(exact).toFixed(1)} ${y(label).toFixed(1)})`}>
            {outlier && <path class="spikes" d={SPIKES} transform="scale(.62)" />}
            <circle class="rim" r={DOT} />
            <circle r={DOT * Math.sqrt(Math.min(Math.abs(taken[i]) / Math.max(most, 1e-300), 1))} />
          </g>))}
        <path class="gap" d={`M${asked} ${y(query.clean)}V${y(reading.output)}`} />
        {[ridge, clean].map((value, i) => value !== undefined && <path key={i} class="estimate" d={`M${asked - 9} ${y(value)}h18`} />)}
        {ridge !== undefined && word("ridge", ridge, apart)}
        {word(ridge === undefined ? "ridge" : "ridge, clean", clean, side)}
        <circle class="true" cx={asked} cy={y(query.clean)} r="6" />
        <path class="answer" transform={`translate(${asked} ${y(reading.output)})`} d="M0-6L6 0L0 6L-6 0z" />
      </svg>
    </figure>
  );
}
