"""Faults that break a promise, one by one: ``make mutants`` plants each of them and sees a named test fail."""
