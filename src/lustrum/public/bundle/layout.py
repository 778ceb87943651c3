"""The files of a public bundle.

::

    <bundle>/manifest.json   format, name, the digest of every file, and the digest of these digests
    <bundle>/dataset.json    the public description: no identifiers, the names of weights, and only measures
                             with protected sums
    <bundle>/cells.arrow     the finest cells that show somebody, with their protected counts
    <bundle>/policy.toml     what the agency decided
    <bundle>/report.json     the public report: method, support, typical errors, the digest of all protection
    <bundle>/sums.arrow      protected sums of measures by finest cell, where the policy asks for them
    <bundle>/sums.json       how they were made: method, factors, typical relative errors
    <bundle>/respondents.arrow   of a survey: protected respondents with shared weights and drawn designs

Every digest is one of public bytes: a digest of the records, or of the secret, would confirm a guess. A bundle
is written beside its place and put there as a whole; one whose bytes do not fit its digests is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

FORMAT = 4
"""The layout of bundles and of the files in them; a change of any of them is another layout."""
KIND = "lustrum public bundle"
DATASET = "dataset.json"
CELLS = "cells.arrow"
POLICY = "policy.toml"
REPORT = "report.json"
FILES = (DATASET, CELLS, POLICY, REPORT)
RESPONDENTS = "respondents.arrow"
SUMS = "sums.arrow"
FACTORS = "sums.json"
SUM_FILES = (SUMS, FACTORS)
"""Both or neither of them stand in a bundle."""
COUNT = "count"
PROTECTION = "protection"
"""The key of the report that states the digest of all that protected a bundle."""


def overall_digest(layout: Any, name: str, digests: Mapping[str, Any]) -> str:
    """The digest of a bundle: of its layout, the name of its dataset and the digests of its files."""
    text = json.dumps([layout, KIND, name, digests], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
