"""Public bundles in the making, and what the agency remembers of them."""
