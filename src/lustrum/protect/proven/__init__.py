"""A population whose protection is a theorem: noisy tables, measured once, and people made up from these alone."""
