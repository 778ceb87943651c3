"""Totals: which cells they are sums of, and how to publish them without disclosing a cell."""
