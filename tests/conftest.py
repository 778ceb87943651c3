"""What holds for all tests: the same examples in every run, and no stopwatch on a shared machine."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
# To look for new counterexamples: HYPOTHESIS_PROFILE=explore make test
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
