"""Faults where batches and noise are drawn, and where they are paid for."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

TRANSCRIPT = "privacy/test_transcript.py"
CONTRACT = "privacy/test_contract.py"
LEDGER = "privacy/test_ledger_and_certificate.py"
MEASURE = "train/private/measure.py"
SAMPLE = "train/private/sample.py"
PLAN = "train/private/plan.py"

MUTANTS = [
    Mutant(
        "2 σ is charged, σ is drawn",
        MEASURE,
        "return self.sensitivity * self.multiplier",
        "return self.sensitivity * self.multiplier / 2",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "what is drawn differs from what was asked for",
        MEASURE,
        "        drawn *= self.deviation\n",
        "        drawn *= self.deviation / 2\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "nobody looks whether noise was paid for",
        MEASURE,
        "        self._take(event)\n",
        "",
        f"{TRANSCRIPT}::test_what_was_not_paid_for_is_not_drawn",
    ),
    Mutant(
        "a batch may be released twice",
        SAMPLE,
        "        self.spent = True\n",
        "        self.spent = False\n",
        f"{TRANSCRIPT}::test_what_was_not_paid_for_is_not_drawn",
    ),
    Mutant(
        "what is released once keeps all the bits of a double",
        MEASURE,
        "noisy = rounded(exact + self.draw(*exact.shape), self.deviation)",
        "noisy = exact + self.draw(*exact.shape)",
        f"{TRANSCRIPT}::test_what_is_released_once_is_on_a_public_grid",
    ),
    Mutant(
        "several releases of one batch at the price of the quietest",
        MEASURE,
        "sum(one.multiplier**-2 for one in asked)",
        "min(one.multiplier**-2 for one in asked)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[adafest-statement]",
    ),
    Mutant(
        "units are drawn at twice the rate that is charged",
        SAMPLE,
        "coins.binomial(units, self.rate)",
        "coins.binomial(units, min(1.0, 2 * self.rate))",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "a token says half of the rate",
        SAMPLE,
        "token = Token(self.rate)",
        "token = Token(self.rate / 2)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "a sum has no noise where relations stand",
        "train/private/mechanisms/base.py",
        "        out = torch.from_numpy(noise.draw(count, table.shape[1]))\n",
        "        out = torch.from_numpy(noise.draw(count, table.shape[1])) * (count > 100)\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "batches are cut to the size that is expected",
        SAMPLE,
        "count = int(coins.binomial(units, self.rate)) if units else 0",
        "count = min(int(coins.binomial(units, self.rate)), int(units * self.rate)) if units else 0",
        f"{CONTRACT}::test_sampling_is_by_independent_coins",
    ),
    Mutant(
        "a step reads no more of a batch than half of what is expected",
        PLAN,
        "        wrong = self.negatives(batch.number)\n",
        "        most = int(self.terms.expected / 2)\n        chosen, owner = chosen[:most], owner[:most]\n"
        "        wrong = self.negatives(batch.number)\n",
        f"{TRANSCRIPT}::test_a_step_reads_all_that_was_drawn",
    ),
    Mutant(
        "a unit is cut in two, and each half has a clip norm of its own",
        SAMPLE,
        "ends = np.flatnonzero(np.r_[np.diff(owner) != 0, True]) + 1",
        "ends = np.arange(len(owner)) + 1",
        f"{CONTRACT}::test_pieces_never_cut_a_unit",
    ),
    Mutant(
        "sums are divided by the number of units that was drawn",
        PLAN,
        "        wrong = self.negatives(batch.number)\n",
        "        self.mechanism.terms = replace(self.terms, expected=max(1, len(chosen)))\n"
        "        wrong = self.negatives(batch.number)\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "a unit may have more statements than its cap",
        PLAN,
        "kept = capped(unit_of, terms.per_unit, meter.coins())",
        "kept = np.ones(len(unit_of), bool)",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-head]",
    ),
    Mutant(
        "one statement more than the cap",
        "mark/units.py",
        "place < cap",
        "place <= cap",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-head]",
    ),
    Mutant(
        "a sum says that a unit moves it by half a clip norm",
        PLAN,
        "            self.clip.norm,\n",
        "            0.5 * self.clip.norm,\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "noise comes from the seed of the run",
        "train/private/setup.py",
        "secure=config.secure_noise, insecure_seed=config.insecure_noise_seed, threads",
        "secure=config.secure_noise, insecure_seed=config.seed, threads",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "the noise of the number of units comes from the seed of the run",
        "train/private/setup.py",
        "meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed))",
        "meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.seed))",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "the noise of the counts comes from the seed of the run",
        "train/priors.py",
        "insecure_seed=config.insecure_noise_seed",
        "insecure_seed=config.seed",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noisy_counts",
    ),
    Mutant(
        "private batches are the same in every training",
        "train/private/gauss.py",
        "np.random.SFC64(coins)",
        "np.random.SFC64(0)",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "secure noise under a key that everybody knows",
        "train/private/gauss.py",
        "algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))",
        "algorithms.AES256(bytes(32)), modes.CTR(bytes(16))",
        f"{CONTRACT}::test_noise_is_never_drawn_twice[secure]",
    ),
    Mutant(
        "noise without fresh entropy",
        "train/private/gauss.py",
        "np.random.SeedSequence(seed)",
        "np.random.SeedSequence(seed or 0)",
        f"{CONTRACT}::test_noise_is_never_drawn_twice[fresh]",
    ),
    Mutant(
        "the number of units is published as it is",
        "train/private/setup.py",
        "return max(FEWEST, float(noisy[0]))",
        "return max(FEWEST, float(exact[0]))",
        f"{CONTRACT}::test_number_of_confidential_statements_is_not_public",
    ),
    Mutant(
        "the loss of private steps goes into checkpoints",
        PLAN,
        "return 0.0  # the loss is confidential",
        "return self.losses[-1]  # the loss is confidential",
        f"{LEDGER}::test_checkpoint_holds_no_confidential_loss",
    ),
    Mutant(
        "checkpoints are written before late noise is in",
        "train/loop.py",
        "            self.plan.flush(self.state.parameters)\n            self.state.ledger",
        "            self.state.ledger",
        f"{CONTRACT}::test_checkpoints_hold_all_their_noise",
    ),
    Mutant(
        "steps go on when the budget is spent",
        PLAN,
        "            self.left = steps_left(events, event, config.epsilon, self.delta, total)\n",
        "            self.left = total\n",
        f"{LEDGER}::test_training_stops_before_the_budget_is_exceeded",
    ),
]
