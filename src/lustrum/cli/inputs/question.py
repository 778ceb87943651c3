"""A question in the words of the command line: ``--by age:ten-year,sex --where region=1``."""

from __future__ import annotations

from collections.abc import Sequence

from lustrum.model import Axis, Filter, QueryError, Statistic, TableQuery


def read_question(
    dataset: str,
    by: str,
    where: Sequence[str],
    totals: bool = False,
    *,
    measure: str | None = None,
    statistics: Sequence[str] = (),
    weight: str | None = None,
) -> TableQuery:
    """The query that these words stand for; ``measure`` is that of each statistic which names none.

    >>> read_question("demo", "age:ten-year,sex", ["region=1"]).to_mapping()["by"]
    [{'variable': 'age', 'level': 'ten-year'}, 'sex']
    """
    axes = []
    for word in (part.strip() for part in by.split(",")):
        name, _, level = word.partition(":")
        if not name:
            raise QueryError(f"--by {by!r}: a variable's name is missing; write --by age,sex.")
        axes.append(Axis(name, level or None, total=totals))
    filters = []
    for word in where:
        name, equals, codes = word.partition("=")
        if not equals or not name or not codes:
            raise QueryError(f"--where {word!r}: write --where variable=code, such as region=1.")
        filters.append(Filter(name.strip(), tuple(code.strip() for code in codes.split(","))))
    return TableQuery(
        dataset,
        tuple(axes),
        tuple(filters),
        None if statistics else measure,
        weight,
        tuple(Statistic.parse(text, measure) for text in statistics),
    )
