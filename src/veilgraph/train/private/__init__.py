"""Private training: sample, clip, noise — and ``plan.py``, which alone knows all of them and what they cost."""
