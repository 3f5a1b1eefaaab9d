"""What holds: every setting of a training in typed sections, none of them open.

``settle`` is the only place where a key that nobody set and no rule derived gets a value; whoever trains reads sections.
"""

from __future__ import annotations

from dataclasses import dataclass

from veilgraph.config.asked import TrainConfig


@dataclass(frozen=True)
class Scorer:
    """Which scorer, and how wide."""

    name: str
    dimension: int
    norm: int
    reciprocal: bool  # a second row per relation for asking backwards


@dataclass(frozen=True)
class Aim:
    """What is minimised."""

    loss: str
    margin: float
    temperature: float
    regulariser: str
    weight: float  # of the penalty


@dataclass(frozen=True)
class Wrong:
    """Wrong answers."""

    all: bool  # every entity is a candidate
    negatives: int  # else so many are sampled, each side
    chunk: int  # statements that share them


@dataclass(frozen=True)
class Steps:
    """How rows are moved."""

    batch: int
    optimiser: str
    rate: float
    schedule: str
    epochs: int
    averaging: float  # epochs over which the result is averaged
    dropout: float


@dataclass(frozen=True)
class Judging:
    """When validation is looked at, and what follows."""

    every: int  # epochs; 0: never
    queries: int
    patience: int  # validations without a better MRR; 0: no end


@dataclass(frozen=True)
class Encoder:
    """A graph convolution in front of the scorer."""

    name: str
    score: str  # of KE-GCN's messages; empty: the recipe's
    layers: int
    bases: int
    edges: int  # statements that carry messages in a step; 0: all
    task: str  # links or labels
    transport: str
    transport_weight: float


@dataclass(frozen=True)
class Text:
    """Entity rows made from descriptions."""

    name: str
    vectors: str | None  # where they come from; None: the encoder's usual source
    mix: str
    hidden: int
    width: int | None  # principal directions that are kept; None: all


@dataclass(frozen=True)
class Private:
    """Private steps. What they cost is account/promise.py's."""

    mechanism: str
    tables: str  # what confidential statements may move
    clip: float
    quantile: float | None  # of gradient norms, where the clip comes from the data
    steps: int
    negatives: int
    optimiser: str
    rate: float
    rows_shrink: bool
    first: bool  # after unrestricted steps, not among them
    secure: bool
    seed: int | None  # for tests
    answers: float | None = None  # ε of each, where cells are asked about and no step is taken
    counts_public: bool = False  # what is public, and answers, are counted and added to every score


@dataclass(frozen=True)
class Settled:
    """All sections; one that does not apply is None."""

    scorer: Scorer
    aim: Aim
    wrong: Wrong
    steps: Steps
    judging: Judging
    seed: int
    threads: int
    counts: bool  # noisy (or exact) counts are added to every score
    open_data: bool  # every statement is read as it is: nothing is promised
    encoder: Encoder | None = None
    text: Text | None = None
    private: Private | None = None


def settle(c: TrainConfig) -> Settled:
    """The sections of a configuration whose open settings were derived; what still is open does nothing there, and gets what does least."""
    return Settled(
        Scorer(c.model, c.dimension or 1, c.norm, bool(c.reciprocal)),
        Aim(
            c.loss or "softmax",
            c.margin or 0.0,
            c.temperature or 0.0,
            c.regulariser or "none",
            c.regulariser_weight or 0.0 if c.regulariser != "none" else 0.0,
        ),
        Wrong(c.candidates == "all", c.negatives or 1, c.chunk or 1),
        Steps(
            c.batch or 1,
            c.optimiser or "adagrad",
            c.learning_rate or 0.0,
            c.schedule or "constant",
            c.epochs or 0,
            c.averaging or 0.0,
            c.dropout or 0.0,
        ),
        Judging(c.validate_every or 0, c.validation_queries, c.patience or 0),
        c.seed,
        c.threads or 1,
        c.prior == "marginals",
        c.open_data,
        _encoder(c),
        _text(c),
        _private(c),
    )


def _encoder(c: TrainConfig) -> Encoder | None:
    if c.encoder is None:
        return None
    return Encoder(
        c.encoder,
        c.encoder_score or "",
        c.encoder_layers or 1,
        c.encoder_bases or 0,
        c.encoder_edges or 0,
        c.task or "links",
        c.transport or "sorted",
        (c.transport_weight or 0.0) if c.transport else 0.0,
    )


def _text(c: TrainConfig) -> Text | None:
    if c.text is None:
        return None
    return Text(c.text, c.text_vectors, c.text_mix or "text", c.text_hidden or 0, c.text_width)


def _private(c: TrainConfig) -> Private | None:
    if not c.private:
        return None
    return Private(
        c.mechanism or "lazy",
        c.private_parameters or "all",
        c.clip or 1.0,
        c.clip_quantile,
        c.private_steps or 0,
        c.private_negatives or c.negatives or 1,
        c.private_optimiser or "sgd",
        c.private_learning_rate or 1.0,
        c.shrinkage == "rows",
        c.order == "unrestricted-first",
        c.secure_noise,
        c.insecure_noise_seed,
        c.answer_epsilon if c.mechanism == "respond" else None,
        c.prior == "public",
    )
