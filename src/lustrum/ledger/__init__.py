"""Books to which lines are only ever added, each with the digest of the line before it."""
