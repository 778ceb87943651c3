"""A policy file that was cut, left incomplete or changed by accident is never a looser policy."""

from __future__ import annotations

from pathlib import Path

import pytest

import lustrum
from lustrum.model import Dataset, PolicyError
from lustrum.policy import Policy, check_names
from lustrum.policy.policy import MistakeAt
from lustrum.policy.presets import PRESETS, preset
from lustrum.policy.read import is_sealed, parse_policy, read_policy, sealed
from small import described

DEMO = Path(lustrum.__file__).parent / "demo" / "files"
SHIPPED = {
    "demo": (DEMO / "demo-policy.toml").read_bytes(),
    "businesses": (DEMO / "businesses-policy.toml").read_bytes(),
    **{name: preset(name, "people").encode() for name in PRESETS},
}
REGISTER = described(
    "people", {"age": "12"}, measures=[{"name": "income", "unit": "EUR"}], weights=[{"name": "w"}]
)
SHIPPED |= {f"{name} with sums": preset(name, REGISTER).encode() for name in PRESETS}
SMALLEST = 'dataset = "d"\n[rules]\n[risk]\nlimit = 0.1\n[protect]\nmethod = "random-rounding"\n'
TOWN = Dataset.from_mapping(
    {
        "dataset": {"name": "town"},
        "variables": [{"name": n, "codes": ["1", "2"]} for n in ("age", "sex", "area")],
    }
)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_for_a_dataset_protects_its_sums_and_weights(name: str) -> None:
    plain = parse_policy(preset(name, "people").encode(), name)
    fitted = parse_policy(preset(name, REGISTER).encode(), name)
    check_names(fitted, REGISTER, name)
    assert plain.sums is None
    assert plain.magnitudes is None
    assert plain.weights is None
    assert fitted.rules == plain.rules
    assert fitted.risk == plain.risk
    assert fitted.protect == plain.protect
    if name == "strict":
        assert fitted.population == plain.population
        assert fitted.magnitudes.p == 5.0
        assert fitted.weights.weight == "w"
    elif name == "proven":
        # Sums and weights have no proof, so that none may stand beside it.
        assert (fitted.population, fitted.magnitudes, fitted.weights) == (
            plain.population,
            None,
            None,
        )
    else:
        assert fitted.sums.spec.p_percent == 10.0
        assert fitted.weights is None  # weights go with a protected population


def test_a_preset_for_a_dataset_of_counts_is_the_plain_one() -> None:
    assert all(preset(name, TOWN) == preset(name, "town") for name in PRESETS)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_no_prefix_of_a_policy_is_a_policy(name: str, ending: str) -> None:
    whole = SHIPPED[name].replace(b"\n", ending.encode())
    parse_policy(whole, name)
    for length in range(len(whole)):
        with pytest.raises(PolicyError):
            parse_policy(whole[:length], name)


# Which bytes are tried: every fifth one, another one of five in each file; all of them in `make deep`.
STEPS = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.deep)])


@STEPS
@pytest.mark.parametrize("name", SHIPPED)
def test_no_suffix_of_a_policy_is_looser(name: str, step: int) -> None:
    whole = SHIPPED[name]
    policy = parse_policy(whole, name)
    # A suffix that begins with a line is the likeliest to be valid.
    lines = {place + 1 for place, byte in enumerate(whole[:-1]) if byte == ord("\n")}
    for start in sorted(lines | {*range(1, len(whole), step)}):
        try:
            found = parse_policy(whole[start:], name)
        except PolicyError:
            continue
        assert found == policy  # only a comment was lost


@pytest.mark.parametrize("name", SHIPPED)
def test_a_sealed_policy_is_the_same_policy_and_bears_no_other_byte(name: str) -> None:
    whole = sealed(SHIPPED[name], name)
    assert parse_policy(whole, name) == parse_policy(SHIPPED[name], name)
    assert sealed(whole, name) == whole
    for place in range(len(whole) - 1):
        for other in (whole[place] ^ 1, ord("#"), ord("9"), ord("\n")):
            if other == whole[place]:
                continue
            changed = whole[:place] + bytes([other]) + whole[place + 1 :]
            with pytest.raises(PolicyError):
                parse_policy(changed, name)


