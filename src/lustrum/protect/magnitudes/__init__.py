"""Protected magnitudes: contributions are multiplied once; every table of sums is a plain sum of the result."""
