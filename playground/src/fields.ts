// What each field of a tab may be: of the papers' models as their text needs it, of the user's own by their prompts.
import type { Attacked, Chains, Exhibits, Regressions } from "./exhibits";
import { FINE, HOLDS } from "./models/held";
import { DIRECTIONS, PLACEMENTS, RULES } from "./prompts/classification";

/** A number in a range, or one of some words. */
export type Field = { least: number; most: number; step: number; usual: number } | { words: readonly string[]; usual: string };
export type Fields = Record<string, Field>;

export const QUERIES = ["first", "second", "third"] as const;
const ORDERS = ["small", "large", "random"] as const;
/** The fields of one's own mixture of outlier patterns, a coefficient each; of more patterns none can be mixed. */
export const MIXED = ["first", "second", "third", "fourth", "fifth", "sixth"] as const;
export const MOST_SEED = 9999;
/** Most examples of a prompt of the page: a link has a letter for each. */
export const MOST_EXAMPLES = 64;
/** Most outlier directions that are listed one by one. */
const LISTED = 12;

const seed: Field = { least: 0, most: MOST_SEED, step: 1, usual: 1 };
const length: Field = { least: 4, most: 36, step: 1, usual: 20 };
const coefficient = (usual: number): Field => ({ least: -1, most: 1, step: 0.05, usual });
const gate: Field = { least: 0, most: 1, step: 1 / FINE, usual: 1 };
const words = (list: readonly string[], usual: string): Field => ({ words: list, usual: list.includes(usual) ? usual : list[0] });
const stops = (models: { steps: number[] }[]): Field => {
  const last = (models[0]?.steps.length ?? 1) - 1;
  return { least: 0, most: last, step: 1, usual: last };
};

export const PAPERS = {
  poison: {
    seed: { ...seed, usual: 10 }, length,
    fraction: { least: 0, most: 0.95, step: 0.05, usual: 0.6 },
    scale: { least: 0, most: 5, step: 0.1, usual: 3 },
    direction: { words: DIRECTIONS, usual: "paper" },
    first: coefficient(0.7), second: coefficient(0.6), third: coefficient(-0.4),
    rule: { words: RULES, usual: "flip" },
    placement: { words: PLACEMENTS, usual: "random" },
    hold: { words: HOLDS, usual: "none" }, gate,
    trained: { least: 0, most: 8, step: 1, usual: 8 },
  } as Fields,
  regression: {
    seed: { ...seed, usual: 5 }, length: { least: 8, most: 60, step: 1, usual: 40 },
    fraction: { least: 0, most: 0.9, step: 0.05, usual: 0.4 },
    scale: { least: 0, most: 6, step: 0.1, usual: 2 },
    size: { least: 0, most: 9, step: 0.25, usual: 3 },
    rule: { words: RULES, usual: "random" },
    placement: { words: PLACEMENTS, usual: "random" },
    trained: { least: 0, most: 6, step: 1, usual: 6 },
  } as Fields,
  thought: {
    seed: { ...seed, usual: 3 }, length: { ...length, least: 1, most: 64, usual: 32 },
    matching: { least: 0.1, most: 1, step: 0.05, usual: 0.8 },
    right: { least: 0.4, most: 1, step: 0.005, usual: 0.71 },
    pile: { least: 0, most: 1, step: 0.01, usual: 0.91 },
    look: { least: 1, most: 3, step: 1, usual: 1 },
    trained: { least: 0, most: 7, step: 1, usual: 7 },
  } as Fields,
  softmax: {
    seed, length,
    decisive: { least: 0.2, most: 1, step: 0.05, usual: 0.6 },
    irrelevantScale: { least: 0, most: 5, step: 0.25, usual: 5 },
    sum: { least: -1.28, most: 1.28, step: 0.04, usual: 1.28 },
    query: { words: QUERIES, usual: "second" },
    domain: { words: ["outside", "inside"], usual: "outside" },
    start: { words: ["usual", "small"], usual: "small" },
    pruned: { least: 0, most: 1, step: 0.01, usual: 0 },
    order: { words: ORDERS, usual: "large" },
    trained: { least: 0, most: 4, step: 1, usual: 4 },
  } as Fields,
};

