// The slider through training: the same prompt, read with the weights of an earlier step.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { change, state, type Tab } from "../state";

export function Training({ tab, steps, children }: { tab: Tab; steps: number[]; children: ComponentChildren }) {
  const id = useId();
  const [plays, setPlays] = useState(false);
  const at = Number(state.value.values[tab].trained);
  useEffect(() => {
    if (!plays) return;
    const timer = setInterval(() => {
      const next = Number(state.peek().values[tab].trained) + 1;
      if (next < steps.length) change(tab, { trained: next });
      if (next >= steps.length - 1) setPlays(false);
    }, 700);
    return () => clearInterval(timer);
  }, [plays]);
  return (
    <section class="training" aria-label="Training">
      <button type="button" onClick={() => {
        if (!plays && at === steps.length - 1) change(tab, { trained: 0 });
        setPlays(!plays);
      }}>{plays ? "Pause" : "Play training"}</button>
      <div class="control">
        <label for={id}>Training step <output for={id}>{steps[at].toLocaleString("en")} of {steps[steps.length - 1].toLocaleString("en")}</output></label>
        <input id={id} type="range" min="0" max={steps.length - 1} step="1" value={at} data-field="trained"
          aria-valuetext={`step ${steps[at]}`} aria-describedby={`${id}-hint`}
          onInput={(event) => change(tab, { trained: Number(event.currentTarget.value) })} />
        <p class="hint" id={`${id}-hint`}>{children} Stops: {steps.map((step) => step.toLocaleString("en")).join(" · ")}.</p>
      </div>
    </section>
  );
}
