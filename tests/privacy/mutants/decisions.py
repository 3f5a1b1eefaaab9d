"""Faults in what is decided before the first noise, in what is bound, and in lists with an ε."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

NEIGHBOURS = "privacy/test_pipeline_of_neighbours.py"
LEDGER = "privacy/test_ledger_and_certificate.py"

MUTANTS = [
    Mutant(
        "facts are not bound to the ledger",
        "run/facts.py",
        "digest=config.digest, facts=digest_of(facts), file=whole, **more)",
        "digest=config.digest, **more)",
        f"{LEDGER}::test_a_promise_cannot_be_changed_between_a_kill_and_its_end",
    ),
    Mutant(
        "nobody compares facts with the marks",
        "run/facts.py",
        "        if facts.get(key) != marks[key]\n",
        "        if False\n",
        f"{LEDGER}::test_facts_are_compared_with_the_marks",
    ),
    Mutant(
        "a certificate is silent about what was decided from statements",
        "run/facts.py",
        "return list(dict.fromkeys([*graph.decided_from, *marks]))",
        "return []",
        "privacy/test_decided_before.py::test_decisions_that_look_at_any_statement_are_named",
    ),
    Mutant(
        "settings tuned on everything are taken for public",
        "train/tuned.py",
        "    if told != tuned_on(graph):\n",
        "    if False:\n",
        "privacy/test_decided_before.py::test_settings_tuned_on_what_became_confidential_are_refused",
    ),
    Mutant(
        "latest: confidential statements have a part in the order of time",
        "load/split.py",
        "before, of = _places(statements[:, 0], own & ~secret, own)",
        "before, of = _places(statements[:, 0], own, own)",
        f"{NEIGHBOURS}::test_every_rule[random_share-latest-statement]",
    ),
    Mutant(
        "latest: confidential statements of a head move its unrestricted ones",
        "load/split.py",
        "        before[hidden], of[hidden] = among[hidden], all_[hidden]\n",
        "        before, of = among, all_\n",
        f"{NEIGHBOURS}::test_every_rule[random_share-latest-head]",
    ),
    Mutant(
        "what became confidential after a decision is not looked at",
        "load/graph.py",
        'if one["open"] != self.open_digest\n',
        "if False\n",
        "privacy/test_decided_before.py::test_what_was_decided_before_something_became_confidential_is_named",
    ),
    Mutant(
        "the list of labels is read off protected labels",
        "classify/classify.py",
        "len(steps) > 1 and steps[-1] != steps[0]\n",
        "len(steps) > 0\n",
        "classify/test_guarantees.py::test_labels_one_step_away_are_protected_too",
    ),
    Mutant(
        "lists with an ε are refused by what a person has",
        "sanitise/exponential.py",
        "            request.repeat and request.allowed.all()\n",
        "            request.allowed.all()\n",
        "conformance/test_sanitisers.py::test_an_epsilon_is_refused_by_what_was_asked_for_and_not_by_what_people_have",
    ),
    Mutant(
        "random split: names are kept by confidential statements",
        "load/split.py",
        "    open_ = np.flatnonzero(~graph.is_secret(statements))\n    kept = []\n",
        "    open_ = np.arange(len(statements))\n    kept = []\n",
        f"{NEIGHBOURS}::test_every_split[random-head]",
    ),
    Mutant(
        "--fix: confidential statements tell what train knows",
        "load/check.py",
        '_faults(graph, ~graph.secret("train"), hidden)',
        "_faults(graph, np.ones(len(graph.train), bool), hidden)",
        f"{NEIGHBOURS}::test_every_reader[folder-head]",
    ),
    Mutant(
        "lists with an ε have the items of the histories",
        "sanitise/exponential.py",
        "        if not request.public_items:\n",
        "        if False:\n",
        "recommend/test_recommend.py::test_an_item_that_one_person_has_does_not_vanish_with_him",
    ),
    Mutant(
        "lists with an ε leave out what a user has",
        "sanitise/exponential.py",
        "            request.repeat and request.allowed.all()\n",
        "            True or request.repeat\n",
        "conformance/test_sanitisers.py::test_lists_are_lists",
    ),
    Mutant(
        "lists with an ε: a draw costs half of what it should",
        "sanitise/exponential.py",
        "return self.budget / (2 * size)",
        "return self.budget / size",
        "conformance/test_sanitisers.py::test_exponential_keeps_its_word_for_the_worst_pair_of_people",
    ),
    Mutant(
        "a commitment without its salt",
        "run/commitment.py",
        "hmac.new(bytes.fromhex(salt), ",
        "hmac.new(bytes(16), ",
        "privacy/test_contract.py::test_hash_of_confidential_data_is_not_published",
    ),
]
