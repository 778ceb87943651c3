"""Attacks by readers who hold several releases of the same people."""