export function fieldsOf({ about, poison, regression, chain }: Exhibits): typeof PAPERS {
  if (!about.own) return PAPERS;
  return {
    ...PAPERS,
    ...(poison && { poison: { ...attackFields(poison.prompts), ...holdFields(poison), trained: stops(poison.models) } }),
    ...(regression && { regression: { ...numberFields(regression.prompts), trained: stops(regression.models) } }),
    ...(chain && { thought: { ...slipFields(chain.prompts, chain.models.length), trained: stops(chain.models) } }),
  };
}

/** A range from 0 that reaches well beyond what training had. */
function beyond(trained: number): Field {
  const most = Math.max(5, Math.ceil(3 * trained));
  return { least: 0, most, step: most / 100, usual: trained };
}

function examples(trained: number): Field {
  const usual = Math.min(trained, MOST_EXAMPLES);
  return { least: Math.min(4, usual), most: Math.max(36, usual), step: 1, usual };
}

function attackFields(prompts: Attacked): Fields {
  const own = prompts.own!;
  const fields: Fields = { seed, length: examples(own.length), tasks: words(own.tasks.map(({ name }) => name), "training") };
  if (prompts.outliers > 0) {
    const each = prompts.directions.length > 1 ? prompts.directions.slice(0, LISTED).map((_, i) => `v${i + 1}`) : [];
    const mixed = prompts.outliers > 1 && prompts.outliers <= MIXED.length;
    Object.assign(fields, {
      fraction: { least: 0, most: 0.99, step: 0.01, usual: Math.min(own.fraction, 0.99) },
      rule: words(RULES, own.rule), placement: words(PLACEMENTS, own.placement),
      scale: beyond(own.scale),
      direction: words(["training", ...each, "against", ...(mixed ? ["own"] : [])], "training"),
    });
    if (mixed) MIXED.slice(0, prompts.outliers).forEach((name, i) => { fields[name] = coefficient(prompts.directions[0][i]); });
  }
  if ((own.mixtures?.length ?? prompts.patterns) > 2) fields.decisive = { least: 0.01, most: 1, step: 0.01, usual: own.decisive };
  if (prompts.irrelevant > 0) fields.irrelevantScale = beyond(prompts.irrelevantScale);
  if (own.depth > 1) fields.layer = { least: 1, most: own.depth, step: 1, usual: own.depth };
  return fields;
}

/** Gates that may be held, where a model has any. */
function holdFields({ prompts, models }: NonNullable<Exhibits["poison"]>): Fields {
  if (!models.some(({ kind }) => kind === "gated")) return {};
  return { hold: words(prompts.outliers > 0 ? HOLDS : ["none", "examples"], "none"), gate };
}

function numberFields({ trained, outliers }: Regressions): Fields {
  const fields: Fields = { seed, length: examples(trained.length) };
  if (outliers === 0) return fields;
  return {
    ...fields, fraction: { least: 0, most: 0.99, step: 0.01, usual: Math.min(trained.fraction, 0.99) },
    scale: beyond(trained.scale), size: beyond(trained.size), rule: words(RULES, trained.rule), placement: words(PLACEMENTS, trained.placement),
  };
}

function slipFields({ own, steps }: Chains, models: number): Fields {
  return {
    ...PAPERS.thought, seed,
    length: { least: 1, most: MOST_EXAMPLES, step: 1, usual: Math.min(own!.length, MOST_EXAMPLES) },
    matching: { least: 0.01, most: 1, step: 0.01, usual: Math.max(own!.matching, 0.01) },
    right: { least: 0, most: 1, step: 0.005, usual: 1 }, pile: { least: 0, most: 1, step: 0.01, usual: 0 },
    look: { least: 1, most: steps, step: 1, usual: 1 },
    model: { least: 1, most: models, step: 1, usual: 1 },
  };
}
