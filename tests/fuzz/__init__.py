"""Hostile and damaged inputs: what is made of them (``mutate``), who reads them (``targets``), and what may come of it (``run``).

python -m tests.fuzz --inputs 10000        (make fuzz)
python -m tests.fuzz.flips --flips 2000    one bit of a run or a graph at a time: every one is noticed
"""
