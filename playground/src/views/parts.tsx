// Parts that all views share: sliders, choices, bars, answers, errors.
import { type ReadonlySignal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { type Counted, interval } from "../running";
import { toLink } from "../link";
import { selected } from "./tokens";
import type { Edits } from "../prompts/classification";
import { change, FIELDS, type State, state, type Tab, untouched, usual, type Values } from "../state";

export const percent = (value: number, digits = 0): string => `${(100 * value).toFixed(digits)}\u00a0%`;
/** A number that may be tiny. */
export const small = (value: number): string => (value > 0 && value < 0.001 ? "below 0.001" : value.toFixed(3));
/** A share as a length of CSS. */
export const share = (value: number): string => `${(100 * value).toFixed(2)}%`;
export const signed = (value: number): string => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);

interface SliderProps {
  tab: Tab;
  name: string;
  label: string;
  children?: ComponentChildren;
  show?: (value: number) => string;
  onChange?: (value: number) => void;
}

/** A slider for a field of the state, with its value and a word on what to look for. */
export function Slider({ tab, name, label, children, show = String, onChange }: SliderProps) {
  const id = useId();
  const field = FIELDS[tab][name];
  if ("words" in field) throw new Error(`${name} is not a number`);
  const value = state.value.values[tab][name] as number;
  return (
    <div class="control">
      <label for={id}>{label} <output for={id}>{show(value)}</output></label>
      <input id={id} type="range" min={field.least} max={field.most} step={field.step} value={value} data-field={name}
        aria-valuetext={show(value)} aria-describedby={`${id}-hint`}
        onInput={(event) => {
          const next = Number(event.currentTarget.value);
          change(tab, { [name]: next });
          onChange?.(next);
        }} />
      <p class="hint" id={`${id}-hint`}>{children}</p>
    </div>
  );
}

interface ChoiceProps {
  tab: Tab;
  name: string;
  label: string;
  options: Record<string, string>;
  children?: ComponentChildren;
  onChange?: () => void;
}

