"""A population whose protection is a theorem: people made up from noisy tables that are measured once."""
