"""Attackers: one small file each. Each learns from people whose attribute it knows, and gives every value a chance for others."""
