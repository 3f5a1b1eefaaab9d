"""Faults in labels that are learnt under a guarantee."""

from __future__ import annotations

from tests.privacy.mutants.mutant import Mutant

MECHANISMS = "classify/test_mechanisms.py"
TRANSCRIPT = "privacy/test_transcript.py"
EDGE = "classify/guarantees/edge.py"
STEPS = "classify/private_steps.py"

MUTANTS = [
    Mutant(
        "edge: a statement that sends both ways moves sums by one",
        EDGE,
        '"both": math.sqrt(2)}',
        '"both": 1.0}',
        f"{TRANSCRIPT}::test_sums_of_messages_draw_what_they_are_charged[both]",
    ),
    Mutant(
        "edge: messages of any length",
        EDGE,
        "    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1)\n",
        "",
        f"{MECHANISMS}::test_a_statement_moves_sums_no_further_than_is_charged",
    ),
    Mutant(
        "edge: a message that is no number",
        EDGE,
        "    wide[~np.isfinite(wide).all(1)] = 0  # noise does not hide what is no number\n",
        "",
        f"{MECHANISMS}::test_a_message_that_is_no_number_is_not_sent",
    ),
    Mutant(
        "edge: sums are released anew at each start",
        EDGE,
        "        if path.exists():\n",
        "        if False:\n",
        f"{MECHANISMS}::test_sums_are_released_once",
    ),
    Mutant(
        "label, node: sums are divided by the number that was drawn",
        STEPS,
        "[_noisy(g, here) / expected for g in sums]",
        "[_noisy(g, here) / max(1, len(chosen)) for g in sums]",
        f"{MECHANISMS}::test_private_steps_are_divided_by_what_is_public",
    ),
    Mutant(
        "label, node: clipped at twice the norm that is charged",
        STEPS,
        "truth[drawn], config.clip)",
        "truth[drawn], 2 * config.clip)",
        f"{MECHANISMS}::test_private_steps_clip_at_what_is_charged",
    ),
    Mutant(
        "label, node: the number of labelled entities as it is",
        STEPS,
        "found = max(FEWEST, float(noisy[0]))",
        "found = max(FEWEST, float(exact))",
        f"{MECHANISMS}::test_the_number_of_labelled_entities_is_noisy",
    ),
    Mutant(
        "label, node: an example's bias has no part in its norm",
        "classify/perceptron.py",
        "(into.square().sum(1) + 1) * out.square().sum(1)",
        "into.square().sum(1) * out.square().sum(1)",
        f"{MECHANISMS}::test_clipped_sums_equal_a_loop",
    ),
    Mutant(
        "node: an entity reads the statements it is the tail of",
        "classify/guarantees/node.py",
        "along(task.confidential[:, 2], task.confidential[:, 0], task.nodes)",
        "along(task.confidential[:, 0], task.confidential[:, 2], task.nodes)",
        f"{MECHANISMS}::test_no_other_entity_reads_an_entitys_statements",
    ),
]
