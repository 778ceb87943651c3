"""Blocks of a population: each is protected by itself, and a last pass mends the tables that they share."""
