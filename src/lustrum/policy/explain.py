"""A policy in sentences, and what in it deserves a second look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic.fields import FieldInfo

from lustrum.model.parameters import schema_of
from lustrum.policy.parts import Fallback, PolicyMethod, PolicyPart, Risk, bits
from lustrum.policy.policy import Policy
from lustrum.protect.abilities import abilities_of
from lustrum.protect.privacy import power_of_rho


def explain(policy: Policy) -> Iterator[str]:
    rules = policy.rules
    whom = "any dataset" if policy.dataset == "*" else f"dataset {policy.dataset!r}"
    yield f"It applies to {whom}."
    yield (
        f"A table has at most {_variables(rules.max_dimensions)} and {rules.max_cells:,} cells; its "
        f"population is selected by at most {_variables(rules.max_filters)}."
    )
    if rules.min_population:
        yield f"Its population counts at least {rules.min_population:,}."
    sizes = []
    if rules.min_mean_cell_size:
        sizes.append(f"hold {rules.min_mean_cell_size:g} on average")
    if rules.max_small_share < 1:
        sizes.append(
            f"are small ({rules.small_up_to} or less) in at most {rules.max_small_share:.0%} of all cases"
        )
    if sizes:
        yield f"Its cells {' and '.join(sizes)}, judged by protected numbers."
    if rules.per_area:
        least = rules.min_area_population
        yield (
            f"Categories of {rules.per_area!r} are judged one by one"
            + (f", and hold at least {least:,}" if least else "")
            + "; those that fail are left out."
        )
    for group in rules.disallowed:
        yield f"Never together: {', '.join(group)}."
    for group in rules.at_most_one:
        yield f"At most one of: {', '.join(group)}."
    if rules.nested_only:
        yield "Only published categories may be asked for, no groups of one's own."
    for step in policy.before:
        made = _MADE.get(step.method, "the input is protected")
        yield f"Before anything is counted, {made}, by {_words(step)}."
    if policy.population is None:
        yield f"Every table is protected by {_words(policy.protect)}."
    else:
        yield "Every table is made from the protected input, and is not changed again."
    proven = [step.spec for step in policy.before if abilities_of(step.spec).proof]
    if proven:
        rho = float(sum(Fraction(repr(spec.to_mapping()["rho"])) for spec in proven))
        yield (
            f"A release costs rho {rho:g} for one person's record that is replaced by another: the best test "
            f"finds it in {power_of_rho(rho):.0%} of cases, at 1 % false alarms. A household of k people is "
            "protected at k * k times that rho."
        )
    else:
        yield from _floors(policy)
    if policy.reason_for_true_counts is not None:
        yield f"Every answer says: {policy.reason_for_true_counts}"
    if policy.sums is not None:
        yield f"Sums are protected by {_words(policy.sums)}."
    elif policy.magnitudes is None:
        yield "Tables show counts only; sums of measures are refused."
    if policy.weights is not None and policy.population is None:
        yield (
            f"Weighted counts are protected counts times mean weights by {', '.join(policy.weights.classes)}."
        )
    if policy.weights is not None:
        yield (
            f"Tables can be weighted by {policy.weights.weight!r}: at least {policy.weights.class_size} "
            f"respondents share a weight, with noise of up to {policy.weights.noise:.0%}."
        )
    yield (
        f"It is released if the risk that is left to a reader is at most {policy.risk.limit:g}, from 0 to 1, "
        f"by the measure {policy.risk.measure}."
    )
    if policy.audit.attackers:
        yield (
            f"It is audited against {' and '.join(policy.audit.attackers)}: every cell that may be "
            f"{policy.audit.up_to} or less leaves at least {policy.audit.min_values} values open."
        )
    if policy.role != "public":
        yield f"It serves readers with the role {policy.role!r}, and those with a higher one."
    if policy.ledger is not None:
        whose = {"everyone": "everybody", "group": "a group of readers and the public"}.get(
            policy.ledger.audience, "a reader and the public"
        )
        yield (
            f"What {whose} received counts together: at most {policy.ledger.limit:g} counts of "
            f"{policy.ledger.small} or less may become certain by it"
            + (f", or keep fewer than {policy.ledger.values} values" * (policy.ledger.values > 2))
            + ", in the mean."
        )
    for fallback in policy.fallback:
        yield f"If it fails, {_next(fallback)}."


def _floors(policy: Policy) -> Iterator[str]:
    yield (
        f"At least {policy.changed:.0%} of ones and twos change. Of each, at least {bits(policy.entropy)} bits "
        "stay open to a reader who knows these steps: 1 bit is one even guess."
    )


def warnings(policy: Policy) -> Iterator[str]:
    """What may be meant, but should be known to be so."""
    if policy.population is not None:
        # Nothing that is asked can tell more than the one file.
        words = policy.population.to_mapping()
        if words.get("sweeps") == 1 and words.get("extra_tables") == 0:
            yield (
                "With one sweep and without extra tables, counts by four or more variables err by far more "
                "than the others; raise 'sweeps' or 'extra_tables'."
            )
        return
    yield (
        "Numbers are protected question by question: a reader who asks for many tables that overlap can work "
        "some small counts out. The preset 'strict' protects one population once."
        if policy.ledger is None
        else "Numbers are protected question by question, and what was answered makes others be refused. The "
        "preset 'strict' protects one population once, and refuses none for another."
    )
    if policy.risk.limit >= 1:
        yield "The limit of risk is 1, so that no table is ever refused for its risk."
    if not policy.rules.nested_only:
        yield "Groups of one's own are allowed: tables can be compared to single people out."
    if policy.protect.method != "none" and any(not b.on_records for b in policy.before):
        yield "Cells are perturbed twice, in the input and in the table; once may be enough."


def _variables(number: int) -> str:
    return f"{number} variable{'' if number == 1 else 's'}"


_MADE = {
    "protected-population": "one protected population is made of the records",
    "protected-magnitudes": "every contribution to a sum is changed once",
    "proven-population": "people are made up from noisy tables of the records",
    "proven-sums": "sums are measured with noise",
    "record-swapping": "some households trade places",
}


def _words(method: PolicyMethod) -> str:
    """A method with the parameters that tell most, and those that are not the usual ones."""
    declared = schema_of(type(method.spec))["properties"]
    parameters = method.spec.to_mapping()
    said = [
        f"{key.replace('_', ' ')} {_said(value)}"
        for key, value in parameters.items()
        if key in ("base", "p", "rho")
        or (key != "method" and value not in ([], {}, None, declared.get(key, {}).get("default")))
    ]
    if len(said) < len(parameters) - 1:
        said.append("the rest as usual" if said else "as usual")
    return f"{method.method} ({', '.join(said)})" if said else method.method


def _next(fallback: Fallback) -> str:
    which = ", ".join(fallback.variables) or "the longest variable first"
    return f"it is asked again at coarser levels ({which})"


# --- What a draft changes beside the policy in force


@dataclass(frozen=True)
class PolicyChange:
    """A key that has another value; ``looser`` unless the change can only forbid more."""

    key: str
    before: str
    after: str
    looser: bool


def changes(now: Policy, then: Policy) -> Iterator[PolicyChange]:
    """Every decision that differs, in the order of the reference.

    The declaration of a key says which way loosens it. Of a key that does not say so, such as the parameters
    of methods, every change counts as looser: another protection is not to be judged by its words. Of another
    method or measure the name alone is listed.
    """
    old, new = _decisions(now), _decisions(then)
    for key in dict.fromkeys([*old, *new]):
        before, way = old.get(key, (None, ""))
        after, way = new.get(key, (None, way))
        place, _, word = key.rpartition(".")
        names = {f"{place}.{name}" for name in ("method", "measure") if word != name}
        if before != after and all(old.get(name) == new.get(name) for name in names):
            yield PolicyChange(key, _said(before), _said(after), _loosens(way, before, after))


def _decisions(policy: Policy) -> dict[str, tuple[Any, str]]:
    """All decisions by their dotted keys, defaults too, each with the way that loosens it."""
    found: dict[str, tuple[Any, str]] = {}
    for name, declared in type(policy).model_fields.items():
        value = getattr(policy, name)
        parts = value if isinstance(value, list) else [value]
        if name not in ("before", "sums", "weights", "fallback") and not isinstance(
            value, PolicyPart
        ):
            found[name] = value, _way(declared)
            continue
        for number, part in enumerate(filter(None, parts), start=1):
            place = f"{name}.{number}" if isinstance(value, list) else name
            words = part.model_dump()
            if isinstance(part, (PolicyMethod, Risk)):
                words |= part.spec.to_mapping()
            for key, said in words.items():
                known = type(part).model_fields.get(key)
                found[f"{place}.{key}"] = said, "" if known is None else _way(known)
    return found


def _way(declared: FieldInfo) -> str:
    extra = declared.json_schema_extra
    return str(extra.get("looser", "")) if isinstance(extra, dict) else ""


def _loosens(way: str, before: Any, after: Any) -> bool:
    if way == "never":
        return False
    if not way or before is None or after is None:
        return True
    if way == "larger":
        return bool(after > before)
    if way == "smaller":
        return bool(after < before)
    if way == "entries left out":
        return not set(before) <= set(after)
    if way == "sets that do not hold":
        return any(not any(set(new) <= set(old) for new in after) for old in before)
    if way == "sets that are not held":
        return any(not any(set(old) <= set(new) for new in after) for old in before)
    raise AssertionError(way)


def _said(value: object) -> str:
    """A value as a policy file shows it; nothing where a key is left out."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        if any(isinstance(part, (list, tuple)) for part in value):
            return "; ".join(map(_said, value)) or "none"
        return ", ".join(map(_said, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value) or "none"
