"""Noise: additive for counts and magnitudes, multiplicative for magnitudes."""
