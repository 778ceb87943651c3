"""The small town on disk, as the tests of answers have it."""

from __future__ import annotations

from answer.conftest import engine, policy

__all__ = ["engine", "policy"]
