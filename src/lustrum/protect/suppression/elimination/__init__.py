"""Elimination: publish what discloses no primary cell exactly, the dearest first, then repair ranges."""
