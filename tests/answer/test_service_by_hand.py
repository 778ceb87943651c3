"""The service over bundles and policies that are written by hand, and files of bundles that do not fit."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lustrum.answer import TableService, table_service
from lustrum.model import Axis, Dataset, DatasetError, PolicyError, QueryError, TableQuery
from lustrum.model.errors import NotAnsweringError, NotMadeError, NotReadyError
from lustrum.policy import Policy
from lustrum.policy.read import parse_policy
from lustrum.protect.population.support import Support
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.public.bundle.agreement import is_made_by
from lustrum.public.bundle.files import KIND, Bundle, bundle_digest, bundle_name, stated_method
from lustrum.public.numbers import Described, KeyedNumbers, Views
from lustrum.publish.bundles.write import (
    PackedBundle,
    pack_bundle,
    public_description,
    write_bundle,
)
from lustrum.publish.doctor import examine
from lustrum.runtime.data_folder import MANIFEST, bundles_in
from lustrum.runtime.stop import Stopped
from public_room.test_bundle_numbers import DATASET, SHOWN, bundle

HEAD = b'dataset = "town"\n[rules]\nnested_only = false\n[risk]\nlimit = 1.0\n'
STRICT = (
    HEAD + b'[[before]]\nmethod = "protected-population"\n[protect]\nmethod = "none"\nend = true\n'
)
KEYED = HEAD + b'[protect]\nmethod = "random-rounding"\nend = true\n'
BY = TableQuery("town", (Axis("sex"), Axis("job")))


def made_by(policy: bytes = STRICT, **words: Any) -> Bundle:
    """The bundle of :mod:`test_bundle_numbers`, which states the method of a policy."""
    method = parse_policy(policy, "it").population.to_mapping()
    own: Bundle = bundle(**words)
    if own.sums is not None and words["existence"] == "secret":
        sums = type(own.sums.sums)(
            DATASET, own.cells.codes, {"pay": 500 * own.cells.counts, "gain": own.cells.counts}
        )
        own = replace(own, sums=replace(own.sums, sums=sums))
    return replace(own, report=replace(own.report, method=method))


def packed(own: Bundle | None = None, policy: bytes = STRICT) -> PackedBundle:
    own = own or made_by()
    return pack_bundle(own.cells, policy, own.report, None, own.sums)


@dataclass
class Records:
    """Records of two datasets, of which the second is still being checked."""

    asked: list[str] = field(default_factory=list)
    closed: bool = False
    background: bool = False
    answering: bool = True

    def names(self) -> list[str]:
        return ["checking", "town"]

    def describe(self, name: str) -> Described:
        self.asked.append(name)
        if name == "checking":
            raise NotReadyError("not yet")
        return Described("version", DATASET)

    def views(self, query: TableQuery, policy: Policy) -> Views:
        return BundleNumbers(bundle(), workers=1).views(query)

    def check_in_background(self) -> None:
        self.background = True

    def close(self) -> None:
        self.closed = True


def folder(root: Path, **policies: bytes) -> TableService:
    (root / "policies").mkdir(parents=True)
    for name, text in policies.items():
        (root / "policies" / f"{name}.toml").write_bytes(text)
    return TableService(root, 1, records=Records())


def test_a_bundle_is_served_under_the_policy_that_it_was_made_by(tmp_path: Path) -> None:
    service = folder(tmp_path, town=STRICT)
    write_bundle(tmp_path / "bundles" / "town", packed())
    assert service.names() == ["town"]
    assert service.described() == ["checking", "town"]
    answer = service.answer(BY)
    assert answer.release.published.sum() == sum(SHOWN.values())
    assert service.snapshot("town").protection is not None
    assert service.dataset("town").name == "town"
    assert [d.name for d in service.datasets()] == ["town"]
    assert service.policy("town").population is not None
    numbers = service.snapshot("town").numbers
    assert (numbers.measures, numbers.weights, numbers.weighted_measures) == ((), (), ())
    assert service.precheck(BY).passes
    assert service._records.asked == []  # type: ignore[union-attr]
    other = STRICT.replace(b'"protected-population"', b'"protected-population"\nbase = 4')
    (tmp_path / "policies" / "town.toml").write_bytes(other)
    for ask in (service.answer, service.precheck):
        with pytest.raises(PolicyError, match=r"'base' under .* was made with 3"):
            ask(BY)
    assert service.states() == {"town": "unavailable"}


def test_a_bundle_of_the_folder_needs_a_policy_and_no_records(tmp_path: Path) -> None:
    service = folder(tmp_path, town=STRICT)
    records: Any = service._records
    records.names = lambda: ["checking"]
    write_bundle(tmp_path / "bundles" / "town", packed())
    assert service.names() == ["town"]
    assert service.described() == ["checking", "town"]
    assert service.answer(BY).release is not None
    (tmp_path / "policies" / "town.toml").unlink()
    assert service.names() == []
    with pytest.raises(DatasetError, match="has no policy"):
        service.answer(BY)


@pytest.mark.parametrize("version", [1, 2])
def test_old_sums_of_gains_and_losses_are_called_unsafe_by_the_log_and_the_doctor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    own = made_by(existence="public")
    public = own.sums.public
    words = public.to_mapping() | {"version": version, "losses": ["gain"]}
    if version == 1:
        words = {k: v for k, v in words.items() if k not in ("version", "losses")}
    read = type(public).from_mapping(words)
    assert (read.version, read.losses) == (version, ("gain",) if version == 2 else ())
    own = replace(own, sums=replace(own.sums, public=read))
    write_bundle(tmp_path / "bundles" / "town", packed(own))
    stands = read_bundle(tmp_path / "bundles" / "town").sums
    assert stands.negative == {"gain"}
    (bad,) = [f for f in examine(tmp_path) if f.grade == "bad" and "unsafe" in f.sentence] or [None]
    service = TableService(bundles=[tmp_path / "bundles" / "town"], workers=1)
    service.snapshot("town")
    service.close()
    said = "sums of gain are unsafe: an earlier version showed gains and losses"
    if version == 1:
        assert said in bad.sentence
        assert said in caplog.text
    else:
        assert bad is None
        assert "unsafe" not in caplog.text


def test_bundles_of_another_search_are_named_with_that_search(tmp_path: Path) -> None:
    """Bundles of the folder and those given by hand; datasets without a bundle are left aside."""
    own = made_by()
    older = packed(replace(own, report=replace(own.report, search=own.report.search - 2)))
    (tmp_path / "data").mkdir()
    service = folder(tmp_path / "data", town=STRICT, checking=KEYED.replace(b"town", b"checking"))
    assert service.other_searches() == {}
    place = tmp_path / "data" / "bundles" / "town"
    write_bundle(place, packed())
    assert service.other_searches() == {}
    write_bundle(place, older)
    assert service.other_searches() == {"town": own.report.search - 2}
    # Drafts of a bundle that nobody serves are no reason to say anything.
    write_bundle(tmp_path / "data" / "bundles" / "unknown", older)
    assert service.other_searches() == {"town": own.report.search - 2}
    write_bundle(tmp_path / "given", older)
    given = TableService(bundles=[tmp_path / "given"], workers=1)
    assert given.other_searches() == {"town": own.report.search - 2}
    given.close()


def test_a_new_bundle_and_a_new_policy_are_taken_up_at_the_next_question(tmp_path: Path) -> None:
    service = folder(tmp_path, town=STRICT)
    place = tmp_path / "bundles" / "town"
    write_bundle(place, packed())
    first, mark = service.snapshot("town").numbers, service.mark("town")
    assert service.snapshot("town").numbers is first
    assert service.mark("town") == mark
    path = tmp_path / "policies" / "town.toml"
    path.write_bytes(STRICT.replace(b"limit = 1.0", b"limit = 0.5"))
    assert service.policy("town").risk.limit == 0.5
    changed = service.mark("town")
    assert changed != mark
    own = made_by()
    fewer = replace(
        own, cells=type(own.cells)(DATASET, own.cells.codes[:, 1:], own.cells.counts[1:])
    )
    write_bundle(place, packed(fewer))
    answer = service.answer(BY)
    assert answer.release.published.sum() == sum(SHOWN.values()) - int(own.cells.counts[0])
    assert service.mark("town") != changed
    # A policy whose file looks the same is read again when it is asked for.
    kept = service.policy("town")
    assert service.policy("town") is kept
    service.forget_policies()
    assert service.policy("town") is not kept


def test_records_answer_where_the_policy_asks_for_no_population(tmp_path: Path) -> None:
    service = folder(tmp_path, town=KEYED, checking=KEYED.replace(b"town", b"checking"))
    assert service.names() == ["checking", "town"]
    numbers = service.snapshot("town").numbers
    assert isinstance(numbers, KeyedNumbers)
    assert (numbers.mark, numbers.weights, numbers.weighted_measures) == ("version", (), ())
    assert service.mark("town").startswith("version ")
    assert service.snapshot("town").protection is None
    assert service.answer(BY).release is not None
    assert service.states() == {"checking": "checking", "town": "ready"}
    strict = KEYED.replace(b"[rules]\n", b"[rules]\nmin_population = 100000\n")
    (tmp_path / "policies" / "town.toml").write_bytes(strict)
    assert service.precheck(BY, count=False).passes
    assert not service.precheck(BY).passes
    (tmp_path / "policies" / "checking.toml").unlink()
    assert service.names() == ["town"]
    # A bundle stands there, and the policy asks for records.
    write_bundle(tmp_path / "bundles" / "town", packed())
    assert isinstance(service.snapshot("town").numbers, KeyedNumbers)
    records: Any = service._records
    records.asked.clear()
    assert service.description("town").name == "town"
    assert records.asked == ["town"]
    service.check_in_background()
    service.close()
    assert (records.background, records.closed) == (True, True)


def test_snapshots_stand_while_their_files_look_the_same_and_never_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    for name in ("read_bundle", "read_policy"):
        monkeypatch.setattr(table_service, name, counting(getattr(table_service, name), read))
    service = folder(tmp_path, town=STRICT)
    place = tmp_path / "bundles" / "town"
    write_bundle(place, packed())
    first = service.snapshot("town")
    assert service.standing("town") is first
    assert service.snapshot("town") is first
    assert service.published("town") is first
    assert read == [tmp_path / "policies" / "town.toml", place]
    (tmp_path / "policies" / "town.toml").write_bytes(
        STRICT.replace(b"limit = 1.0", b"limit = 0.25")
    )
    assert service.standing("town") is None
    found = service.published("town")
    assert found.policy.risk.limit == 0.25
    assert service.published("twon") is None
    write_bundle(tmp_path / "given", packed())
    named = TableService(bundles=[tmp_path / "given"], workers=1)
    assert named.snapshot("town") is named.standing("town")
    assert named.published("twon") is None
    named.close()


def counting(reads: Callable[..., Any], seen: list[Path]) -> Callable[..., Any]:
    """The same function, which notes what it reads."""

    def noting(path: Path, **words: Any) -> Any:
        seen.append(path)
        return reads(path, **words)

    return noting


def test_what_the_records_do_not_say_at_once_is_starting(tmp_path: Path) -> None:
    service = folder(tmp_path, town=KEYED)
    records: Any = service._records
    assert service.states() == {"town": "ready"}
    records.answering = False
    assert service.states() == {"town": "starting"}
    for error in (NotAnsweringError("silent"), Stopped()):

        def describe(name: str, error: Exception = error) -> Described:
            raise error

        records.describe = describe
        assert service.states() == {"town": "starting"}
    # Who asks which datasets are not served is told of silence too.
    assert service.not_served() == {"town": table_service.FAILURES["silent"]}
    records.revive = lambda: False
    assert not service.lives()
    records.revive = lambda: True
    assert service.lives()
    service.let_records_go()
    assert records.closed
    write_bundle(tmp_path / "given", packed())
    bare = TableService(bundles=[tmp_path / "given"], workers=1)
    assert bare.lives()
    bare.let_records_go()
    bare.close()


def test_what_is_not_there_or_has_no_policy_answers_nothing(tmp_path: Path) -> None:
    service = folder(tmp_path)
    with pytest.raises(QueryError, match="no dataset 'twon'"):
        service.answer(replace(BY, dataset="twon"))
    with pytest.raises(DatasetError, match="has no policy, so nothing about it is published"):
        service.answer(BY)
    assert service.names() == []
    (tmp_path / "policies" / "town.toml").write_bytes(STRICT)
    with pytest.raises(
        NotMadeError, match="town is not made yet; 'lustrum protect --dataset town'"
    ):
        service.answer(BY)
    (tmp_path / "policies" / "town.toml").write_bytes(KEYED.replace(b'"town"', b'"city"'))
    with pytest.raises(PolicyError, match="is for the dataset 'city'"):
        service.answer(BY)
    with pytest.raises(PolicyError, match="is for the dataset 'city'"):
        service.check_replacement(DATASET)
    (tmp_path / "policies" / "town.toml").unlink()
    service.check_replacement(DATASET)


def test_bundles_that_are_named_need_no_folder_of_records(tmp_path: Path) -> None:
    place = tmp_path / "anywhere"
    write_bundle(place, packed())
    service = TableService(bundles=[place], workers=1)
    assert service.names() == service.described() == ["town"]
    assert service.bundle_path("town") == place
    assert service.answer(BY).release is not None
    assert service.description("town").name == "town"
    assert isinstance(service.under("town", service.policy("town")), BundleNumbers)
    service.check_in_background()
    own = service.folder
    assert own.is_dir()
    service.close()
    assert not own.exists()
    with pytest.raises(DatasetError, match="Two bundles are of the dataset 'town'"):
        TableService(bundles=[place, place])
    kept = TableService(bundles=[place], folder=tmp_path)
    assert kept.folder == tmp_path
    kept.close()
    assert tmp_path.is_dir()
    # A bundle that is named stands before one of the folder, and before its records.
    beside = folder(tmp_path / "data", town=KEYED)
    both = TableService(tmp_path / "data", 1, records=beside._records, bundles=[place])
    assert isinstance(both.snapshot("town").numbers, BundleNumbers)
    assert isinstance(both.under("town", made_by().policy), BundleNumbers)
    assert both.bundle_path("town") == place
    assert both.bundle_path("other") == tmp_path / "data" / "bundles" / "other"


def test_a_bundle_is_read_as_it_was_written(tmp_path: Path) -> None:
    for existence in (None, "secret", "public"):
        own = made_by(existence=existence)
        place = tmp_path / f"bundle-{existence}"
        digest = write_bundle(place, packed(own))
        found = read_bundle(place)
        assert found.digest == digest == bundle_digest(place)
        assert bundle_name(place) == "town"
        assert np.array_equal(found.cells.codes, own.cells.codes)
        assert np.array_equal(found.cells.counts, own.cells.counts)
        assert found.report == own.report
        assert stated_method(place) == own.report.method
        assert (found.sums is None) == (own.sums is None)
        assert [m.name for m in found.dataset.measures] == (["pay", "gain"] if own.sums else [])
        if own.sums is not None and found.sums is not None:
            assert found.sums.public == own.sums.public
            for name, values in own.sums.sums.sums.items():
                assert np.array_equal(found.sums.sums.sums[name], values)
            assert np.array_equal(found.sums.sums.codes, own.sums.sums.codes)
    assert bundle_digest(tmp_path) is None
    assert stated_method(tmp_path) is None
    (place / "report.json").write_text("[]")
    assert stated_method(place) is None


def rewritten(place: Path, name: str, data: bytes) -> None:
    """Replace a file and state its digest, so that only what it says can be refused."""
    manifest = json.loads((place / MANIFEST).read_bytes())
    (place / name).write_bytes(data)
    manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    words = [manifest["format"], KIND, manifest["dataset"], manifest["files"]]
    text = json.dumps(words, sort_keys=True, ensure_ascii=True)
    manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
    (place / MANIFEST).write_text(json.dumps(manifest))


def other(change: Callable[[Bundle], Bundle], existence: str | None = None) -> PackedBundle:
    return packed(change(made_by(existence=existence)))


def test_files_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    def shown(counts: Callable[[Any], Any]) -> Callable[[Bundle], Bundle]:
        return lambda b: replace(
            b, cells=type(b.cells)(DATASET, b.cells.codes, counts(b.cells.counts))
        )

    def summed(change: Callable[[Any], Any]) -> Callable[[Bundle], Bundle]:
        return lambda b: replace(b, sums=change(b.sums))

    public = bundle("public").sums
    wrong = {
        "other counts than the method produces": other(shown(lambda c: c + 1)),
        "a cell that shows nobody": other(shown(lambda c: c * (np.arange(c.size) > 0))),
        "another support": other(
            lambda b: replace(b, report=replace(b.report, support=Support(5)))
        ),
        "errors of other measures": other(
            summed(lambda s: replace(s, public=replace(s.public, errors={"pay": {1: 1.0}}))),
            "secret",
        ),
        "secret sums beside counts of 0": other(
            summed(lambda s: replace(s, sums=public and public.sums)), "secret"
        ),
    }
    for why, files in wrong.items():
        place = tmp_path / why
        write_bundle(place, files)
        with pytest.raises(DatasetError, match="another version of Lustrum"):
            read_bundle(place)
    place = tmp_path / "other"
    write_bundle(place, packed(made_by(existence="public")))
    read_bundle(place)
    renamed = json.loads((place / "dataset.json").read_bytes())
    renamed["variables"][0]["name"] = "place"
    rewritten(place, "dataset.json", json.dumps(renamed).encode())
    with pytest.raises(DatasetError, match="another version of Lustrum"):
        read_bundle(place)


def test_a_public_description_leaves_out_what_only_records_have() -> None:
    words = dict(DATASET.source)
    words["dataset"] = {**words["dataset"], "record_id": "id", "identifiers": ["firm"]}
    words["measures"] = [
        {"name": "pay", "unit": "euro", "holding": "firm", "missing": "-1"},
        {"name": "gain", "unit": "euro"},
    ]
    words["weights"] = [{"name": "w"}]
    described = Dataset.from_mapping(words)
    public = public_description(described, None, ("pay",))
    assert public["dataset"] == DATASET.source["dataset"]
    assert public["measures"] == [{"name": "pay", "unit": "euro"}]
    assert "weights" not in public
    assert "measures" not in public_description(described)
    plain = {key: value for key, value in words.items() if key not in ("measures", "weights")}
    assert "measures" not in public_description(Dataset.from_mapping(plain))
    assert public["variables"] == DATASET.source["variables"]
    assert public["structural_zeros"] == DATASET.source["structural_zeros"]


def test_a_manifest_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "bundle"
    write_bundle(place, packed(made_by(existence="public")))
    whole = json.loads((place / MANIFEST).read_bytes())

    def refused(match: str, **words: Any) -> None:
        (place / MANIFEST).write_text(json.dumps({**whole, **words}))
        with pytest.raises(DatasetError, match=match):
            read_bundle(place)
        with pytest.raises(DatasetError, match=match):
            bundle_name(place)

    refused("is not that of a bundle", kind="other")
    refused("does not have its own digest", dataset="city")
    refused("does not have its own digest", digest="0" * 64)
    refused("does not have its own digest", dataset=3)
    refused("does not have its own digest", files=[])
    for files, layout in (
        ({k: v for k, v in whole["files"].items() if k != "sums.json"}, whole["format"]),
        ({k: v for k, v in whole["files"].items() if k != "cells.arrow"}, whole["format"]),
        ({**whole["files"], "more.json": {}}, whole["format"]),
        (whole["files"], "0"),
    ):
        text = json.dumps([layout, KIND, "town", files], sort_keys=True, ensure_ascii=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        refused("another version of Lustrum", files=files, format=layout, digest=digest)
    (place / MANIFEST).write_text("{")
    with pytest.raises(DatasetError, match="not valid JSON"):
        read_bundle(place)
    (place / MANIFEST).write_text("[]")
    with pytest.raises(DatasetError, match="not that of a bundle"):
        read_bundle(place)
    (place / MANIFEST).unlink()
    with pytest.raises(DatasetError, match="is not a bundle"):
        read_bundle(place)


def test_only_the_method_of_the_policy_serves_or_a_larger_base_that_mends() -> None:
    strict = Policy.model_validate(
        {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
    )
    method = strict.population.to_mapping()
    assert is_made_by(method, strict)
    assert not is_made_by({**method, "base": method["base"] + 1}, strict)
    assert not is_made_by({}, strict)
    assert not is_made_by(None, strict)
    assert not is_made_by(method, Policy.model_validate({}))
    assert not is_made_by({}, Policy.model_validate({}))
    mends = Policy.model_validate(
        {
            "before": [{"method": "protected-population", "if_fewer": "larger-base"}],
            "protect": {"method": "none"},
        }
    )
    wanted = mends.population.to_mapping()
    assert is_made_by(wanted, mends)
    assert is_made_by({**wanted, "base": wanted["base"] + 1}, mends)
    assert not is_made_by({**wanted, "base": wanted["base"] - 1}, mends)


def test_a_bundle_takes_the_place_of_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".half.part").mkdir()
    (tmp_path / ".half.part" / MANIFEST).write_text("{}")
    assert bundles_in(tmp_path) == set()
    (tmp_path / "empty").mkdir()
    write_bundle(tmp_path / "empty", packed())
    assert read_bundle(tmp_path / "empty").dataset.name == "town"
    filled = tmp_path / "filled"
    filled.mkdir()
    (filled / "letter.txt").write_text("mine")
    with pytest.raises(DatasetError, match="is there and is not a bundle"):
        write_bundle(filled, packed())
    assert (filled / "letter.txt").read_text() == "mine"


def test_a_count_from_a_bundle_passes_fewer_than_forty_files(tmp_path: Path) -> None:
    """Whoever follows a number through the code has that many files to open."""
    write_bundle(tmp_path / "town", packed())
    service = TableService(bundles=[tmp_path / "town"])
    query = TableQuery("town", (Axis("area"), Axis("sex", total=True)))
    first = service.answer(query)
    passed: set[str] = set()
    sources = str(Path(table_service.__file__).parents[1])

    def note(frame: Any, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(sources):
            passed.add(path)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        again = service.answer(query)
    finally:
        sys.setprofile(before)
        service.close()
    assert np.array_equal(again.release.published, first.release.published)
    assert 10 < len(passed) < 40
