"""Policy files: a file that was cut, or that leaves a decision out, is refused.

A policy that is half there is looser than the whole. A file therefore names what matters most, and its last
line is ``end = true``: where that line is missing, the file may have been cut. A sealed file ends with the
digest of all that stands before it instead, so that no byte of it changes unnoticed.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from lustrum.model import Dataset, PolicyError
from lustrum.model.errors import choices
from lustrum.model.parameters import ParameterError, shortened
from lustrum.policy.policy import MistakeAt, Policy
from lustrum.runtime.durable import contained

END = "end = true"
_LAST = re.compile(
    r"^end[ \t]*=[ \t]*(true|\"sha256:[0-9a-f]{64}\")[ \t]*(#[^\n]*)?\r?\n\s*\Z", re.MULTILINE
)
_END_KEY = re.compile(r"^[ \t]*end[ \t]*=", re.MULTILINE)
_REQUIRED = (("dataset",), ("rules",), ("risk", "limit"), ("protect", "method"))


def read_policy(path: Path, *, sealed_only: bool = False) -> Policy:
    """Read and check a policy file; the first mistake is one clear sentence.

    With ``sealed_only`` a file without a seal is refused: a line that is deleted from it would leave a default.

    >>> from tempfile import TemporaryDirectory
    >>> from lustrum.policy.presets import preset
    >>> words = {"dataset": {"name": "town", "title": "Town"}, "variables": [{"name": "sex", "codes": ["1"]}]}
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "p.toml").write_text(preset("keyed-rounding", Dataset.from_mapping(words)))
    ...     read_policy(Path(folder, "p.toml")).dataset
    'town'
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}.") from None
    policy = parse_policy(raw, str(path))
    if sealed_only and not is_sealed(raw):
        raise PolicyError(
            f"{path} is not sealed, and this server follows sealed policies only (--production); read it, and "
            f"seal it with 'lustrum policy seal {path}'."
        )
    return policy


def is_sealed(raw: bytes) -> bool:
    """Whether the last line of a policy file is a seal, right or wrong."""
    last = _LAST.search(raw.decode("utf-8", "replace"))
    return last is not None and last.group(1) != "true"


def unsealed_in(folder: Path) -> list[str]:
    """The names of the policies of a folder that have no seal; one that cannot be read is left out."""
    names = []
    for path in sorted(folder.glob("*.toml")):
        with suppress(OSError):
            if not is_sealed(path.read_bytes()):
                names.append(path.stem)
    return names


def parse_policy(raw: bytes, where: str) -> Policy:
    """Check the bytes of a policy file; ``where`` names it in messages."""
    try:
        settings = tomllib.loads(finished_text(raw.decode("utf-8"), where))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{where} is not valid TOML: {error}.") from None
    with contained(where):
        try:
            policy = Policy.model_validate(settings)
        except ValidationError as error:
            raise PolicyError(f"{where}: {_first_mistake(error, raw)}") from None
    _check_complete(settings, where)
    return policy


def sealed(raw: bytes, where: str) -> bytes:
    """The same policy file with a seal as its last line; a file that is not valid gets none.

    A file that was changed after it was sealed gets a new seal: whoever seals it means the change.
    """
    text = raw.decode(
        "utf-8", "surrogateescape"
    )  # what is no text stays as it is, and is refused below
    last = _LAST.search(text)
    if last is not None:
        raw = f"{text[: last.start()]}{END}\n".encode("utf-8", "surrogateescape")
    parse_policy(raw, where)
    body = finished_text(raw.decode("utf-8"), where)
    return f'{body}end = "{_seal(body)}"\n'.encode()


def finished_text(text: str, where: str) -> str:
    """What stands before the last line, once that line proves that the file is whole."""
    last = _LAST.search(text)
    if last is None:
        raise PolicyError(
            f"{where} does not end with the line {END!r}, so a part of it may be missing; restore it, or "
            "add the line at the very end if the file is whole."
        )
    body = text[: last.start()]
    if _END_KEY.search(body):
        raise PolicyError(f"{where} says 'end' more than once; only the last line may.")
    seal = last.group(1).strip('"')
    if seal not in ("true", _seal(body)):
        raise PolicyError(
            f"{where} was changed after it was sealed; restore it, or seal it again with "
            "'lustrum policy seal' if the change is meant."
        )
    return body


def _seal(body: str) -> str:
    return f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"


def _check_complete(settings: dict[str, Any], where: str) -> None:
    """Refuse a file that leaves the most important decisions to defaults."""
    for key in _REQUIRED:
        section: Any = settings
        for part in key:
            if part not in section:
                name = f"{key[0]!r}" if len(key) == 1 else f"{key[1]!r} under [{key[0]}]"
                name = "the table [rules]" if key == ("rules",) else name
                raise PolicyError(
                    f"{where} does not say {name}; a policy file must, so that no default decides it."
                )
            section = section[part]
    if "audit" in settings and not settings["audit"].get("attackers"):
        raise PolicyError(
            f"{where}: [audit] names no 'attackers', so nothing would be audited; name them, or leave [audit] "
            "out."
        )


