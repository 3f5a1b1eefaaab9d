"""Faults in the norms that clipping rests on."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

CLIP = "train/private/test_clip.py"
HOSTILE = "privacy/test_hostile_tables.py"
DESCRIBED = "train/private/test_described.py"
KERNELS = "train/private/clip_kernels.py"
TEXT = "train/private/projection.py"

MUTANTS = [
    Mutant(
        "relations have no part in the norm",
        KERNELS,
        "            total += _square(ahead[i])\n",
        "            total += 0.0\n",
        f"{CLIP}::test_clipped_sum_equals_a_loop_over_statements",
    ),
    Mutant(
        "head and tail of a loop are two rows",
        KERNELS,
        "            if same[i]:\n",
        "            if False:\n",
        f"{CLIP}::test_clipped_sum_equals_a_loop_over_statements",
    ),
    Mutant(
        "what a statement does to its negatives has no part in the norm",
        KERNELS,
        "                total += np.float64(reach[side]) * np.float64(reach[side]) * _square(on_negative[side])\n",
        "                total += 0.0\n",
        f"{CLIP}::test_clipped_sum_equals_a_loop_over_statements",
    ),
    Mutant(
        "clipped at √2 times the norm",
        KERNELS,
        "min(1.0, clip / (norm * (1 + SLACK) + 1e-12))",
        "min(1.0, 1.414 * clip / (norm * (1 + SLACK) + 1e-12))",
        f"{CLIP}::test_clipped_sum_equals_a_loop_over_statements",
    ),
    Mutant(
        "units of several statements are clipped at √2 times the norm",
        "train/private/clip.py",
        "torch.clamp(clip.norm / (norms * (1 + SLACK) + 1e-12), max=1.0)",
        "torch.clamp(1.414 * clip.norm / (norms * (1 + SLACK) + 1e-12), max=1.0)",
        f"{CLIP}::test_units_of_several_statements_stay_inside_the_clip",
    ),
    Mutant(
        "a gradient that is no number counts",
        KERNELS,
        "        if not norm < MOST:\n            factor[i] = 0\n",
        "        if not norm < MOST:\n            factor[i] = 1\n",
        f"{HOSTILE}::test_one_statement_moves_a_sum_by_a_clip_norm_at_most",
    ),
    Mutant(
        "a unit is held against its own entities",
        KERNELS,
        "                        scores[side, i, place[entity]] = -np.inf\n",
        "                        scores[side, i, place[entity]] += 0\n",
        f"{CLIP}::test_a_unit_is_not_held_against_its_own_entities",
    ),
    Mutant(
        "rows a unit meets twice are not added up before the norm",
        "train/private/clip.py",
        "    keys, summed = merge(unit * width + ids, rows)\n",
        "    keys, summed = unit * width + ids, rows\n",
        f"{CLIP}::test_units_of_several_statements_stay_inside_the_clip",
    ),
    Mutant(
        "pulls on negatives are added up in single precision",
        "train/private/pulls.py",
        "wide = (part.double() for part in",
        "wide = (part for part in",
        f"{HOSTILE}::test_one_statement_among_very_many_moves_a_sum_by_a_clip_norm_at_most",
    ),
    Mutant(
        "a batch has a shape of its own",
        "train/private/sums.py",
        "count, more = len(statements), -len(statements) % size",
        "count, more = len(statements), 0",
        f"{HOSTILE}::test_how_many_statements_there_are_rounds_none_of_them_anew",
    ),
    Mutant(
        "rows of any size are computed with",
        "train/private/pulls.py",
        "return table.index_select(0, ids).clamp_(-LARGEST, LARGEST)",
        "return table.index_select(0, ids)",
        f"{HOSTILE}::test_one_statement_moves_a_sum_by_a_clip_norm_at_most",
    ),
    Mutant(
        "terms of a projection's gradient that cancel are under-estimated",
        TEXT,
        "(products.sum((1, 2)).clamp_(min=0) + lost * terms.square())",
        "(products.sum((1, 2)).clamp_(min=0))",
        f"{DESCRIBED}::test_terms_that_cancel_are_not_under_estimated",
    ),
    Mutant(
        "units of several described statements have the norm of one",
        TEXT,
        ".index_add_(0, unit, norms)",
        ".index_reduce_(0, unit, norms, 'amax')",
        f"{DESCRIBED}::test_one_unit_changes_the_sum_by_at_most_the_clip",
    ),
]
