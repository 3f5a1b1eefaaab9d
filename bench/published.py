"""Published test MRR, for the column beside ours. Same splits, filtered, both sides unless said otherwise.

LIBKGE       its README (repository uma-pi1/kge); RotatE on FB15k-237 as given in the project's brief
ROTATE       Sun et al. 2019 (arXiv 1902.10197), as listed in irokin/Link-Prediction-Experiment-Results
MULTI_HOP    Lin, Socher & Xiong 2018 (arXiv 1808.10568); tails only; written down from memory, not checked
RULES        Qu et al. 2021 (arXiv 2010.04029), table for UMLS and Kinship; written down from memory, not checked
CONTE        Pu et al. 2022 (doi 10.2478/jdis-2022-0009), Nations
COMPLEX      Trouillon et al. 2016, WN18; Safavi & Koutra 2020, CoDEx-S; written down from memory, not checked
"""

from __future__ import annotations

LIBKGE = {
    "fb15k-237": {"rescal": 0.356, "transe": 0.313, "distmult": 0.343, "complex": 0.348, "rotate": 0.333},
    "wn18rr": {"rescal": 0.467, "transe": 0.228, "distmult": 0.452, "complex": 0.475},
}
ROTATE = {"wn18rr": {"rotate": 0.476}}
MULTI_HOP = {
    "umls": {"distmult": 0.868, "complex": 0.934},
    "kinship": {"distmult": 0.614, "complex": 0.884},
}
RULES = {"umls": {"transe": 0.690, "rotate": 0.744}, "kinship": {"transe": 0.310, "rotate": 0.651}}
CONTE = {"nations": {"transe": 0.481, "distmult": 0.713, "complex": 0.668, "rotate": 0.716}}
COMPLEX = {"wn18": {"complex": 0.941}, "codex-s": {"complex": 0.465}}


def published(data: str, model: str) -> float | None:
    """The figure, if there is one."""
    for source in (LIBKGE, ROTATE, MULTI_HOP, RULES, CONTE, COMPLEX):
        if model in source.get(data, {}):
            return source[data][model]
    return None
