"""Faults in how mechanisms turn a sum into a step. Each mechanism that promises something has one at least."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

TRANSCRIPT = "privacy/test_transcript.py"
CONTRACT = "privacy/test_contract.py"
ROOM = "train/mechanisms"

MUTANTS = [
    Mutant(
        "dense: noise on the relations that occur",
        f"{ROOM}/dense.py",
        'ids = self.clip.rows if name == "relations" else None',
        "ids = getattr(step.total, name).ids",
        f"{CONTRACT}::test_empty_batches_still_get_noise",
    ),
    Mutant(
        "lazy: half of the variance is owed",
        f"{ROOM}/lazy.py",
        "step.rate / self.terms.expected)  # (the sum",
        "0.7 * step.rate / self.terms.expected)  # (the sum",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[lazy-statement]",
    ),
    Mutant(
        "lazy: relations never get the noise they are due",
        f"{ROOM}/lazy.py",
        "        self.catch_up(p, None, None)\n",
        "        self.catch_up(p, None, p.relations.new_empty(0).long())\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[lazy-statement]",
    ),
    Mutant(
        "lazy: a small variance vanishes beside a large sum",
        "noise/measure.py",
        "        while later - self.variance < due:  # a small variance must not vanish beside a large sum\n"
        "            later = math.nextafter(later, math.inf)\n",
        "",
        "privacy/test_noise_decay.py::test_a_small_variance_does_not_vanish_beside_a_large_sum",
    ),
    Mutant(
        "adafest: a unit votes once",
        "train/private/clip.py",
        "return Votes(ids, counts, math.sqrt(2 * per_unit))",
        "return Votes(ids, counts, 1.0)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[adafest-head]",
    ),
    Mutant(
        "adafest: the choice of rows costs nothing",
        f"{ROOM}/adafest.py",
        "return self.multiplier * math.sqrt(1 + SELECT_RATIO**-2)",
        "return self.multiplier",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[adafest-statement]",
    ),
    Mutant(
        "adafest: no row passes by chance",
        f"{ROOM}/adafest.py",
        "NormalDist().cdf(-self.limit), self.terms.entities)",
        "0.0, self.terms.entities)",
        f"{CONTRACT}::test_adafest_by_skipping_equals_adafest_by_coins",
    ),
    Mutant(
        "adafest: noise on the relations that occur",
        f"{ROOM}/adafest.py",
        "total.relations, on_sums, None, step.rate)",
        "total.relations, on_sums, total.relations.ids, step.rate)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[adafest-statement]",
    ),
    Mutant(
        "select: a gap changes by C",
        f"{ROOM}/select.py",
        "safe: ClassVar[float] = 2.0",
        "safe: ClassVar[float] = 1.0",
        f"{TRANSCRIPT}::test_select_lets_no_gap_pass_that_two_neighbours_could_make",
    ),
    Mutant(
        "select: the noisy max with half of its noise",
        f"{ROOM}/select.py",
        "gumbel(0, 2 * scale, len(gaps))",
        "gumbel(0, scale, len(gaps))",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[select-statement]",
    ),
    Mutant(
        "select: the noisy max costs half",
        f"{ROOM}/select.py",
        "1 / as_gaussian(1.5 / sigma)",
        "1 / as_gaussian(0.75 / sigma)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[select-statement]",
    ),
    Mutant(
        "select: the test costs as if a gap changed by C",
        f"{ROOM}/select.py",
        "Asked(2 * step.sensitivity, sigma / 2)",
        "Asked(step.sensitivity, sigma)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[select-statement]",
    ),
    Mutant(
        "select: a private choice is taken for a Gaussian that tells less",
        f"{ROOM}/select.py",
        "return -2 * NormalDist().inv_cdf(",
        "return -1 * NormalDist().inv_cdf(",
        f"{TRANSCRIPT}::test_a_gaussian_is_as_telling_as_a_private_choice[0.2]",
    ),
    Mutant(
        "touched claims a guarantee",
        f"{ROOM}/touched.py",
        'guarantee = "as published, not differentially private"',
        'guarantee = "dp"',
        f"{CONTRACT}::test_every_mechanism_trains_and_says_what_it_promises",
    ),
    Mutant(
        "sums are shrunk before their noise",
        f"{ROOM}/base.py",
        "        if self.terms.shrink:\n            shrink(out, noise.deviation)\n",
        "        if not len(rows.ids):\n            out.zero_()\n",
        f"{CONTRACT}::test_empty_batches_still_get_noise",
    ),
    Mutant(
        "a mechanism may move tables without measured noise",
        "train/private/plan.py",
        "        if not token.spent:\n",
        "        if False:\n",
        "privacy/test_forgeries.py::test_a_mechanism_that_measures_nothing_moves_nothing",
    ),
    Mutant(
        "an early end excuses any number of steps",
        "run/verify.py",
        "return said if isinstance(said, int) and said in reachable else None",
        "return said if isinstance(said, int) else None",
        "privacy/test_forgeries.py::test_steps_that_no_early_end_explains_are_missed[0]",
    ),
    Mutant(
        "a seeded noise may be forgotten by the ledger",
        "account/promise.py",
        "        if self.seeded and non_private(SEEDED) not in events:\n",
        "        if False:\n",
        "privacy/test_forgeries.py::test_a_seeded_noise_cannot_be_forgotten",
    ),
]
