"""The chosen method in a policy: what is read back is what was chosen, and the rest stays."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lustrum as lu
from lustrum.agency.maps.inputs import policy_text, toml, write_policy
from lustrum.model import InputError, Table
from lustrum.policy import read_policy
from lustrum.rumap import BeforeCounting, HypercubeTables, HypercubeView, RUMap, grid

TABLE = Table.from_counts([[1, 14, 3], [17, 83, 2], [5, 0, 31]], names=["area", "faith"])
METHODS = [
    *grid("random-rounding", base=5),
    *grid("cell-key"),
    *grid("suppression"),
    *grid("differential-privacy", epsilon=1.0),
]


@cache
def found_map() -> RUMap:
    """The map of these methods, made when a test first needs it."""
    return lu.rumap(TABLE, METHODS, replications=2)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
plain = st.one_of(texts, st.booleans(), st.integers(-(10**9), 10**9), st.floats(-1e6, 1e6))
values = st.one_of(plain, st.lists(plain, max_size=3))
tables = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(
    st.dictionaries(st.sampled_from("klm"), values),
    st.dictionaries(st.sampled_from(["t", "u"]), tables),
    st.lists(tables, min_size=1, max_size=2),
)
def test_what_is_written_as_toml_is_read_back(
    keys: dict[str, object], parts: dict[str, object], several: list[object]
) -> None:
    words = {**keys, **parts, "list": several}
    assert tomllib.loads(toml(words)) == words


@pytest.mark.parametrize("index", [0, 1])
def test_the_policy_gives_the_method_of_the_map_back(index: int, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    assert write_policy(path, found_map(), index, 0.25) is None
    policy = read_policy(path)
    assert policy.protect.spec == METHODS[index]
    assert policy.risk.limit == 0.25
    assert policy.risk.spec == found_map().measures.risks[0][1]


def test_what_a_policy_says_otherwise_stays_and_the_old_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    old = (
        'dataset = "census"\ntitle = "Ours"\n[rules]\nmax_dimensions = 2\n[risk]\nlimit = 0.9\n'
        '[protect]\nmethod = "cell-key"\n[[fallback]]\nmethod = "merge"\nend = true\n'
    )
    path.write_text(old, encoding="utf-8")
    kept = write_policy(path, found_map(), 0, None)
    assert kept is not None
    assert kept.read_text(encoding="utf-8") == old
    policy = read_policy(path)
    assert (policy.dataset, policy.title, policy.rules.max_dimensions) == ("census", "Ours", 2)
    assert (policy.risk.limit, policy.fallback[0].method) == (0.9, "merge")
    assert policy.protect.method == "random-rounding"


def test_a_policy_that_was_cut_is_not_built_upon(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('dataset = "census"\n[rules]\n', encoding="utf-8")
    with pytest.raises(InputError, match="may be missing"):
        write_policy(path, found_map(), 0, 0.2)
    assert path.read_text(encoding="utf-8") == 'dataset = "census"\n[rules]\n'


@pytest.mark.parametrize(("index", "words"), [(2, "two numbers"), (3, "same numbers")])
def test_a_method_that_cannot_stand_in_a_policy_leaves_the_file_alone(
    index: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    with pytest.raises(InputError, match=words):
        write_policy(path, found_map(), index, 0.2)
    assert not path.exists()


def test_a_method_before_counting_goes_under_before() -> None:
    cube = HypercubeTables(TABLE, {"t": HypercubeView(("faith",))})
    found = lu.rumap(cube, [BeforeCounting(grid("random-rounding", base=3)[0])], replications=2)
    words = tomllib.loads(policy_text(found, 0, None, None))
    assert words["before"] == [{"method": "random-rounding", "base": 3}]
    assert words["protect"] == {"method": "none", "end": True}
