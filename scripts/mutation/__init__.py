"""Mutation tests: one change at a time to the code, and a test that must fail for it."""