def line_of(text: str, key_path: tuple[str | int, ...]) -> int | None:
    """The line on which a key, or the table that it belongs to, stands; None where it is left out.

    >>> line_of("a = 1\\n[[before]]\\nmethod = 'x'\\n[[before]]\\nrate = 0.1\\n", ("before", 1, "rate"))
    5
    """
    head, *rest = key_path
    number = rest.pop(0) if rest and isinstance(rest[0], int) else 0
    table = re.compile(rf"[ \t]*\[{{1,2}}[ \t]*{re.escape(str(head))}[ \t]*\]{{1,2}}")
    inside, seen, table_line = not rest, -1, None
    key = re.compile(rf"[ \t]*{re.escape(str(rest[0] if rest else head))}[ \t]*=")
    for line, line_text in enumerate(text.splitlines(), start=1):
        if re.match(r"[ \t]*\[", line_text):
            seen += bool(table.match(line_text))
            inside = bool(table.match(line_text)) and seen == number
            table_line = line if inside else table_line
        elif inside and key.match(line_text) and (rest or table_line is None):
            return line
    return table_line


def _first_mistake(error: ValidationError, raw: bytes) -> str:
    first = error.errors(include_url=False)[0]
    dotted_key = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
    mistake = first.get("ctx", {}).get("error")
    key_path: tuple[str | int, ...] = first["loc"]
    if isinstance(mistake, MistakeAt):
        key_path = mistake.path
    elif isinstance(mistake, ParameterError):
        key_path = (*key_path, mistake.parameter)
    line = line_of(raw.decode("utf-8"), key_path) if key_path else None
    return f"{'' if line is None else f'line {line}: '}{_sentence(first, dotted_key)}"


def _sentence(first: Any, dotted_key: str) -> str:
    if first["type"] == "extra_forbidden":
        *parents, wrong = first["loc"]
        model: Any = Policy
        for parent in parents:
            # A number is the place in a list of parts, which are all of one kind.
            kind = model if isinstance(parent, int) else model.model_fields[parent].annotation
            model = next(iter(get_args(kind)), kind)
        return f"there is no key {dotted_key!r}; {choices(str(wrong), model.model_fields)}."
    if first["type"] == "value_error":
        mistake = first["ctx"]["error"]
        if isinstance(mistake, MistakeAt):
            return f"{mistake}."
        return f"{dotted_key}: {mistake}" if dotted_key else str(mistake)
    said = first["msg"][0].lower() + first["msg"][1:]
    return f"{dotted_key}: {said}, not {shortened(first['input'])}."


# A policy beside its dataset: every variable that it names must be there, and every sum have a unit.
#
# A rule about a variable that does not exist forbids nothing. A misspelt name is therefore refused when a
# policy is checked, when it is read, and before a dataset is replaced.


def check_names(policy: Policy, dataset: Dataset, where: str) -> None:
    """Refuse a policy that is for another dataset, or names a variable that this one does not have.

    >>> words = {"dataset": {"name": "town", "title": "Town"}, "variables": [{"name": "sex", "codes": ["1"]}]}
    >>> from lustrum.policy.presets import preset
    >>> town = Dataset.from_mapping(words)
    >>> check_names(parse_policy(preset("keyed-rounding", town).encode(), "p"), town, "The policy")
    """
    if policy.dataset not in ("*", dataset.name):
        raise PolicyError(
            f"{where} is for the dataset {policy.dataset!r}, not for {dataset.name!r}; put the right "
            "policy there, or correct 'dataset'."
        )
    _check_units(policy, dataset, where)
    there = [variable.name for variable in dataset.variables]
    for key, name in _named(policy):
        if name not in there:
            raise PolicyError(
                f"{where}: {key} names the variable {name!r}, which {dataset.name!r} does not have; "
                f"{choices(name, there)}."
            )
    if policy.weights is not None:
        weights = [weight.name for weight in dataset.weights]
        if policy.weights.weight not in weights:
            raise PolicyError(
                f"{where}: weights.weight names {policy.weights.weight!r}, which is no weight of "
                f"{dataset.name!r}; {choices(policy.weights.weight, weights)}."
            )


def _check_units(policy: Policy, dataset: Dataset, where: str) -> None:
    """Sums are published with their unit; one that is missing would be missing from every table."""
    if policy.sums is None and policy.magnitudes is None:
        return
    for measure in dataset.measures:
        if not measure.unit:
            raise PolicyError(
                f"{where}: sums of the measure {measure.name!r} would be published without a unit; write "
                "'unit' in the description of the dataset."
            )


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """Where a policy names a variable, and which."""
    for group in policy.rules.disallowed:
        yield from (("rules.disallowed", name) for name in group)
    for group in policy.rules.at_most_one:
        yield from (("rules.at_most_one", name) for name in group)
    if policy.weights is not None:
        yield from (("weights.classes", name) for name in policy.weights.classes)
        yield from (("weights.measure_classes", name) for name in policy.weights.measure_classes)
    if policy.rules.per_area:
        yield "rules.per_area", policy.rules.per_area
    for number, fallback in enumerate(policy.fallback, start=1):
        yield from ((f"fallback.{number}.variables", name) for name in fallback.variables)
    for number, step in enumerate(policy.before, start=1):
        # Methods say which variables they work on; a method that works on any names none.
        for name in getattr(step.spec, "needed_variables", ()):
            yield f"before.{number}", name
