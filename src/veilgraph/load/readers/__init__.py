"""Readers, one small file each: a new file is found by itself, and asked in the order of its ``turn``."""
