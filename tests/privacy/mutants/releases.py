"""Faults in what is released once: answers, and counts as whole numbers."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

ANSWERS = "privacy/test_answers.py"
INTEGERS = "noise/test_integers.py"
TRANSCRIPT = "privacy/test_transcript.py"

MUTANTS = [
    Mutant(
        "answers: coins lie less often than is charged",
        "noise/measure.py",
        "lies(asked.cells, asked.epsilon, self.coins())",
        "lies(asked.cells, 2 * asked.epsilon, self.coins())",
        f"{ANSWERS}::test_what_lies_is_what_is_charged",
    ),
    Mutant(
        "answers: a true no never lies",
        "noise/measure.py",
        "said = np.setxor1d(truth, lies(",
        "said = np.setdiff1d(truth, lies(",
        f"{ANSWERS}::test_answers_are_as_true_as_charged",
    ),
    Mutant(
        "answers: nobody looks whether they were paid for",
        "noise/measure.py",
        "            self._take(pure(asked.epsilon))\n",
        "            pure(asked.epsilon)\n",
        f"{TRANSCRIPT}::test_answers_that_were_not_paid_for_are_not_given",
    ),
    Mutant(
        "answers: a unit of several statements pays for one",
        "account/prices.py",
        "return pure(epsilon) if per_unit == 1 else repeated(per_unit, pure(epsilon))",
        "return pure(epsilon)",
        f"{ANSWERS}::test_what_lies_is_what_is_charged",
    ),
    Mutant(
        "answers: a unit may be in more cells than its cap",
        "release/response.py",
        "        secret = secret[capped(units(graph), promise.per_unit, meter.coins())]\n",
        "        secret = secret.copy()\n",
        f"{ANSWERS}::test_a_unit_is_in_no_more_cells_than_it_is_charged_for[head-3]",
    ),
    Mutant(
        "answers: which cells are asked about follows from all statements",
        "train/answers.py",
        "return Questions.about(self.public, possible",
        "return Questions.about(self.graph, possible",
        f"{ANSWERS}::test_what_is_asked_follows_from_unrestricted_statements",
    ),
    Mutant(
        "answers: drawn anew at each start",
        "train/answers.py",
        "        if not self.path.exists():\n            if written:",
        "        if True:\n            if False:",
        f"{ANSWERS}::test_answers_are_drawn_once",
    ),
    Mutant(
        "answers: not asked for by whoever verifies",
        "account/promise.py",
        "if self.asks and self.answered not in events:",
        "if False:",
        f"{ANSWERS}::test_a_ledger_without_the_answers_is_no_certificate",
    ),
    Mutant(
        "answers: the whole budget for each of a unit's",
        "account/promise.py",
        "least = left / self.per_unit  # added up",
        "least = left",
        f"{ANSWERS}::test_units_of_several_statements_are_priced_by_the_lesser_bound",
    ),
    Mutant(
        "answers: counts before them are not taken off",
        "account/promise.py",
        "        known += [pure(counted)] if counted else []\n",
        "",
        f"{ANSWERS}::test_counts_come_first_where_only_they_suggest_what_to_ask",
    ),
    Mutant(
        "answers: at any ε without a word",
        "train/private/defaults.py",
        "if config.epsilon > RELIABLE and not config.accept_reached:",
        "if False:",
        f"{ANSWERS}::test_what_reaches_its_bound_needs_a_yes",
    ),
    Mutant(
        "whole numbers: a statement moves one count",
        "account/prices.py",
        "return Tallies(2 * self.per_unit, self.epsilon)",
        "return Tallies(self.per_unit, self.epsilon)",
        f"{TRANSCRIPT}::test_whole_counts_draw_what_they_are_charged[statement]",
    ),
    Mutant(
        "whole numbers: the noise of another ε",
        "noise/measure.py",
        "two_sided(exact.size, asked.each, self.coins())",
        "two_sided(exact.size, asked.epsilon, self.coins())",
        f"{TRANSCRIPT}::test_whole_counts_draw_what_they_are_charged[statement]",
    ),
    Mutant(
        "whole numbers: zero comes up twice as often",
        "noise/integers.py",
        "good = ~(negative & (size == 0))",
        "good = np.ones(len(size), bool)",
        f"{INTEGERS}::test_whole_numbers_have_the_two_sided_geometric_law",
    ),
    Mutant(
        "δ = 0 is promised of what has one",
        "account/epsilon.py",
        "if left <= 0 and all(map(is_pure, merged)) and delta == 0:",
        "if left <= 0 and delta == 0:",
        "account/test_epsilon.py::test_only_what_has_no_delta_is_promised_without_one",
    ),
    Mutant(
        "large tables: the first number above the threshold is as likely twice",
        "release/counts.py",
        "return (math.floor(value / step) + 0.5) * step",
        "return value",
        "release/test_counts.py::test_a_threshold_lies_between_two_numbers",
    ),
]
