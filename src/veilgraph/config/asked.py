"""What may be asked of a training: type, default, one-sentence help and range of every key. The command line's flags are made from here.

A value of None means «derive it from the graph» (see train/defaults.py); the run's config.yaml holds what was chosen, by the same keys.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from veilgraph.config.declare import Setting, setting
from veilgraph.errors import ConfigError


@dataclass(frozen=True)
class _Ordinary:
    """Of any training."""

    model: str = setting("complex", str, "Which scorer: see veil list models, or pykeen:NAME.")
    dimension: int | None = setting(None, int, "Numbers per entity.", low=1, high=65536)
    norm: int = setting(
        1, int, "Distance of TransE, TransM and RotatE: 1 (sum) or 2 (Euclidean).", low=1, high=2
    )
    reciprocal: bool | None = setting(None, bool, "A second row per relation for asking backwards.")
    loss: str | None = setting(None, str, "What is minimised.", of="losses")
    margin: float | None = setting(
        None, float, "Margin of the margin and self-adversarial losses.", low=0, high=1000
    )
    temperature: float | None = setting(
        None, float, "How much self-adversarial training favours hard negatives.", low=0, high=100
    )
    candidates: str | None = setting(
        None, str, "Wrong answers: sampled ones, or all entities.", "sampled", "all"
    )
    negatives: int | None = setting(
        None, int, "Sampled wrong answers per side, shared by a chunk.", low=1, high=1 << 20
    )
    chunk: int | None = setting(None, int, "Statements that share their negatives.", low=1, high=1 << 20)
    batch: int | None = setting(
        None, int, "Statements per step (questions, if candidates=all).", low=1, high=1 << 20
    )
    optimiser: str | None = setting(None, str, "How rows are updated.", of="optimisers")
    learning_rate: float | None = setting(None, float, "Step size.", low=0, high=1000)
    schedule: str | None = setting(
        None,
        str,
        "How the step size changes; plateau halves it when validation stalls.",
        "constant",
        "linear",
        "cosine",
        "plateau",
    )
    regulariser: str | None = setting(None, str, "Penalty on the rows of a batch.", "none", "n3", "l2")
    regulariser_weight: float | None = setting(None, float, "Weight of the penalty.", low=0, high=1000)
    dropout: float | None = setting(
        None, float, "Share of the asked rows and query vectors hidden while training.", low=0, high=0.95
    )
    averaging: float | None = setting(
        None,
        float,
        "Epochs over which the result is averaged; 0 takes the last step as it is.",
        low=0,
        high=1000,
    )
    epochs: int | None = setting(None, int, "Passes over the statements, at most.", low=0, high=1_000_000)
    validate_every: int | None = setting(
        None, int, "Epochs between validations; 0 never validates.", low=0, high=1_000_000
    )
    validation_queries: int = setting(
        3000, int, "Statements of the validation split that are ranked.", low=1, high=1 << 30
    )
    patience: int | None = setting(
        None, int, "Validations without a better MRR before stopping.", low=1, high=1_000_000
    )
    seed: int = setting(
        0, int, "Fixes initialisation, sampling and negatives (never privacy noise).", low=0, high=2**63 - 1
    )
    threads: int | None = setting(
        None, int, "Processor threads; as many as there are free cores, if not given.", low=1, high=1024
    )
    tuned_on: str | None = setting(
        None,
        str,
        "What these settings were found on, as veil tune writes it into best.yaml; «public» vouches for it.",
    )


@dataclass(frozen=True)
class _Encoder:
    """Of a graph convolution in front of the scorer: open in a training without one."""

    encoder: str | None = setting(
        None,
        str,
        "A graph convolution that makes entity rows from neighbours: see docs/classify.md.",
        of="convolutions",
    )
    encoder_score: str | None = setting(None, str, "Whose gradients are KE-GCN's messages.")
    encoder_layers: int | None = setting(None, int, "Convolutions.", low=1, high=16)
    encoder_bases: int | None = setting(None, int, "Matrices that relations mix.", low=0, high=4096)
    encoder_edges: int | None = setting(
        None, int, "Statements that carry messages in a step.", low=1, high=1 << 30
    )
    task: str | None = setting(
        None, str, "What an encoder learns from: statements or labels of entities.", "links", "labels"
    )
    transport: str | None = setting(
        None, str, "Distance of a client's bases from the federation's.", of="transports"
    )
    transport_weight: float | None = setting(None, float, "Weight of that distance.", low=0, high=1e6)


@dataclass(frozen=True)
class _Text:
    """Of descriptions: open in a training without them."""

    text: str | None = setting(
        None, str, "Entity rows are made from descriptions by this encoder: see veil list encoders."
    )
    text_vectors: str | None = setting(
        None, str, "Where its vectors come from: wordllama, minilm, a local folder or a file of word vectors."
    )
    text_mix: str | None = setting(
        None,
        str,
        "How description and structure are mixed: by a learnt gate, half and half, or text alone.",
        "learnt",
        "average",
        "text",
    )
    text_hidden: int | None = setting(
        None, int, "Width of a hidden layer between features and rows; 0: none.", low=0, high=65536
    )
    text_width: int | None = setting(
        None, int, "Principal directions of the features that are kept; all, if not given.", low=1, high=65536
    )
    public_descriptions: str | None = setting(
        None,
        str,
        "Whose descriptions are public: all, or beginnings of names with commas. Private trainings read no others.",
    )


@dataclass(frozen=True)
class _Privacy:
    """Of confidential statements: open in an ordinary training, but for a few."""

    epsilon: float | None = setting(
        None,
        float,
        "Privacy budget for confidential statements; training becomes private.",
        low=1e-3,
        high=1e6,
    )
    at_most_sure: float | None = setting(
        None,
        float,
        "The same in words: nobody who thinks a statement as likely as not becomes surer of it than this (0.75: epsilon 1.0986).",
        low=0.501,
        high=0.9999,
    )
    accept_reached: bool | None = setting(
        None,
        bool,
        "Yes to answers that whoever sees them can rely on in more than 90 of 100 cases (mechanism respond, or whole-number "
        "counts, above epsilon 2.197).",
    )
    delta: float | None = setting(
        None,
        float,
        "Probability that the promise may fail (1e-6 if not given); 0 with counts and answers alone.",
        low=0,
        high=0.5,
    )
    mechanism: str | None = setting(
        None,
        str,
        "How noise is added: see veil list mechanisms.",
        of="mechanisms",
        also=("respond",),
    )
    answer_epsilon: float | None = setting(
        None,
        float,
        "ε of each answer of mechanism respond; from epsilon, if not given.",
        low=1e-3,
        high=100,
    )
    drop_confidential: bool = setting(False, bool, "Learn from unrestricted statements only.")
    private_parameters: str | None = setting(
        None,
        str,
        "What confidential statements may move; relations, where unrestricted statements teach the entities.",
        "all",
        "relations",
        "entities",
    )
    clip: float | None = setting(None, float, "Largest gradient norm of one unit.", low=1e-9, high=1e9)
    clip_quantile: float | None = setting(
        None,
        float,
        "Clip at this quantile of the units' gradient norms instead, found with noise and charged.",
        low=0.01,
        high=0.99,
    )
    noise_multiplier: float | None = setting(
        None, float, "Noise in units of the clip; from epsilon, if not given.", low=1e-3, high=1e7
    )
    noise_decay: float | None = setting(
        None,
        float,
        "Noise of the last private steps as a share of the first ones'; it falls in eight stages. 1: always the same.",
        low=0.01,
        high=1,
    )
    sample_rate: float | None = setting(
        None, float, "Chance of a unit to be in a private step.", low=1e-9, high=1
    )
    private_steps: int | None = setting(None, int, "Private steps in all.", low=0, high=10_000_000)
    private_negatives: int | None = setting(
        None, int, "Wrong answers a private step is held against, each side.", low=1, high=1_000_000
    )
    private_optimiser: str | None = setting(None, str, "How private steps move rows.", of="optimisers")
    private_learning_rate: float | None = setting(None, float, "Step size of private steps.", low=0, high=1e6)
    prior: str | None = setting(
        None,
        str,
        "What is added to every score: noisy counts (marginals), counts of what is public and of answers (public), or none.",
        "marginals",
        "public",
        "none",
    )
    prior_epsilon: float | None = setting(
        None,
        float,
        "ε of the counts, as whole numbers; from epsilon, if not given.",
        low=1e-4,
        high=1e6,
    )
    prior_noise: float | None = setting(
        None,
        float,
        "Noise of the counts in units of their sensitivity; from epsilon, if not given.",
        low=1e-3,
        high=1e7,
    )
    shrinkage: str | None = setting(
        None,
        str,
        "Noisy rows are shrunk by the share of them that is noise (James–Stein; costs nothing), or not at all.",
        "rows",
        "none",
    )
    order: str | None = setting(
        None, str, "When private steps are taken.", "interleaved", "unrestricted-first"
    )
    secure_noise: bool = setting(False, bool, "Noise from a cryptographic generator (slower).")
    insecure_noise_seed: int | None = setting(
        None,
        int,
        "For tests: repeatable noise, which protects nothing and is recorded as such.",
        low=0,
        high=2**63 - 1,
    )


@dataclass(frozen=True)
class TrainConfig(_Privacy, _Text, _Encoder, _Ordinary):
    """What is asked for: the settings of one training, by flat keys. None is open: derived from the graph (train/defaults.py)."""

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Every key with what may be said about it."""
        return {f.name: f.metadata["setting"] for f in fields(cls)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TrainConfig:
        """A checked configuration; an unknown key is an error that says the nearest one."""
        settings = cls.settings()
        for key in values:
            if key not in settings:
                near = difflib.get_close_matches(str(key), settings, 1, 0.5)
                guess = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(settings)}."
                raise ConfigError(f"no setting is called {key!r}.{guess}")
        checked = {key: settings[key].check(key, value) for key, value in values.items()}
        sure = checked.pop("at_most_sure", None)
        if sure is not None:
            if checked.get("epsilon") is not None:
                raise ConfigError(
                    f"at_most_sure {sure:g} is an epsilon of {epsilon_of(sure):g}, and epsilon {checked['epsilon']:g} was given too: "
                    "choose one."
                )
            checked["epsilon"] = epsilon_of(sure)
        return cls(**{k: v for k, v in checked.items() if v is not None})

    def open(self, key: str) -> bool:
        """Whether nobody chose this setting."""
        return getattr(self, key) in (None, type(self).__dataclass_fields__[key].default)

    def with_values(self, **values: Any) -> TrainConfig:
        """The same with some keys changed."""
        return TrainConfig.of({**dataclasses.asdict(self), **values})

    @property
    def private(self) -> bool:
        """Whether confidential statements are learnt from with noise."""
        return self.epsilon is not None or self.noise_multiplier is not None

    @property
    def regime(self) -> str:
        """none (every statement is learnt from as it is), dropped (confidential ones are never read) or private."""
        if self.private:
            return "private"
        return "dropped" if self.drop_confidential else "none"

    @property
    def open_data(self) -> bool:
        """Whether every statement is read as it is, and nothing is promised."""
        return self.regime == "none"

    @property
    def public_names(self) -> tuple[str, ...] | None:
        """How the names of entities begin whose descriptions may be read; None: all may. Where nothing is promised, all are."""
        words = (self.public_descriptions or "").strip()
        if self.regime == "none" or words.lower() == "all":
            return None
        return tuple(part.strip() for part in words.split(",") if part.strip())

    @property
    def digest(self) -> str:
        """A SHA-256 of what was chosen, the number of threads aside.

        Settings that are open are left out: one that a later version knows does not make older runs look changed.
        """
        kept = {key: value for key, value in self.as_dict().items() if key != "threads" and value is not None}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """All keys and values."""
        return dataclasses.asdict(self)


def epsilon_of(sure: float) -> float:
    """ε under which nobody who thinks a statement as likely as not becomes surer than this.

    >>> epsilon_of(0.75)
    1.098612
    """
    return math.floor(math.log(sure / (1 - sure)) * 1e6) / 1e6


def _keys(section: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(section))


ENCODER, TEXT, PRIVACY = _keys(_Encoder), _keys(_Text), _keys(_Privacy)
_ALSO_ORDINARY = ("epsilon", "at_most_sure", "noise_multiplier", "drop_confidential", "prior")
PRIVATE_ONLY = tuple(name for name in PRIVACY if name not in _ALSO_ORDINARY)  # meaningless without privacy
