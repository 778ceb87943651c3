"""Bounds of each cell, by network flow, linear and integer programming, elimination and search."""
