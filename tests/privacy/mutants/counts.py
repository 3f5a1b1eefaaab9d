"""Faults in noisy counts, in clip norms from the data, and in studies that are charged."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

TRANSCRIPT = "privacy/test_transcript.py"
COUNTS = "privacy/test_marginals.py"
ROOM = "release/counts.py"

MUTANTS = [
    Mutant(
        "counts: a unit of m statements moves them by √(2 m)",
        "account/prices.py",
        "math.sqrt(2) * self.per_unit",
        "math.sqrt(2 * self.per_unit)",
        f"{TRANSCRIPT}::test_counts_draw_what_they_are_charged[head]",
    ),
    Mutant(
        "counts: a unit may have more statements than its cap",
        ROOM,
        "        secret = secret[capped(units(graph), counting.per_unit, meter.coins())]\n",
        "        secret = secret.copy()\n",
        f"{COUNTS}::test_counts_read_no_more_of_a_unit_than_its_cap",
    ),
    Mutant(
        "counts: a loop adds both of its directions to one column",
        ROOM,
        "(1 - math.sqrt(0.5)) * both",
        "0.0 * both",
        f"{COUNTS}::test_sensitivity_of_counts",
    ),
    Mutant(
        "counts: weights of a statement's two sides have squares of 4",
        "release/count_roles.py",
        "np.sqrt(2 * share / ",
        "np.sqrt(4 * share / ",
        f"{COUNTS}::test_sensitivity_of_counts",
    ),
    Mutant(
        "large tables: no empty cell passes",
        ROOM,
        "int(coins.binomial(total, chance))",
        "0 * int(coins.binomial(total, chance))",
        f"{COUNTS}::test_drawing_only_what_exceeds_equals_drawing_all",
    ),
    Mutant(
        "counts are published without their noise",
        ROOM,
        "    table, deviation = first.on(counts), first.deviation\n",
        "    table, deviation = counts + 0.0 * first.on(counts), first.deviation\n",
        f"{COUNTS}::test_noise_of_every_release_is_as_charged",
    ),
    Mutant(
        "counts are drawn anew at each start",
        "train/priors.py",
        "    if path is not None and path.exists():\n",
        "    if False:\n",
        "privacy/test_ledger_and_certificate.py::test_counts_are_drawn_once",
    ),
    Mutant(
        "counts that are gone are drawn anew under their charge",
        "train/priors.py",
        'if not there and any(line["what"] == WRITTEN for line in ledger.lines):',
        "if False:",
        "privacy/test_ledger_and_certificate.py::test_counts_lost_in_a_crash_are_drawn_again_under_their_charge",
    ),
    Mutant(
        "a clip norm from the histogram without its noise",
        "train/private/quantile.py",
        "    reached = np.cumsum(counts) / counts.sum()\n",
        "    reached = np.cumsum(exact) / exact.sum()\n",
        "privacy/test_clip_quantile.py::test_the_quantile_is_read_off_noisy_counts_alone",
    ),
    Mutant(
        "a unit is in two bins",
        "train/private/quantile.py",
        "minlength=len(EDGES))[1:]",
        "minlength=len(EDGES))[1:] * 2",
        "privacy/test_clip_quantile.py::test_the_quantile_is_read_off_noisy_counts_alone",
    ),
    Mutant(
        "a study's score: a unit of m statements moves it by one",
        "tune/trials.py",
        "Asked(float(per_unit), multiplier)",
        "Asked(1.0, multiplier)",
        f"{TRANSCRIPT}::test_a_study_draws_what_it_is_charged[head]",
    ),
    Mutant(
        "a study's score reads more of a unit than its cap",
        "tune/trials.py",
        '    statements = statements[capped(units(graph, "valid"), per_unit, rng)]\n',
        "    statements = statements[rng.permutation(len(statements))]\n",
        "privacy/test_tuning.py::test_a_score_reads_no_more_of_a_unit_than_its_cap",
    ),
]
