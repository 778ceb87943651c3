"""The search for patterns: attacks, paths, clean-up, branch and cut, parts, boxes for very large tables."""