@STEPS
@pytest.mark.parametrize("name", SHIPPED)
def test_a_changed_name_of_a_key_is_refused_also_without_a_seal(name: str, step: int) -> None:
    whole, refused = SHIPPED[name], 0
    policy = parse_policy(whole, name)
    places = range(list(SHIPPED).index(name) % step, len(whole), step)
    for place in places:
        changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        try:
            found = parse_policy(changed, name)
        except PolicyError:
            refused += 1
            continue
        line = whole[: whole.find(b"\n", place)].rsplit(b"\n", 1)[-1]
        start = whole.rfind(b"\n", 0, place) + 1
        if line.startswith(b"#") or found == policy:
            continue
        # What is left are values that are as valid as the ones before; only a seal can tell.
        assert b"=" in line[: place - start]
    assert refused > len(places) / 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "does not end with the line 'end = true'"),
        ("end = true", "does not end with the line"),
        ("end = true\n", "does not say 'dataset'"),
        (f"{SMALLEST}end = true\nmax_cells = 3\n", "does not end with the line"),
        (f"{SMALLEST}end = true\nend = true\n", "says 'end' more than once"),
        (f"{SMALLEST}end = false\n", "does not end with the line"),
        ('dataset = "d"\nend = true\n', "does not say the table [rules]"),
        ('dataset = "d"\n[rules]\nend = true\n', "does not say 'limit' under [risk]"),
        ('dataset = "d"\n[rules]\n[risk]\nend = true\n', "does not say 'limit' under [risk]"),
        (
            'dataset = "d"\n[rules]\n[risk]\nlimit = 0.1\nend = true\n',
            "does not say 'method' under [protect]",
        ),
        (f"{SMALLEST}[audit]\nup_to = 3\nend = true\n", "names no 'attackers'"),
        (f'{SMALLEST}end = "sha256:{"0" * 64}"\n', "changed after it was sealed"),
    ],
)
def test_an_incomplete_file_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text.encode(), "the file")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shortest_whole_file_is_valid() -> None:
    assert parse_policy(f"{SMALLEST}end=true # all\n\n".encode(), "it").risk.limit == 0.1


@pytest.mark.parametrize(
    "words",
    [
        {"rules": {"disallowed": [["age", "sexx"]]}},
        {"rules": {"at_most_one": [["sexx", "age"]]}},
        {"rules": {"per_area": "sexx"}},
        {"fallback": [{"method": "merge", "variables": ["age", "sexx"]}]},
        {"before": [{"method": "post-randomisation", "variable": "sexx"}]},
        {"before": [{"method": "post-randomisation", "variable": "age", "strata": ["sexx"]}]},
        {"before": [{"method": "record-swapping", "geography": "area", "control": ["sexx"]}]},
        {"before": [{"method": "record-swapping", "geography": "sexx"}]},
        {"before": [{"method": "stratified-sampling", "by": ["sexx"]}]},
    ],
)
def test_a_misspelt_variable_is_refused_wherever_a_policy_names_one(
    words: dict[str, object],
) -> None:
    with pytest.raises(PolicyError, match=r"names the variable 'sexx'.*did you mean 'sex'"):
        check_names(Policy.model_validate(words), TOWN, "town.toml")
    right = str(words).replace("sexx", "sex")
    check_names(Policy.model_validate(eval(right)), TOWN, "town.toml")


def test_a_policy_for_another_dataset_is_refused() -> None:
    check_names(Policy.model_validate({"dataset": "town"}), TOWN, "town.toml")
    with pytest.raises(PolicyError, match="is for the dataset 'city', not for 'town'"):
        check_names(Policy.model_validate({"dataset": "city"}), TOWN, "town.toml")


def test_where_only_sealed_policies_count_a_plain_one_is_refused(tmp_path: Path) -> None:
    plain = f"{SMALLEST}end = true\n".encode()
    path = tmp_path / "policy.toml"
    path.write_bytes(plain)
    assert not is_sealed(plain)
    read_policy(path)
    with pytest.raises(PolicyError, match="is not sealed, and this server follows sealed policies"):
        read_policy(path, sealed_only=True)
    whole = sealed(plain, "it")
    assert is_sealed(whole)
    path.write_bytes(whole)
    assert read_policy(path, sealed_only=True) == read_policy(path) == parse_policy(plain, "it")
    # One digit of the file, the seal as it was: neither reader takes it, and a new seal means the change.
    changed = whole.replace(b"limit = 0.1", b"limit = 0.9")
    path.write_bytes(changed)
    for sealed_only in (False, True):
        with pytest.raises(PolicyError, match="was changed after it was sealed"):
            read_policy(path, sealed_only=sealed_only)
    again = sealed(changed, "it")
    assert parse_policy(again, "it").risk.limit == 0.9
    assert again == sealed(plain.replace(b"0.1", b"0.9"), "it")
    for other in (b"", b"\xff", plain[:-1], b"\xff" + whole, b"# \xff\n" + whole):
        with pytest.raises(PolicyError):
            sealed(other, "it")
    assert not is_sealed(b"\xff")
    assert is_sealed(b"\xff\n" + whole)
    with pytest.raises(PolicyError, match="cannot be read"):
        read_policy(tmp_path / "none.toml")


def test_a_mistake_says_its_sentence_and_where_it_stands() -> None:
    mistake = MistakeAt(("before", 0), "no such method")
    assert (str(mistake), mistake.path) == ("no such method", ("before", 0))


def test_pages_of_others_are_named_by_scheme_and_host() -> None:
    good = ["https://news.example", "http://a-b.example:8080"]
    assert Policy.model_validate({"embed": good}).embed == good
    for bad in ("news.example", "https://news.example/", "https://*", "https://a b", "ftp://a", ""):
        with pytest.raises(ValueError, match="is no site; write a scheme and a host alone"):
            Policy.model_validate({"embed": [good[0], bad]})


def test_notes_are_shown_as_they_are_where_no_true_counts_are() -> None:
    policy = Policy.model_validate({"notes": ["A note."]})
    assert policy.reason_for_true_counts is None
    assert policy.public_notes == ("A note.",)
