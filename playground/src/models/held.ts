// Gates that the visitor holds: those of a kind of examples in every prompt, and those of single examples in one.
import type { Held } from "./gated";

/** Whose gates are held in one move. */
export const HOLDS = ["none", "poisoned", "clean", "examples"] as const;
export type Hold = (typeof HOLDS)[number];
/** A value held by hand is a multiple of 1 / FINE. */
export const FINE = 20;

/** A value that a gate can be held at: in [0, 1], a multiple of 1 / FINE. */
export const fine = (value: number): number => Math.round(FINE * Math.min(Math.max(value, 0), 1)) / FINE;

/** What the gates of a prompt's columns are held at, the query's last; none if all are free. */
export function heldGates(examples: { id: number; outlier: boolean }[], hold: Hold, value: number,
  single: Record<number, number> = {}): Held | undefined {
  const meant = ({ outlier }: { outlier: boolean }): boolean => hold === "examples" || (hold === "poisoned" && outlier) || (hold === "clean" && !outlier);
  const held = Float64Array.from(examples, (example) => single[example.id] ?? (meant(example) ? value : NaN));
  return held.every(Number.isNaN) ? undefined : Float64Array.of(...held, NaN);
}
