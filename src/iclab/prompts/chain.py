"""Chain prompts: examples of K-step reasoning, some of their steps noisy or wrong, and a query to reason about.

| here           | paper (li2024cot)  | meaning                                                              |
| -------------- | ------------------ | -------------------------------------------------------------------- |
| patterns       | M, M'              | orthonormal patterns mu of training, mu' of a test                   |
| step           | k - 1              | which step of its chain a column is                                  |
| pattern, y's   | x_i, y_{i,k}       | a column is the input of a step above its output                     |
| chain          | z_0 ... z_K        | the query and the right output of each step                          |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from iclab.core.errors import require
from iclab.core.spec import encoded, lower, number, replace, require_count, require_range, spec
from iclab.prompts.labels import STEP
from iclab.prompts.patterns import Matrix, orthonormal_rows
from iclab.prompts.prompt import NUMBER, Family, Prompt
from iclab.prompts.randomness import (
    Key,
    as_key,
    choice,
    draw_bits,
    high_half,
    low_half,
    many_words,
    uniform16,
    uniform23,
)
from iclab.prompts.transitions import MOST_ENTRIES, Transitions, matrices

ABSENT = -1
WORD = 32


class ChainTruth(NamedTuple):
    """The truth about a chain prompt. One training prompt with two examples of three steps, which asks for the query's
    second step; the first column is empty so that all prompts have the same length:

        x        .  | x_1   y_1,1  y_1,2 | x_2   y_2,1  y_2,2 | z_0  z_1
        y        .  | y_1,1 y_1,2  y_1,3 | y_2,1 y_2,2  y_2,3 | z_1  0         label z_2
        step    -1  |  0     1      2    |  0     1      2    |  0    1
    """

    pattern: Int[Array, " columns"]
    """Pattern of each input."""
    answer: Int[Array, " columns"]
    """Pattern of each output, right or wrong; -1 at the query."""
    chain: Int[Array, " steps+1"]
    """Patterns of the query and of the right output of each step."""


class Course(NamedTuple):
    """What is random about a prompt: the patterns that its chains pass through, and a key for their noise."""

    pattern: Int[Array, " columns"]
    answer: Int[Array, " columns"]
    step: Int[Array, " columns"]
    chain: Int[Array, " steps+1"]
    asked: Int[Array, ""]
    """k - 1: the step that is asked for."""
    key: Key


def transitions_code(chain: Any, transitions: Transitions | None
                     ) -> Float[np.ndarray, "steps patterns patterns"] | None:
    """What programs read of transition matrices."""
    return None if transitions is None else np.asarray(transitions, float)


def mixtures_code(chain: Any, mixtures: Matrix | None) -> Float[np.ndarray, "dimension dimension"] | None:
    """What programs read of test patterns: an orthonormal basis of the input space that begins with them."""
    if mixtures is None:
        return None
    rows = np.zeros((len(mixtures), chain.dimension))
    rows[:, :len(mixtures[0])] = mixtures
    return np.concatenate([rows, np.linalg.svd(rows)[2][len(rows):]])


@spec(part="prompts")
class Chain(Family):
    """A distribution of K-step prompts: step k moves k places forward in the task's order of patterns (li2024cot, E).

    Training and test prompts are two instances of this class; `chain_test` makes the second from the first. Differs
    from the paper: each example starts at the query's pattern with probability `matching_fraction`, so their number
    varies; noise is a random corner of a cube, of the given length.
    """

    dimension: int = 30
    """d_X: length of an input vector."""
    patterns: int = 20
    """M (training) or M' (test): patterns that the tasks are about."""
    reasoning_steps: int = 3
    """K: steps of a chain."""
    prompt_length: int = 20
    """l: context examples, of K columns each."""
    matching_fraction: float = number(default=0.4)
    """alpha (training) or alpha' (test): probability that an example starts at the query's pattern."""
    partly_solved: bool = True
    """Whether the query comes with its first steps, every number of them equally often (training), or alone (test)."""
    noise_norm: float | None = number(default=None)
    """Length of the noise on the examples' patterns, orthogonal to all of them; none draws no noise."""
    transitions: Transitions | None = encoded(transitions_code, default=None)
    """A_1 .. A_K: how examples go from step to step (iclab.prompts.transitions); none is without error."""
    pattern_mixtures: Matrix | None = encoded(mixtures_code, default=None)
    """Orthonormal rows of coefficients over the training patterns: the patterns of a test; none: the patterns are the
    first axes."""

    labels = STEP

    def check(self) -> None:
        for field, least in (("dimension", 1), ("patterns", 2), ("reasoning_steps", 1), ("prompt_length", 1)):
            require_count(self, field, least)
        require(self.patterns <= self.dimension, "patterns", self.patterns, f"be at most dimension = {self.dimension}")
        require(self.transitions is not None or self.reasoning_steps < self.patterns, "reasoning_steps",
                self.reasoning_steps, f"be below patterns = {self.patterns}, or a step would lead to where it began")
        require_range(self, "matching_fraction", 0, 1, open_low=True)
        if self.noise_norm is not None:
            require_range(self, "noise_norm", 0, np.inf, open_high=True)
            require(self.patterns < self.dimension, "noise_norm", self.noise_norm,
                    "be none when there are as many patterns as dimensions, which leaves no room for noise")
        if self.transitions is not None:
            shape = matrices(self.transitions).shape
            expected = (self.reasoning_steps, self.patterns, self.patterns)
            require(shape == expected, "transitions", shape, f"have shape (reasoning_steps, patterns, patterns) = "
                                                             f"{expected}")
        if self.pattern_mixtures is not None:
            self._check_mixtures(self.pattern_mixtures)

    def _check_mixtures(self, mixtures: Matrix) -> None:
        listed = isinstance(mixtures, tuple) and all(isinstance(row, tuple) for row in mixtures)
        require(listed, "pattern_mixtures", mixtures, "be rows of numbers")
        lengths = {len(row) for row in mixtures}
        require(len(mixtures) == self.patterns and len(lengths) == 1, "pattern_mixtures",
                f"{len(mixtures)} rows of {sorted(lengths)} numbers", f"be {self.patterns} rows of one length")
        require(max(lengths) <= self.dimension, "pattern_mixtures", f"rows of {max(lengths)} numbers",
                f"have at most dimension = {self.dimension} of them")
        require(orthonormal_rows(mixtures), "pattern_mixtures", "rows that are not", "be orthonormal")

    def prompt_bytes(self) -> int:
        """Bytes of one prompt: the inputs and outputs of all its steps, their code, the order of the task."""
        columns = (self.prompt_length + 1) * self.reasoning_steps
        return NUMBER * (columns * (2 * self.dimension + self.reasoning_steps) + self.patterns)

    def bits(self, key: Key | Array | int, batch: int) -> Course:
        """What is random about a batch of prompts; every query input occurs equally often at every step."""
        per_example = 1 if self.transitions is None else 1 + self.reasoning_steps
        words = draw_bits(as_key(key), batch, -(-(self.patterns + per_example * self.prompt_length) // 4))
        ways = self.patterns * (self.reasoning_steps if self.partly_solved else 1)
        cells = ((jnp.arange(batch) + uniform23(words.batch)) * (ways / batch)).astype(jnp.int32)
        return jax.vmap(self._course)(jnp.minimum(cells, ways - 1), words.prompt, jnp.concatenate(words.tokens, axis=1),
                                      words.key)

    def prompts(self, bits: Course) -> Prompt:
        """The batch of prompts that follow these courses."""
        return jax.vmap(self._prompt)(bits)

    def _course(self, asked: Int[Array, ""], word: UInt32[Array, ""], words: UInt32[Array, " words"], key: Key
                ) -> Course:
        """Where the chains of one prompt go in the order of the task, and which patterns these are."""
        M, K, examples = self.patterns, self.reasoning_steps, self.prompt_length
        order, starts, rest = jnp.split(words, [M, M + examples])
        errors = None if self.transitions is None else rest[:K * examples].reshape(K, examples)
        # The order is random, so a query may always start at its first place, unless matrices treat places
        # differently; in a test every place is queried equally often.
        begin = jnp.int32(0) if self.transitions is None else choice(low_half(word), M)
        k, begin = (asked // M, begin) if self.partly_solved else (jnp.int32(0), asked)
        other = choice(low_half(starts), M - 1)
        matching = uniform16(high_half(starts)) < self.matching_fraction
        first = jnp.where(matching, begin, other + (other >= begin))
        places = self._places(jnp.append(first, begin), errors)

        # Ranks of random words are a random order, rotated so that the query gets the pattern allotted to it.
        rank = (order[:, None] > order[None]).sum(axis=1).astype(jnp.int32)
        if self.partly_solved:
            rank = (rank + asked % M - _at(rank, places[-1, k])) % M
        chains = _at(rank, places)
        step = jnp.tile(jnp.arange(K), examples + 1)
        pattern, answer, step = (self._shown(flat, k) for flat in (chains[:, :-1].ravel(), chains[:, 1:].ravel(), step))
        return Course(pattern, answer.at[-1].set(ABSENT), step, chains[-1], k, key)

    def _prompt(self, course: Course) -> Prompt:
        """One prompt that follows this course."""
        pattern, answer, step, chain, k, key = course
        label = self._vectors(chain[k + 1], None)
        if self.partly_solved:
            words = (None, None) if self.noise_norm is None else (
                self._shown(part.reshape(-1, part.shape[2]), k) for part in self._steps(self._noise_words(key)))
            x, y = (self._vectors(*column) for column in zip((pattern, answer), words, strict=True))
        else:
            # An output is the input of the next step: every vector of the examples is made once.
            tokens = jnp.concatenate([pattern[:-1].reshape(-1, self.reasoning_steps),
                                      answer[:-1].reshape(-1, self.reasoning_steps)[:, -1:]], axis=1)
            noise = None if self.noise_norm is None else self._noise_words(key)[:-1]
            query = jnp.stack([self._vectors(chain[0], None), jnp.zeros(self.dimension)])
            x, y = (jnp.concatenate([part.reshape(-1, self.dimension), last[None]])
                    for part, last in zip(self._steps(self._vectors(tokens, noise)), query, strict=True))
        return Prompt(x, y, label, ChainTruth(pattern, answer, chain), step)

    @staticmethod
    def _steps(tokens: Array) -> tuple[Array, Array]:
        """Inputs and outputs of every step, from the tokens of every chain."""
        return tokens[:, :-1], tokens[:, 1:]

    def _places(self, first: Int[Array, " chains"], errors: UInt32[Array, "steps examples"] | None
                ) -> Int[Array, "chains steps+1"]:
        """Where every chain stands after each step; the last one, the query's, never goes wrong."""
        places, M = [first], self.patterns
        for k in range(self.reasoning_steps):
            here = places[-1]
            if errors is None:
                places.append((here + k + 1) % M)
                continue
            A = jnp.asarray(self.transitions)[k]
            rows = (here[:, None] == jnp.arange(M)).astype(A.dtype) @ jnp.cumsum(A, axis=1)
            drawn = (uniform23(errors[k])[:, None] * rows[:-1, -1:] >= rows[:-1, :-1]).sum(axis=1)
            right = jnp.argmax(A, axis=1)[here[-1]]
            places.append(jnp.append(drawn, right).astype(jnp.int32))
        return jnp.stack(places, axis=1)

    def _shown(self, flat: Array, k: Int[Array, ""]) -> Array:
        """The columns of a prompt: all examples, and as many of the query's as are shown, empty ones in front."""
        K = self.reasoning_steps
        if not self.partly_solved:
            return flat[:len(flat) - K + 1]
        padded = jnp.concatenate([jnp.full((K - 1, *flat.shape[1:]), ABSENT).astype(flat.dtype), flat])
        return jax.lax.dynamic_slice_in_dim(padded, k, len(flat))

    def _noise_words(self, key: Key) -> UInt32[Array, "chains steps+1 words"]:
        """Random bits for the noise of every token; the query's chain has zeros, which mean no noise."""
        tokens = self.prompt_length * (self.reasoning_steps + 1)
        count = -(-(self.dimension - self.patterns) // WORD)
        words = many_words(key, -(-tokens * count // 2)).ravel()[:tokens * count]
        # A drawn word of 0 means the same: at most one token in 2^32 gets no noise.
        return jnp.pad(words.reshape(self.prompt_length, -1, count), ((0, 1), (0, 0), (0, 0)))

    def _vectors(self, pattern: Int[Array, "*tokens"], words: UInt32[Array, "*tokens words"] | None
                 ) -> Float[Array, "*tokens dimension"]:
        """Patterns as vectors, with the noise that some words determine."""
        hot = (pattern[..., None] == jnp.arange(self.patterns)).astype(float)
        rest = self.dimension - self.patterns
        if words is None:
            noise = jnp.zeros((*pattern.shape, rest))
        else:
            places = jnp.arange(rest)
            bits = (words[..., places // WORD] >> (places % WORD).astype(jnp.uint32)) & 1
            carries = (words != 0).any(axis=-1) & (pattern != ABSENT)
            noise = jnp.where(carries[..., None], (2.0 * bits.astype(float) - 1.0) * (self.noise_norm / np.sqrt(rest)),
                              0.0)
        x = jnp.concatenate([hot, noise], axis=-1)
        if self.pattern_mixtures is None:
            return x
        return x @ jnp.asarray(self.pattern_mixtures, x.dtype)

    def pattern_vectors(self) -> Float[Array, "patterns dimension"]:
        """The patterns that steps are decoded to, one per row."""
        return lower(self)._vectors(jnp.arange(self.patterns), None)


def _at(table: Int[Array, " entries"], places: Int[Array, "*s"]) -> Int[Array, "*s"]:
    """Entries of a small table, by comparison: a gather would cost more."""
    return jnp.where(places[..., None] == jnp.arange(len(table)), table, 0).sum(axis=-1).astype(table.dtype)


def random_mixtures(patterns: int, of: int, seed: int = 0) -> Matrix:
    """Random orthonormal rows of coefficients over `of` training patterns."""
    require(patterns <= of, "patterns", patterns, f"be at most the {of} training patterns")
    require(patterns * of <= MOST_ENTRIES, "patterns", f"{patterns} of {of}",
            f"be mixed by at most {MOST_ENTRIES:,} coefficients")
    normal = np.random.default_rng(seed).standard_normal((of, patterns))
    return tuple(tuple(float(x) for x in row) for row in np.linalg.qr(normal)[0].T)


def chain_test(training: Chain, **changes: Any) -> Chain:
    """Test prompts for a model trained on these: the query alone, half as many new patterns in the span of the old.

    `changes` are fields of `Chain`; by default noise is 0.2 and the matching fraction 0.8 (li2024cot,
    appendix E).
    """
    patterns = changes.get("patterns", max(training.patterns // 2, training.reasoning_steps + 1))
    whole = isinstance(patterns, (int, np.integer)) and bool(patterns >= 2)
    require(whole, "patterns", patterns, "be a whole number >= 2")
    dimension = changes.get("dimension", training.dimension)
    defaults = {"patterns": patterns, "partly_solved": False, "noise_norm": 0.2 if patterns < dimension else None,
             "matching_fraction": 0.8}
    if "pattern_mixtures" not in changes:
        defaults["pattern_mixtures"] = random_mixtures(patterns, training.patterns)
    return replace(training, **{**defaults, **changes})
