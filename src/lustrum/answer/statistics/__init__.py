"""Means, ratios, shares, growth and quantiles, worked out from protected counts and sums."""
