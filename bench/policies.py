"""Whether a policy file that was cut or changed loosens silently: never, over all its variants, as markdown.

Run it from the root of the project: ``python bench/policies.py``; ``--step 7`` tries every seventh variant.

Variants are all prefixes, every deletion of one line, and every digit changed to every other one, of the
presets and of the demo's policies, with a seal and without. Each is refused, or has the same effect, or a
tighter one, or is looser. A looser one must be said: its file has no seal, so that the server names it and
``--production`` refuses it. What is looser is decided here, key by key, by :func:`effect`; whatever it does not
know to be tighter counts as looser.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parts.figures import record

import lustrum
from lustrum.model import Dataset, PolicyError
from lustrum.policy import Policy
from lustrum.policy.presets import PRESETS, preset
from lustrum.policy.read import is_sealed, parse_policy, sealed

OUTCOMES = ("refused", "equal", "tighter", "looser, said", "looser, silent")
NO_EFFECT = ("title", "notes")
# For each number, whether more of it is tighter (1) or looser (-1).
DIRECTION = {
    "rules.max_dimensions": -1, "rules.max_filters": -1, "rules.max_cells": -1,
    "rules.min_population": 1, "rules.min_mean_cell_size": 1, "rules.max_small_share": -1,
    "rules.small_up_to": 1, "rules.nested_only": 1, "rules.min_area_population": 1,
    "risk.limit": -1, "audit.min_values": 1, "audit.up_to": 1, "audit.programs": -1,
    "weights.class_size": 1, "weights.noise": 1, "weights.respondents": 1,
    "weights.caution": -1, "weights.unreliable": -1, "min_changed": 1, "min_entropy": 1,
}  # fmt: skip


def effect(old: Policy, new: Policy) -> str:
    """What a policy does in the place of another: ``equal``, ``tighter`` or ``looser``."""
    before, after = _settings(old), _settings(new)
    found = {
        _change(key, before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if key not in NO_EFFECT
    }
    return next(word for word in ("looser", "tighter", "equal") if word in found)


def _settings(policy: Policy) -> dict[str, Any]:
    """Every setting in effect by its path: defaults of the file and of the methods are written out."""
    found: dict[str, Any] = {}
    for key, value in policy.model_dump().items():
        if key in ("rules", "audit", "weights") and value is not None:
            found |= {f"{key}.{name}": one for name, one in value.items()}
        elif key not in ("risk", "before", "protect", "sums", "rules", "audit", "weights"):
            found[key] = value
    found["risk.limit"] = policy.risk.limit
    steps = {"risk": policy.risk, "protect": policy.protect, "sums": policy.sums}
    steps |= {f"before.{number}": step for number, step in enumerate(policy.before)}
    for place, step in steps.items():
        words = {} if step is None else step.spec.to_mapping()
        found |= {f"{place}.{name}": one for name, one in words.items()}
    return found


def _change(key: str, old: Any, new: Any) -> str:
    if old == new:
        return "equal"
    if key == "rules.disallowed" and old is not None:
        # What was forbidden is still: a set that is forbidden forbids all that hold it.
        held = all(any(set(n) <= set(o) for n in new) for o in old)
        return "tighter" if held else "looser"
    if key == "rules.at_most_one" and old is not None:
        return "tighter" if all(any(set(n) >= set(o) for n in new) for o in old) else "looser"
    if key == "audit.attackers" and old is not None:
        return "tighter" if set(new) >= set(old) else "looser"
    if key == "fallback":
        return "looser" if new else "tighter"  # without it, a table that fails is refused
    if key in DIRECTION and old is not None and new is not None:
        return "tighter" if (new - old) * DIRECTION[key] > 0 else "looser"
    return "looser"


def variants(raw: bytes, step: int = 1) -> Iterator[tuple[str, bytes]]:
    """Prefixes, deletions of each line, and digits changed: every so many of them."""
    for length in range(0, len(raw), step):
        yield "cut", raw[:length]
    lines = raw.splitlines(keepends=True)
    for number in range(len(lines)):
        yield "line deleted", b"".join(lines[:number] + lines[number + 1 :])
    places = [m.start() for m in re.finditer(rb"[0-9]", raw)]
    for count, place in enumerate(places):
        for digit in b"0123456789":
            if digit != raw[place] and (10 * count + digit) % step == 0:
                yield "digit changed", raw[:place] + bytes([digit]) + raw[place + 1 :]


def outcome(original: Policy, variant: bytes) -> str:
    """What becomes of a variant."""
    try:
        found = parse_policy(variant, "it")
    except PolicyError:
        return "refused"
    does = effect(original, found)
    if does != "looser":
        return does
    return "looser, silent" if is_sealed(variant) else "looser, said"


def tried(raw: bytes, step: int = 1) -> Mapping[str, Counter[str]]:
    """The outcomes of all variants of a policy file, by the kind of the variant."""
    original = parse_policy(raw, "it")
    found: dict[str, Counter[str]] = {}
    for kind, variant in variants(raw, step):
        if variant != raw:
            found.setdefault(kind, Counter())[outcome(original, variant)] += 1
    return found


def policies() -> dict[str, bytes]:
    """The presets, for counts alone and with sums and weights, and the policies of the demo."""
    register = Dataset.from_mapping(
        {
            "dataset": {"name": "people"},
            "variables": [{"name": "age", "codes": ["1", "2"]}],
            "measures": [{"name": "income", "unit": "EUR"}],
            "weights": [{"name": "w"}],
        }
    )
    demo = Path(lustrum.__file__).parent / "demo" / "files"
    found = {f"preset {name}": preset(name, "people").encode() for name in PRESETS}
    found |= {f"preset {name}, sums": preset(name, register).encode() for name in PRESETS}
    found |= {path.stem: path.read_bytes() for path in sorted(demo.glob("*-policy.toml"))}
    return found


def unsealed(raw: bytes) -> bytes:
    """The same file without its seal, if it has one."""
    return re.sub(rb'^end = "sha256:[0-9a-f]{64}"$', b"end = true", raw, flags=re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a variant loosens silently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="try every so many variants")
    step = parser.parse_args(arguments).step
    every: dict[tuple[str, str], Counter[str]] = {}
    for name, raw in policies().items():
        for form, whole in (("unsealed", unsealed(raw)), ("sealed", sealed(raw, name))):
            for kind, found in tried(whole, step).items():
                every[form, kind] = every.get((form, kind), Counter()) + found
                print(f"{name}, {form}, {kind}: {dict(found)}", file=sys.stderr, flush=True)
    every["all", ""] = sum(every.values(), Counter())
    for (form, kind), found in every.items():
        figures = {"policies": form, "variant": kind, "tried": found.total()}
        record("Damaged policy files", figures | {word: found[word] for word in OUTCOMES})
    return int(bool(every["all", ""]["looser, silent"]))


if __name__ == "__main__":
    sys.exit(main())
