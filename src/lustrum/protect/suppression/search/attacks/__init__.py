"""Attacks on patterns: what each attacker cannot rule out, and the inequalities that follow from it."""
