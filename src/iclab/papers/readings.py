"""Where the papers contradict themselves or are ambiguous, and what iclab does."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """A printed statement that cannot be right or can be read in two ways, and what iclab does."""

    paper: str
    place: str
    printed: str
    here: str
    evidence: str = ""
    """The entry that shows it."""


READINGS = (
    Reading("mamba", "section 2, state size", "The state has m = l + 1 columns, yet W_B is given d diagonal "
            "entries.", "m = d + 1, whatever the length of the prompt."),
    Reading("mamba", "equations 1 and 3", "The recurrence starts at a matrix U; the sum of equation 3 has no such "
            "term.", "The state starts at 0: only then do the two agree.", "mamba.eq3"),
    Reading("mamba", "section 4, test outliers", "By equation 11 the new directions are unit vectors; their lengths "
            "are 1.005, 1.005 and 0.995.", "They are normalised."),
    Reading("mamba", "theorems 1 and 3", "The workshop version promises the 0-1 error, the full one the hinge loss; "
            "for l_tr in theorem 3 the former has the order p_a log M1 / (1 - p_a)^2, the latter log M1 / (1 - p_a).",
            "`iclab theory` shows both."),
    Reading("mamba", "section 2, step of a channel", "One version gives every channel its own step, the other the "
            "same step to all.", "Both are available (`gate_per_channel`) and agree in one layer; figures 3 to 6 show "
            "the label channel."),
    Reading("mamba", "figure 2", "Robust up to an outlier fraction of 0.8, after training at 0.6; the scale of the "
            "test outliers is not given.", "0.8 lies outside theorem 2 (c). The claim holds with test outliers three "
            "times as large as in training; with equally large ones the same Mamba fails.", "mamba.robust"),
    Reading("mamba", "theorem 4, remark 5", "The linear Transformer is safe only below an outlier fraction of 1/2.",
            "That is the proof's bound. Flipped labels do break the model there; random ones degrade it smoothly.",
            "mamba.fig2"),
    Reading("mamba", "theorem 2 (a), (b)", "Any positive coefficient sum L and any scale from that of training on; a "
            "bound of the proof (workshop version, eq. 62) on the gate of outliers has kappa_a', without L.", "Both "
            "conditions are judged as printed; the error is also measured against the product L kappa_a' / kappa_a.",
            "mamba.unseen"),
    Reading("mamba", "theorem 1, eq. 10", "Small loss on all tasks, including those not in training: the expectation "
            "over tasks, or every task.", "The expectation, as printed, is the theorem's; every task is judged apart.",
            "mamba.tasks"),
    Reading("mamba", "corollary 1", "The sum of scores on other patterns is bounded from above; the proof (workshop "
            "version, eq. 61, full version, eq. 58) bounds the absolute value of each.", "The sum with its sign; eq. "
            "61 is judged apart.", "mamba.attention"),
    Reading("mamba", "theorem 3, iterations", "Of order beta^-2 in the theorem, beta^-1 in the proof (workshop "
            "version, eq. 71).", "As in the theorem; the exponent of beta is measured.", "mamba.iterations"),
    Reading("mamba", "remark 4, largest outliers",
            "The full version has a larger upper bound on kappa_a for the linear "
            "Transformer when eps is small, the workshop version the same one for both.", "The theorems' bounds, "
            "which are the same; the linear Transformer is not measured near them."),
    Reading("icl", "section 2.3 and algorithm 1", "The output weights are +-1/m in one place and +-1/sqrt(m) in the "
            "other.", "+-1/m."),
    Reading("icl", "definition of the error", "An error is z F < 0, so a model that always outputs 0 never errs.",
            "z F <= 0, for this and every other paper: the choice decides what pruning costs.", "icl.pruning"),
    Reading("icl", "section 5", "Step size, batch size, iterations, neurons, starting value and length of q are not "
            "given.", "The effect of all but the batch size is measured over 14 settings.", "icl.search"),
    Reading("icl", "section 5", "K' = 5 and K = 0.5 are given together; that the first belongs to out-of-domain "
            "data is said in section 3.2.", "In-domain tests have K = 0.5, out-of-domain ones K' = 5.", "icl.unseen"),
    Reading("icl", "equation 44, appendix C.6", "The proofs take labels of length 1; section 5 gives no length.",
            "|q| = 1 for one layer, with |q| = beta = 3 beside it for unseen tasks and figure 7; GPT-2 has |q| = 3.",
            "icl.tasks"),
    Reading("icl", "section 3.2", "M2 <= O(M1) and K' <= O(1); the experiments have M2 = 4 M1 and K' = 5.",
            "Open constants are asked for only as far as the paper's experiments meet them.", "icl.unseen"),
    Reading("icl", "theorem 3.3 (iv), equations 82 and 83", "T has delta^(-2/3) in the proof, not in the theorem; the "
            "number of neurons enters through a, which is m.", "Our law from equation 82, which premises take, has "
            "both; it becomes equation 83 and the theorem only where there are of the order M1^2 neurons. The theorem, "
            "which has no m, is judged as printed.", "icl.iterations"),
    Reading("icl", "corollary 4.3, equation 92", "The corollary bounds what attention misses by M1^-C for any C > 1; "
            "the proof has 2 / (alpha' M1), so C = 1, which says nothing for alpha' below 2 / M1.",
            "The corollary is judged as printed, equation 92 apart.", "icl.attention"),
    Reading("icl", "proposition 4.1 (19), equation 99", "The proposition is about tokens with their irrelevant part; "
            "the proof takes tokens without it, and leaves out what W starts with.",
            "As printed; what training adds is judged apart.", "icl.norms"),
    Reading("icl", "section 3.3, insight 1", "The tasks that are enough are a fraction (M1 - 1)^(-1/2) of all; M1 of "
            "M1 (M1 - 1) are 1 / (M1 - 1).", "M1 tasks, the number of condition 3.2.", "icl.tasks"),
    Reading("icl", "lemmas 5, 6 of the appendix",
            "The proofs take training prompts of the order max{M1, M2} log M1 and B T of "
            "the order M1^2; theorem 3.3 asks for neither.", "The premises are those of the theorem."),
    Reading("icl", "section 5.3, figure 4", "The domain and the lengths of the prompts are not given.",
            "The figure is read out of domain; the same is asked in domain.", "icl.baselines"),
    Reading("icl", "equation 2", "The softmax runs over the context in equation 2, over the context and the query in "
            "the proofs.", "As in equation 2."),
    Reading("selectors", "theorem 2 and remark 1", "New patterns combine the training-relevant ones in the theorem, "
            "the training-irrelevant ones in the remark.", "The theorem's reading.", "selectors.noise"),
    Reading("selectors", "section 3.2", "beta is of order log log M1, which is 0.33 at M1 = 4; the sentence after "
            "proposition 2 has log log M, which is 1.02 at M = 16.",
            "beta = 1 for the theorems, with one constant for all parts.", "selectors.features"),
    Reading("selectors", "figure 1", "No numbers are given for any setting.", "Both panels are judged inside "
            "the premises; those at our settings, with longer patterns and fewer neurons, beside them.",
            "selectors.fig1"),
    Reading("selectors", "equation 6", "T has the root of M and not m; in the proof it is the root of m.",
            "M is varied with m in proportion to M; eps_m is taken as 0 and 1 / (C - 1 / alpha) left out, as C is "
            "open.", "selectors.noise"),
    Reading("selectors", "abstract and introduction", "The conditions on new patterns are necessary in the abstract, "
            "sufficient in the introduction, favourable in remark 1.", "Theorem 2 is judged as sufficient, the word of "
            "the abstract as a remark.", "selectors.noise"),
    Reading("selectors", "equation 10", "A neuron's input is split after W_V, which mixes features and labels.",
            "As printed; the split before W_V is judged beside it.", "selectors.decode"),
    Reading("cot", "equations 2 and 10", "Keys lack the position code in one place and have it in the other.",
            "Keys carry it: without it the steps of an example cannot be told apart."),
    Reading("cot", "equations 7 and 9", "Chain of thought is scored by the mean over its steps, direct prompting by "
            "its answer.", "Both are shown, and chain of thought's last step next to direct prompting.", "cot.fig2"),
    Reading("cot", "section C.1", "Functions of different steps never agree on an output, which permutations "
            "of the patterns do not allow, nor do the tasks of appendix E.", "The tasks of appendix E.",
            "cot.dynamics"),
    Reading("cot", "theorem 1", "The step size is below 1.", "It is 0.9 wherever the theorems are judged, with a batch "
            "of max{eps^-2, M} log M for epsilon = 0.1.", "cot.dynamics"),
    Reading("cot", "section 2.2", "Tests have no more examples than training prompts.",
            "Training prompts have 512, as many as the longest test of figures 2 to 4. Only the parts on small rho go "
            "beyond.", "cot.examples"),
    Reading("cot", "theorem 1 (ii) and equation 34", "The term with K^3 has alpha^-1 in the theorem and in equation "
            "57, alpha^-2 in the proof.", "The theorem's.", "cot.iterations"),
    Reading("cot", "lemma F.6, equations 163 and 164", "The proof of the first stage asks for a number of patterns M "
            "of order K^4 / alpha, which neither the theorems nor the experiments of appendix E meet: there it is 202 "
            "and M is 20.", "It is a premise of equation 34 alone.", "cot.iterations"),
    Reading("cot", "theorem 1 (ii)", "The bound on the iterations is a sum of three terms with one constant.",
            "T is compared with the sum where it is large, and not with its largest powers.", "cot.iterations"),
    Reading("cot", "lemma F.5, equations 30 and 109", "Between columns of the same pattern and step the bound has "
            "alpha^2 / K^2 times 1 + 2 (K - 1) / K in the lemma, alpha^2 / K times that in the last line of its "
            "proof, and 2 (K - 1) alpha^2 / K^2 in the line before.", "The lemma's.", "cot.stages"),
    Reading("cot", "lemma F.5, equations 97 and 110", "Two columns of one step and pattern are taken to have the same "
            "output, although every prompt has a task of its own.", "A column keeps its output in all prompts, so "
            "that it is the label of few of them.", "cot.stages"),
    Reading("cot", "lemma F.7, equations 36 and 38", "The share of prompts that ask for a step and a pattern is "
            "1 / (2 M); in lemma F.5 it is 1 / (K M).", "As printed, which is that of two steps.", "cot.stages"),
)
