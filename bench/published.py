"""Published test MRR, for the column beside ours. Same splits, filtered, both sides unless said otherwise.

The FB15k-237 figures come from the project's brief. The others were written down from memory and must be checked
against their sources before a comparison with them is recorded.
"""

from __future__ import annotations

# LibKGE's README, best published configurations (FB15k-237 and WN18RR).
LIBKGE = {
    "fb15k-237": {"rescal": 0.356, "transe": 0.313, "distmult": 0.343, "complex": 0.348, "rotate": 0.333},
    "wn18rr": {"rescal": 0.467, "transe": 0.228, "distmult": 0.452, "complex": 0.475, "rotate": 0.478},
}
# Lin, Socher & Xiong 2018 (arXiv 1808.10568), table 3; they rank tails only.
MULTI_HOP = {
    "umls": {"distmult": 0.868, "complex": 0.934},
    "kinship": {"distmult": 0.614, "complex": 0.884},
}


def published(data: str, model: str) -> float | None:
    """The figure, if there is one."""
    return {**LIBKGE, **MULTI_HOP}.get(data, {}).get(model)
