// The page: its tabs, a link that keeps the state, and the models' functions for whoever opens the console.
import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { exhibits } from "./exhibits";
import {
  attackedColumns, attackedPrompt, heldNow, kept, mixedColumns, mixedPrompt, mixedReading, readers, readings, readWith, reasoner, softmaxes, thoughts,
  thoughtsOn,
} from "./lab";
import { answers, ESTIMATORS, numberPrompt, regressors } from "./regressions";
import { announced } from "./announced";
import { fromLink, toLink } from "./link";
import { attend, decide, hidden } from "./models/softmax";
import { poisoningOf, SHOWN, state, type Tab } from "./state";
import { poisonSummary } from "./views/board";
import { OwnModels } from "./views/own";
import { pointed } from "./views/measures";
import { Poison } from "./views/poison";
import { regressionSummary, RegressionTab } from "./views/regression";
import { Softmax, softmaxSummary } from "./views/softmax";
import { Thought, thoughtSummary } from "./views/thought";
import { selected } from "./views/tokens";

const { own } = exhibits.about;
const NAMES: Record<Tab, string> = { poison: own ? "Labelled prompts" : "Poisoned prompts", regression: own ? "Regression prompts" : "Regression with outliers", thought: "Chain of thought", softmax: "Softmax Transformer" };
const SUMMARIES: Record<Tab, () => string> = { poison: poisonSummary, regression: regressionSummary, thought: thoughtSummary, softmax: softmaxSummary };
const copied = signal("");
/** A page inside a notebook has no address of its own. */
const addressed = location.protocol !== "about:";

async function copyLink(): Promise<void> {
  const link = toLink(state.peek());
  history.replaceState(null, "", link);
  known = link;
  const kept = "It brings back exactly this, wherever this file is.";
  try {
    await navigator.clipboard.writeText(location.href);
    copied.value = `The link is copied. ${kept}`;
  } catch {
    copied.value = `The address bar holds the link. ${kept}`;
  }
}

function App() {
  const { tab } = state.value;
  return (
    <>
      <header>
        <div class="title">
          <h1>iclab playground</h1>
          <p>{own ? "Your models: change their prompts yourself, and watch what happens inside." : "Poison it, break it, prune it yourself, and watch the model inside."}</p>
        </div>
        <div class="actions">
          {exhibits.about.report && <a href="report.html">Report</a>}
          {addressed && <button type="button" onClick={copyLink}>Copy link</button>}
          <span role="status" class="soft">{copied.value}</span>
        </div>
        {SHOWN.length > 1 && <nav role="tablist" aria-label="Experiments" onKeyDown={(event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
          const next = SHOWN[(SHOWN.indexOf(tab) + step + SHOWN.length) % SHOWN.length];
          state.value = { ...state.peek(), tab: next };
          requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
        }}>
          {SHOWN.map((one) => (
            <button key={one} id={`tab-${one}`} type="button" role="tab" aria-selected={one === tab} aria-controls="panel"
              tabIndex={one === tab ? 0 : -1} onClick={() => { state.value = { ...state.peek(), tab: one }; }}>{NAMES[one]}</button>
          ))}
        </nav>}
      </header>
      <main>
        <div id="panel" {...(SHOWN.length > 1 && { role: "tabpanel", "aria-labelledby": `tab-${tab}` })}>
          {tab === "poison" ? (own ? <OwnModels /> : <Poison />) : tab === "regression" ? <RegressionTab /> : tab === "thought" ? <Thought /> : <Softmax />}
        </div>
      </main>
      <Summary />
      <About />
    </>
  );
}

/** Who is right now: read out after every change, and kept in sight on small screens. */
function Summary() {
  return (
    <aside class="summary" aria-label="Result">
      <p role="status" aria-live="polite">{SUMMARIES[state.value.tab]()} <span class="unseen">{announced.value}</span></p>
    </aside>
  );
}

function About() {
  const { version, date, seed } = exhibits.about;
  return (
    <footer>
      <details>
        <summary>Where the weights come from</summary>
        <p>{own ? `Your models, put into this page by iclab ${version} on ${date}.` : <>Trained by iclab {version} on {date} with seed {seed}; <code>iclab
          play</code> trains them again.</>} The page computes in double precision with weights in single precision, and its prompts come
          from a generator of its own: the same distributions as in Python, not the same draws. In the console <code>iclab</code> holds
          the models and what they read.</p>
        {[exhibits.poison, exhibits.regression, exhibits.softmax, exhibits.chain].flatMap((tab) => tab?.models ?? []).map((model) => (
          <details key={model.key}>
            <summary>{model.name} <code>{model.run}</code></summary>
            <pre>{JSON.stringify(model.spec, null, 1)}</pre>
          </details>
        ))}
      </details>
    </footer>
  );
}

state.value = fromLink(location.hash);
let known = location.hash;
addEventListener("hashchange", () => {
  known = location.hash;
  selected.value = null;
  pointed.value = null;
  state.value = fromLink(known);
});
let pending = 0;
effect(() => {
  const link = toLink(state.value);
  copied.value = "";
  clearTimeout(pending);
  // Browsers refuse a history that changes at every move of a slider.
  pending = window.setTimeout(() => {
    if (!addressed || location.hash !== known || link === known) return; // the visitor has gone elsewhere, or nothing is new
    history.replaceState(null, "", link);
    known = link;
  }, 150);
});
const root = document.getElementById("app")!;
root.classList.toggle("framed", !addressed);
root.replaceChildren();
render(<App />, root);

/** For the console and for tests: read any prompt with any model, or what is on the page now. */
const iclab = {
  exhibits, models: readers, softmaxes, read: readWith, attend, decide, hidden, thoughtsOn,
  get reasoner() { return reasoner.peek(); },
  get prompt() { return attackedPrompt.peek(); },
  get columns() { return attackedColumns.peek(); },
  get readings() { return readings.peek(); },
  get thoughts() { return thoughts.peek(); },
  regressors, estimators: ESTIMATORS,
  get numbers() { return { prompt: numberPrompt.peek(), poisoning: poisoningOf(state.peek().values.regression), ...answers.peek() }; },
  get held() { return heldNow.peek(); },
  get mixed() { return { prompt: mixedPrompt.peek(), columns: mixedColumns.peek(), kept: kept.peek(), ...mixedReading.peek() }; },
};
declare global { interface Window { iclab: typeof iclab } }
window.iclab = iclab;
