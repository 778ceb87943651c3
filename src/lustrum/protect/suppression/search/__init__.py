"""The search for patterns: merged cells, parts, attacks, paths, branch and cut, boxes for very large tables."""
