"""Attacks on sums: by insiders, with size classes, over two releases, and on large firms."""
