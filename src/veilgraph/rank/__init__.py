"""How good answers are: scores of all entities, filtered ranks, and their summaries. Knows models and statements, no runs."""