export function Choice({ tab, name, label, options, children, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <div class="control">
      <label for={id}>{label}</label>
      <select id={id} data-field={name} aria-describedby={`${id}-hint`} value={state.value.values[tab][name]}
        onChange={(event) => {
          const { value } = event.currentTarget;
          change(tab, { [name]: "words" in FIELDS[tab][name] ? value : Number(value) });
          onChange?.();
        }}>
        {Object.entries(options).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
      <p class="hint" id={`${id}-hint`}>{children}</p>
    </div>
  );
}

export interface Preset {
  title: string;
  /** What to do, and what to look for. */
  look: string;
  /** Fields that are not as usual. */
  values: Values;
  /** Examples poisoned by hand. */
  poisoned?: number[];
}

/** The changes by hand that a preset begins with; none without one. */
export function firstEdits(preset: Preset | undefined): Edits {
  return { ...untouched(), poison: Object.fromEntries((preset?.poisoned ?? []).map((id) => [id, true])) };
}

/** The state of a preset. */
function presetState(tab: Tab, preset: Preset): State {
  const { values } = preset;
  const fresh = usual();
  const now = state.peek();
  const made = { ...now, tab, values: { ...now.values, [tab]: { ...fresh.values[tab], ...values } } };
  return tab === "poison" ? { ...made, edits: firstEdits(preset) } : tab === "thought" ? { ...made, chainEdits: {} }
    : tab === "regression" ? { ...made, outliers: {} } : made;
}

/** The preset from which the visitor went on. */
export const chosen = signal<Preset | undefined>(undefined);

/** Buttons for things to try; what to look for stays in sight while the visitor goes on from there. */
export function Presets({ tab, presets }: { tab: Tab; presets: Preset[] }) {
  const now = toLink(state.value);
  const exact = presets.find((preset) => toLink(presetState(tab, preset)) === now);
  const shown = exact ?? presets.find((preset) => preset === chosen.value);
  useEffect(() => { chosen.value = shown; }, [shown]);
  return (
    <section class="presets" aria-label="Things to try">
      <h2>Try this</h2>
      <div class="buttons">
        {presets.map((preset) => (
          <button key={preset.title} type="button" aria-pressed={preset === exact} onClick={() => { selected.value = null; state.value = presetState(tab, preset); }}>
            {preset.title}
          </button>
        ))}
      </div>
      <p class="look" role="status">{exact === undefined && shown !== undefined && <b>You went on from “{shown.title}”. </b>}
        {shown?.look ?? "Choose one of these, or move anything below."}</p>
    </section>
  );
}

export type OnStrip = PointerEvent & { currentTarget: SVGSVGElement };

/** How thick a lid is, as a share of the strip. */
const LID = 0.12;

/** Bars of one strip, one a column; up is positive. `kinds` are their classes; all bars of a kind are one path, which a
 *  browser draws many times faster than as many elements. */
export function Strip({ name, values, kinds, most, height, held, onDrag }: {
  name: string; values: ArrayLike<number>; kinds: string[]; most: number; height: number;
  /** Bars that stand where the visitor holds them get a lid; NaN for the others. */
  held?: ArrayLike<number>;
  /** When the pointer goes down on it, and while it moves. */
  onDrag?: (event: OnStrip) => void;
}) {
  const paths: Record<string, string> = {};
  let zero = 1;
  for (let i = 0; i < kinds.length; i++) if (values[i] < 0) zero = 0.5;
  for (let i = 0; i < kinds.length; i++) {
    const size = most > 0 ? Math.min(Math.abs(values[i]) / most, 1) * zero : 0;
    const top = values[i] < 0 ? zero : zero - size;
    paths[kinds[i]] = `${paths[kinds[i]] ?? ""}M${i}.14 ${top.toFixed(4)}h.72v${size.toFixed(4)}h-.72z`;
  }
  let lids = "";
  for (let i = 0; held !== undefined && i < kinds.length; i++) {
    if (!Number.isNaN(held[i])) lids += `M${i}.04 ${(zero - LID - (zero - LID) * Math.min(held[i] / most, 1)).toFixed(4)}h.92v${LID}h-.92z`;
  }
  return (
    <svg class={`strip ${name} ${onDrag === undefined ? "" : "draggable"}`} viewBox={`0 0 ${kinds.length} 1`} preserveAspectRatio="none" height={height} aria-hidden="true"
      onPointerDown={onDrag} onPointerMove={onDrag}>
      <path d={`M0 ${zero}h${kinds.length}`} class="axis" vector-effect="non-scaling-stroke" />
      {Object.entries(paths).map(([kind, d]) => <path key={kind} class={kind} d={d} />)}
      {lids !== "" && <path class="lid" d={lids} />}
    </svg>
  );
}

export const largestOf = (values: ArrayLike<number>, count: number): number => {
  let most = 0;
  for (let i = 0; i < count; i++) most = Math.max(most, Math.abs(values[i]));
  return most;
};

/** What a model answers and whether that is right; an output of 0 is wrong. */
export function Answer({ output, truth }: { output: number; truth: number }) {
  const right = output * truth > 0;
  return (
    <span class={`answer ${right ? "right" : "wrong"}`}>
      {output === 0 ? "no answer" : output > 0 ? "+1" : "−1"} <span class="mark">{right ? "✓ right" : "✗ wrong"}</span>
    </span>
  );
}

/** An error over many prompts, as a bar with its uncertainty, and a reference line. */
export function ErrorBar({ counted, which, reference, referenceName, name, caption }: {
  counted: ReadonlySignal<Counted>; which: number; reference?: number; referenceName?: string; name: string; caption?: string;
}) {
  const { prompts, means } = counted.value;
  const mean = means[which] ?? 0;
  const [low, high] = interval(mean, prompts);
  const said = prompts === 0 ? "…" : percent(mean, mean < 0.1 ? 1 : 0);
  return (
    <span class="error" data-error={name} data-prompts={prompts} data-mean={mean}>
      {caption !== undefined && <span class="caption soft">{caption}</span>}
      <span class="track" aria-hidden="true">
        <span class="fill" style={{ width: share(mean) }} />
        <span class="range" style={{ left: share(low), width: share(high - low) }} />
        {reference !== undefined && <span class="reference" style={{ left: share(Math.min(reference, 1)) }} title={referenceName} />}
      </span>
      <span class="number">{said}<span class="unseen"> error</span></span>
    </span>
  );
}
