"""Counting: what a question needs, the loops over encoded columns, and the tables made of their sums."""
