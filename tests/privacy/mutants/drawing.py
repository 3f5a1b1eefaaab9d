"""Faults where batches and noise are drawn, and where they are paid for."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

TRANSCRIPT = "privacy/test_transcript.py"
CONTRACT = "privacy/test_contract.py"
LEDGER = "privacy/test_ledger_and_certificate.py"
MEASURE = "noise/measure.py"
SAMPLE = "noise/sample.py"
PLAN = "train/private/plan.py"
PRICES = "account/prices.py"
PROMISE = "account/promise.py"
PROMISED = "account/test_promise.py"

MUTANTS = [
    Mutant(
        "2 σ is charged, σ is drawn",
        PRICES,
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
        PRICES,
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
        "train/mechanisms/base.py",
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
        "        wrong = self.confidential.negatives(batch.number)\n",
        "        most = int(self.terms.expected / 2)\n        statements, owner = statements[:most], owner[:most]\n"
        "        wrong = self.confidential.negatives(batch.number)\n",
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
        "        wrong = self.confidential.negatives(batch.number)\n",
        "        self.mechanism.terms = replace(self.terms, expected=max(1, len(statements)))\n"
        "        wrong = self.confidential.negatives(batch.number)\n",
        f"{TRANSCRIPT}::test_steps_draw_what_they_are_charged[dense-statement]",
    ),
    Mutant(
        "a unit may have more statements than its cap",
        "train/private/batches.py",
        "kept = capped(unit_of, per_unit, coins)",
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
        "train/session.py",
        "insecure_seed=chosen.seed",
        "insecure_seed=self.settings.seed",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "the noise of the number of units comes from the seed of the run",
        "train/private/begin.py",
        "meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed))",
        "meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.seed))",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "the noise of the counts comes from the seed of the run",
        "train/session.py",
        "self.ledger, self._noise())",
        "self.ledger, source(insecure_seed=self.settings.seed))",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noisy_counts",
    ),
    Mutant(
        "private batches are the same in every training",
        "noise/gauss.py",
        "np.random.SFC64(coins)",
        "np.random.SFC64(0)",
        "privacy/test_fresh_noise.py::test_seed_does_not_fix_noise_or_private_batches",
    ),
    Mutant(
        "secure noise under a key that everybody knows",
        "noise/gauss.py",
        "algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))",
        "algorithms.AES256(bytes(32)), modes.CTR(bytes(16))",
        f"{CONTRACT}::test_noise_is_never_drawn_twice[secure]",
    ),
    Mutant(
        "noise without fresh entropy",
        "noise/gauss.py",
        "np.random.SeedSequence(seed)",
        "np.random.SeedSequence(seed or 0)",
        f"{CONTRACT}::test_noise_is_never_drawn_twice[fresh]",
    ),
    Mutant(
        "the number of units is published as it is",
        "train/private/begin.py",
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
        "train/private/purse.py",
        "            self.left = steps_left(events, event, promise.epsilon, promise.delta, total)\n",
        "            self.left = total\n",
        f"{LEDGER}::test_training_stops_before_the_budget_is_exceeded",
    ),
    Mutant(
        "the noise of steps is settled as if there were no counts",
        PROMISE,
        "        known += [self.counted] if self.counts else []\n",
        "",
        f"{PROMISED}::test_what_is_settled_keeps_the_budget_with_every_release",
    ),
    Mutant(
        "the noise of steps is settled as if no clip norm had to be found",
        PROMISE,
        "        known += [self.norms] if self.clip_from_data else []\n",
        "",
        f"{PROMISED}::test_what_is_settled_keeps_the_budget_with_every_release",
    ),
    Mutant(
        "whether the number of units was paid for is not looked at",
        PROMISE,
        "        if self.number.event not in events:\n",
        "        if False:\n",
        f"{LEDGER}::test_a_charge_cannot_be_left_out_and_certified_again",
    ),
    Mutant(
        "steps of another price are taken for those of the settings",
        PROMISE,
        '        if any(all(event["of"] not in prices for _, prices in stages) for event in taken):\n',
        "        if False:\n",
        f"{PROMISED}::test_a_promise_names_what_a_ledger_lacks",
    ),
    Mutant(
        "fewer steps than were taken are enough",
        PROMISE,
        "            if paid >= asked:\n",
        "            if True:\n",
        f"{PROMISED}::test_a_promise_names_what_a_ledger_lacks",
    ),
]
