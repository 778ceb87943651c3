"""A programme file is refused with one sentence that names what is right."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lustrum.model import Axis, Dataset, Filter, InputError
from lustrum.publish.programme.read import bound_to, parse_programme, read_programme
from lustrum.publish.programme.run import check_programme
from lustrum.publish.programme.spec import USUAL_FORMATS, Programme, Source
from lustrum.publish.waivers import read_waivers
from lustrum.sensitivity import PPercent, Threshold
from publish.programme.conftest import DESCRIPTION, TURNOVER, Workplace, programme_text


def parsed(text: str) -> Programme:
    return parse_programme(text.encode(), "tables.toml", Path("/nowhere"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[programme]", "[program]", "the file has no key 'program'; did you mean 'programme'?"),
        ("period =", "perod =", "[programme] has no key 'perod'; did you mean 'period'?"),
        ("file =", "files =", "[data] has no key 'files'; did you mean 'file'?"),
        (
            "relations =",
            "relation =",
            "Set 'turnover' has no key 'relation'; did you mean 'relations'?",
        ),
        (
            '"suppression"',
            '"supression"',
            "there is no method 'supression'; did you mean 'suppression'?",
        ),
        ('"p-percent"', '"p-precent"', "There is no sensitivity rule 'p-precent'"),
        ("p = 10", "q = 10", "The rule 'p-percent' has no parameter 'q'"),
        ('measures = ["turnover"]', 'measure = ["turnover"]', "did you mean 'measures'?"),
        ("+ export", ">= export", "needs one"),
        ("= domestic + export", ">= domestic", "must be an equation"),
        ('name = "not-large"', 'name = "activity-size"', "two tables named 'activity-size'"),
        ('name = "not-large"', 'name = "Not large"', "lower-case letters, digits and '-'"),
        ("end = true", "", "does not end with the line 'end = true'"),
        ('description = "description.toml"', "", "'file' and 'description' go together"),
        ("margin = 10\n", 'margin = 10\nmeasures = ["wages"]\n', "which no table of the set shows"),
        ("levels = [", 'level = "section", levels = [', "one of 'level', 'levels', 'codes'"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_what_is_right(old: str, new: str, said: str) -> None:
    text = programme_text(TURNOVER)
    assert old in text
    with pytest.raises(InputError) as error:
        parsed(text.replace(old, new))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"region", total', '"reigon", total', "did you mean 'region'?"),
        ('level = "section"', 'level = "sektion"', "did you mean 'section'?"),
        ('measures = ["turnover"]', 'measures = ["turnovr"]', "did you mean 'turnover'?"),
        ('{size = ["s", "m"]}', '{size = ["x"]}', "'x'"),
        ("+ export", "+ exports", "did you mean 'export'?"),
        ('"suppression"', '{method = "suppression", csot = "value"}', "did you mean 'cost'?"),
    ],
)
def test_names_are_checked_against_the_data_before_anything_is_counted(
    workplace: Workplace, old: str, new: str, said: str
) -> None:
    text = programme_text(TURNOVER)
    assert old in text
    programme = parse_programme(text.replace(old, new).encode(), "tables.toml", workplace.folder)
    with pytest.raises(InputError) as error:
        check_programme(programme, workplace.folder)
    assert said in str(error.value)


FULL = """
[programme]
name = "biz"
[data]
{data}
[[sets]]
name = "one"
{one}
{rules}
[[sets.tables]]
name = "t1"
{table}
end = true
"""
RULE = '[[sets.rules]]\nrule = "threshold"\nminimum = 4'
BY = 'by = ["act"]'


def full(data: str = 'dataset = "biz"', one: str = "", rules: str = RULE, table: str = BY) -> str:
    return FULL.format(data=data, one=one, rules=rules, table=table)


def test_what_is_left_out_has_its_usual_value() -> None:
    found = parsed(full())
    assert (found.name, found.title, found.period, found.notes) == ("biz", "biz", "", ())
    assert found.source == Source(dataset="biz")
    assert found.formats == USUAL_FORMATS
    assert (found.plain_status, found.publish_rules, found.certificate) == (True, False, True)
    assert found.previous is None
    (own,) = found.sets
    assert (own.name, own.title, own.method, own.relations) == ("one", "one", {}, ())
    assert own.unshown == "differences"
    assert [(r.rule, r.responses) for r in own.rules] == [(Threshold(4), ())]
    (table,) = own.tables
    assert (table.name, table.title, table.responses) == ("t1", "t1", ("count",))
    assert (table.frozen, table.never, table.trees) == ((), (), {})
    assert table.query.by == (Axis("act"),)
    assert table.query.where == ()


def test_what_is_said_is_what_is_made() -> None:
    text = full(
        data='file = "r.csv"\ndescription = "d.toml"\nsecret = "s"\nwaivers = "w.txt"\nrequests = "q"',
        one='title = "One"\nmethod = {method = "suppression", cost = "unity"}\nunshown = "all"\n'
        'relations = ["turnover = domestic + export"]',
        rules='[[sets.rules]]\nrule = "p-percent"\np = 12\nmeasures = ["turnover"]\n' + RULE,
        table='title = "T"\nby = [{variable = "act", level = "section"}, "region"]\ntotals = true\n'
        'where = {size = ["s", "m"]}\nmeasures = ["turnover", "export"]\n'
        'frozen = [{act = "A"}]\nnever = [{act = "B", region = "n"}]',
    ).replace(
        'name = "biz"\n',
        'name = "biz"\ntitle = "Biz"\nperiod = "2025"\nnotes = ["a", "b"]\nplain_status = false\n'
        'publish_rules = true\ncertificate = false\nprevious = "last"\nformats = ["csv", "csv"]\n',
        1,
    )
    found = parsed(text)
    place = Path("/nowhere")
    assert (found.title, found.period, found.notes) == ("Biz", "2025", ("a", "b"))
    assert found.source == Source(
        file=place / "r.csv",
        description=place / "d.toml",
        secret=place / "s",
        waivers=place / "w.txt",
        requests=place / "q",
    )
    assert found.formats == ("csv",)
    assert (found.plain_status, found.publish_rules, found.certificate) == (False, True, False)
    assert found.previous == place / "last"
    (own,) = found.sets
    assert own.title == "One"
    assert own.method == {"method": "suppression", "cost": "unity"}
    assert own.unshown == "all"
    assert own.relations == ("turnover = domestic + export",)
    assert [(r.rule, r.responses) for r in own.rules] == [
        (PPercent(12), ("turnover",)),
        (Threshold(4), ()),
    ]
    (table,) = own.tables
    assert table.title == "T"
    assert table.responses == ("turnover", "export")
    assert table.query.by == (Axis("act", "section", total=True), Axis("region", total=True))
    assert table.query.where == (Filter("size", ("s", "m")),)
    assert table.frozen == ({"act": "A"},)
    assert table.never == ({"act": "B", "region": "n"},)


def test_levels_are_the_codes_of_the_dataset() -> None:
    dataset = Dataset.from_mapping(tomllib.loads(DESCRIPTION))

    def codes(by: str) -> object:
        bound = bound_to(parsed(full(table=f"by = [{by}]")), dataset)
        (table,) = bound.sets[0].tables
        assert table.query.dataset == "biz"
        return table.query.by[0]

    every = ("A", "B", "a1", "a2", "b1", "b2")
    both = codes('{variable = "act", levels = ["section", "finest"], total = true}')
    assert both == Axis("act", codes=every, total=True)
    assert codes('{variable = "act", levels = ["section"]}') == Axis("act", codes=("A", "B"))
    assert codes('{variable = "act", codes = ["a1", "B"]}') == Axis("act", codes=("a1", "B"))
    assert codes('{variable = "act", level = "section"}') == Axis("act", "section")
    for by in ('{variable = "act", codes = ["zz"]}', '{variable = "act", level = "zz"}'):
        with pytest.raises(InputError, match=r"^Table 't1': "):
            codes(by)


def test_tables_of_a_bundle_have_no_groups_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "act.hrc").write_text("A\n@a1\n@a2\n")
    by = 'by = [{variable = "act", hierarchy = "act.hrc"}]'
    for data, rules in (('dataset = "biz"', RULE), (BUNDLE, "")):
        text = full(data=data, rules=rules, table=by).encode()
        if rules:
            (table,) = parse_programme(text, "tables.toml", tmp_path).sets[0].tables
            assert table.trees == {"act": {"A": ("a1", "a2")}}
            continue
        with pytest.raises(InputError, match="leave 'hierarchy' out"):
            parse_programme(text, "tables.toml", tmp_path)


def test_letters_are_refused_where_one_of_the_tables_counts() -> None:
    sums = BY + '\nmeasures = ["turnover"]\n[[sets.tables]]\nname = "t2"\nby = ["act"]'
    text = full(table=sums).replace('name = "biz"', 'name = "biz"\nplain_status = false', 1)
    with pytest.raises(InputError, match="how large hidden counts are"):
        parsed(text)


def test_relations_may_tie_records_to_a_measure() -> None:
    dataset = Dataset.from_mapping(tomllib.loads(DESCRIPTION))
    text = full(one='relations = ["count = domestic + export"]')
    assert bound_to(parsed(text), dataset).sets[0].relations == ("count = domestic + export",)


BUNDLE = 'bundle = "b"'
FILE = 'file = "r.csv"\ndescription = "d.toml"'
ADJUST = 'method = "controlled-adjustment"'
BESIDE = 'dataset = "biz"\nbeside = "b"'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"data": 'dataset = "biz"\nbundle = "b"'}, "names one of 'dataset'"),
        ({"data": 'dataset = "biz"\n' + FILE}, "names one of 'dataset'"),
        ({"data": ""}, "names one of 'dataset'"),
        ({"data": 'file = "r.csv"'}, "'file' and 'description' go together"),
        ({"data": 'dataset = "biz"\ndescription = "d"'}, "'file' and 'description' go together"),
        ({"data": 'dataset = "biz"\nsecret = "s"'}, "'secret' goes with 'file'"),
        ({"data": BESIDE}, 'write existence = "public"'),
        ({"data": 'dataset = "biz"\nexistence = "public"'}, 'write existence = "public"'),
        ({"data": BESIDE + '\nexistence = "no"'}, "'existence' can only be"),
        ({"data": "dataset = 3"}, "[data]: 'dataset' must be a text in quotes"),
        *(
            ({"data": f'{BUNDLE}\n{key} = "x"', "rules": ""}, f"{key!r} says nothing about tables")
            for key in ("waivers", "requests", "beside", "existence")
        ),
        ({"data": BUNDLE}, "leave these out"),
        ({"data": BUNDLE, "rules": "", "one": ADJUST}, "leave these out"),
        ({"data": BUNDLE, "rules": "", "one": 'relations = ["a = b"]'}, "leave these out"),
        (
            {"data": BUNDLE, "rules": "", "table": BY + '\nmeasures = ["turnover"]'},
            "tables of a bundle are counts; leave 'measures' out",
        ),
        (
            {"data": BUNDLE, "rules": "", "table": BY + '\nnever = [{act = "A"}]'},
            "leave 'frozen' and 'never' out",
        ),
        (
            {"data": BUNDLE, "rules": "", "table": BY + '\nfrozen = [{act = "A"}]'},
            "leave 'frozen' and 'never' out",
        ),
        ({"rules": ""}, "Set 'one' has no [[sets.rules]]"),
        ({"rules": RULE.replace("threshold", "request").replace("minimum", "#")}, "who asked"),
        (
            {"rules": '[[sets.rules]]\nrule = "any-of"\nrules = [{rule = "request"}]'},
            "nobody is named here",
        ),
        ({"rules": RULE + "\nmeasures = [3]"}, "Set 'one': 'measures' of a rule must be a list"),
        ({"rules": RULE + '\nmeasures = "count"'}, "must be a list of texts"),
        ({"one": "method = 3"}, "'method' is a name or a table"),
        ({"one": 'method = {cost = "value"}'}, "there is no method None"),
        ({"one": 'method = {method = "suppression", rule = "x"}'}, "not in the method"),
        ({"one": 'unshown = "some"'}, "'unshown' cannot be 'some'"),
        ({"one": ADJUST, "table": BY + '\nnever = [{act = "A"}]'}, "for the method 'suppression'"),
        ({"one": ADJUST, "table": BY + '\nfrozen = [{act = "A"}]'}, "for the method 'suppression'"),
        ({"one": 'relations = ["turnover <= export"]'}, "must be an equation"),
        ({"one": 'relations = ["turnover >= export"]'}, "must be an equation"),
        ({"one": "title = 3"}, "Set 'one': 'title' must be a text in quotes"),
        ({"table": ""}, "Table 't1': 'by' must be a list of variables"),
        ({"table": "by = []"}, "'by' must be a list of variables"),
        ({"table": 'by = "act"'}, "'by' must be a list of variables"),
        ({"table": "by = [3]"}, "an entry of 'by' is a variable, or a table"),
        ({"table": 'by = [{varable = "act"}]'}, "an entry of 'by' has no key 'varable'"),
        (
            {"table": 'by = [{variable = "act", hierarchy = "a.hrc", codes = ["A"]}]'},
            "one of 'level', 'levels', 'codes' and 'hierarchy'",
        ),
        ({"table": 'by = [{variable = "act", hierarchy = 3}]'}, "'hierarchy' must be a text"),
        ({"table": 'by = [{variable = "act", levels = "section"}]'}, "'levels' must be a list"),
        ({"table": 'by = ["act", "act"]'}, "Table 't1': The variable 'act' is in the table twice"),
        ({"table": BY + "\nmeasures = []"}, "'measures' names every measure once"),
        ({"table": BY + '\nmeasures = ["count", "count"]'}, "'measures' names every measure once"),
        ({"table": BY + '\ntotals = "yes"'}, "Table 't1': 'totals' must be true or false"),
        ({"table": BY + '\nnever = [{region = "n"}]'}, "by which the table is not"),
        ({"table": BY + "\nfrozen = [{act = 1}]"}, "a code in 'frozen' must be a text"),
        ({"table": BY + "\nfrozen = 3"}, "Table 't1': 'frozen' is a list of tables"),
        ({"table": BY + '\nfrozen = ["A"]'}, "'frozen' is a list of tables"),
    ],
)
def test_a_file_that_says_too_little_or_too_much_is_refused(
    words: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as error:
        parsed(full(**words))
    assert said in str(error.value)
    assert str(error.value).startswith("tables.toml: ")


@pytest.mark.parametrize(
    "words",
    [
        {"data": BUNDLE, "rules": ""},
        {"data": BESIDE + '\nexistence = "public"'},
        {"data": FILE},
        {"data": FILE + '\nsecret = "s"'},
        {"data": FILE + '\nrequests = "q"', "rules": '[[sets.rules]]\nrule = "request"'},
        {"one": ADJUST},
        {"one": 'method = "suppression"', "table": BY + '\nnever = [{act = "A"}]'},
        {"table": BY + '\nfrozen = [{act = "A"}]'},
        {"rules": RULE + '\nmeasures = ["count"]'},
    ],
)
def test_a_file_that_says_enough_is_taken(words: dict[str, Any]) -> None:
    assert parsed(full(**words)).name == "biz"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "biz"', 'name = "biz"\nplain_status = 1', "'plain_status' must be true or false"),
        ('name = "biz"', 'name = "biz"\nplain_status = false', "how large hidden counts are"),
        ('name = "biz"', 'name = "biz"\nformats = ["pdf"]', "there is no format 'pdf'"),
        ('name = "biz"', 'name = "biz"\nnotes = "one"', "[programme]: 'notes' must be a list"),
        ('name = "biz"', 'name = "-biz"', "must be lower-case letters, digits and '-'"),
        ('name = "biz"', "name = 3", "[programme]: 'name' must be a text"),
        ("[[sets]]", "[[programme.sets]]", "[programme] has no key 'sets'"),
        ("[data]", "[[data]]", "has no table [data]"),
        ('name = "one"', 'name = "one"\nrules = 3', "'rules' is a list of tables"),
    ],
)
def test_the_head_of_a_file_is_checked(old: str, new: str, said: str) -> None:
    text = full(rules="" if "rules" in new else RULE)
    with pytest.raises(InputError) as error:
        parsed(text.replace(old, new, 1))
    assert said in str(error.value)


def test_a_programme_needs_a_set_and_a_set_a_table() -> None:
    head = '[programme]\nname = "biz"\n[data]\ndataset = "biz"\n{}end = true\n'
    for more, said in (
        ("", "There is no [[sets]]"),
        ('[[sets]]\nname = "one"\n' + RULE + "\n", "Set 'one' has no [[sets.tables]]"),
    ):
        with pytest.raises(InputError) as error:
            parsed(head.format(more))
        assert said in str(error.value)
    table = f'[[sets]]\nname = "one"\n{RULE}\n[[sets.tables]]\nname = "t{{}}"\n{BY}\n'
    for names, said in (((1, 2), "two sets named 'one'"), ((1, 1), "two sets named 'one'")):
        with pytest.raises(InputError, match=said):
            parsed(head.format("".join(table.format(n) for n in names)))


def test_a_file_is_read_from_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tables\.toml cannot be read"):
        read_programme(tmp_path / "tables.toml")
    (tmp_path / "tables.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not valid TOML"):
        read_programme(tmp_path / "tables.toml")
    (tmp_path / "tables.toml").write_text(full(data=FILE))
    assert read_programme(tmp_path / "tables.toml").source.file == tmp_path / "r.csv"


@pytest.mark.parametrize("text", ["", "\n", "# nobody yet\n"])
def test_a_file_of_requests_that_names_nobody_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "requests.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="names nobody who asked for protection"):
        read_waivers(None, path)
    path.write_text(f"{text}A\n")
    assert len(read_waivers(None, path).requested) == 1
    assert not read_waivers(None).requested
