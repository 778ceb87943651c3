"""One question has one kind, one risk and one utility, however it is phrased."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.answer.figures.counts import expected_figures
from lustrum.model import Axis, Filter, Group, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.policy import Policy
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.public import PublicReport
from lustrum.public.bundle.files import Bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.risk import EntropyRisk
from small import described, hierarchy

AREAS = [f"a{n}" for n in range(6)]
DATASET = described(
    "land",
    {
        "region": "NS",
        "area": {
            "codes": AREAS,
            "hierarchies": [
                hierarchy(
                    "places", {"district": {"d1": AREAS[:2], "d2": AREAS[2:4], "d3": AREAS[4:]}}
                )
            ],
        },
        "sex": "fm",
        "age": "0123",
    },
    structural_zeros=[
        {"reason": "North.", "where": {"region": ["S"], "area": AREAS[:4]}},
        {"reason": "South.", "where": {"region": ["N"], "area": AREAS[4:]}},
    ],
)
POLICY = Policy.model_validate(
    {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
)
SEX, AGE = Axis("sex"), Axis("age")


@pytest.fixture(scope="module")
def numbers() -> BundleNumbers:
    rng = np.random.default_rng(5)
    area, sex, age = (g.ravel() for g in np.indices((6, 2, 4)))
    codes = np.stack([(area >= 4).astype(np.int64), area, sex, age])
    counts = rng.poisson(rng.gamma(0.5, 6.0, area.size))
    kept = counts > 0
    cells = FinestCells(DATASET, codes[:, kept], counts[kept])
    made = ProtectedPopulation(sweeps=2).protect(cells, b"k" * 16)
    # Rates of controlled tables and of others differ as much as they can.
    words = made.public.to_mapping()
    words["free_rates"] = words["rates"][::-1]
    return BundleNumbers(Bundle(made.cells, POLICY, PublicReport.from_mapping(words), "d" * 32), 1)


def question(by: list[Axis], *where: Filter) -> TableQuery:
    return TableQuery("land", tuple(by), where)


NORTH = Filter("region", ("N",))
NORTHERN = Filter("area", tuple(AREAS[:4]))
OWN_DISTRICTS = tuple(Group(f"g{9 - k}", tuple(AREAS[2 * k : 2 * k + 2])) for k in range(3))
PHRASINGS = {
    "a region by its code, by its areas, with a filter that lets all pass": (
        question([SEX, AGE], NORTH),
        question([AGE, SEX], NORTHERN),
        question([SEX, AGE], NORTH, NORTHERN),
        question([SEX, AGE], NORTH, Filter("age", ("0", "1", "2", "3"))),
    ),
    "regions as a variable and as groups of areas": (
        question([AGE, Axis("region")]),
        question([Axis("area", groups=(Group("y", tuple(AREAS[4:])), Group("x", tuple(AREAS[:4])))), AGE]),
    ),
    "districts as a level and as groups": (
        question([Axis("area", level="district"), SEX]),
        question([SEX, Axis("area", groups=OWN_DISTRICTS)]),
    ),
    "one district as a filter and as a group": (
        question([AGE], Filter("area", tuple(AREAS[2:4]))),
        question([AGE, Axis("area", groups=(Group("own", tuple(AREAS[2:4])),))]),
    ),
    "areas, and areas within their regions": (
        question([Axis("area"), SEX, AGE]),
        question([Axis("region"), Axis("area"), AGE, SEX]),
        question([Axis("area"), Axis("region"), Axis("sex"), AGE]),
    ),
    "the areas of a region by its code and by their own": (
        question([Axis("area"), SEX, AGE], NORTH),
        question([AGE, SEX, Axis("area")], NORTHERN),
        question([AGE, SEX, Axis("area"), Axis("region")], NORTHERN),
    ),
    "districts of a region, and of both within one": (
        question([Axis("area", level="district"), AGE], NORTH),
        question([AGE, Axis("area", level="district"), Axis("region")], NORTH),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PHRASINGS)
def test_one_question_has_one_risk_and_one_utility_however_it_is_phrased(
    numbers: BundleNumbers, name: str
) -> None:
    risk = EntropyRisk(weights=(0.1, 0.7, 0.1, 0.1), split=6, parts="true", shared="expected")
    shown = [numbers.views(query).shown for query in PHRASINGS[name]]
    figures = {expected_figures(release, risk) for release in shown}
    assert len(figures) == 1
    assert len({str(release.notes[1]) for release in shown}) == 1


@st.composite
def rephrased(draw: st.DrawFn) -> tuple[TableQuery, TableQuery]:
    """A question asked in two ways: order of axes, groups for levels, areas for regions, full filters."""
    place = draw(st.sampled_from(["area", "district", "region", ""]))
    chosen = draw(st.sampled_from([(), (SEX,), (AGE,), (SEX, AGE)]))
    within = draw(st.sampled_from(["N", "S", ""]))
    if not place and not chosen:
        chosen = (SEX,)
    areas = {"N": AREAS[:4], "S": AREAS[4:], "": AREAS}[within]
    plain, other = list(chosen), list(chosen)
    groups = {
        "region": (Group("y", tuple(AREAS[4:])), Group("x", tuple(AREAS[:4]))),
        "district": OWN_DISTRICTS,
        "area": tuple(Group(f"o{a}", (a,)) for a in reversed(AREAS)),
    }
    if place:
        one = {
            "area": Axis("area"),
            "district": Axis("area", level="district"),
            "region": Axis("region"),
        }
        plain.append(one[place])
        other.append(draw(st.sampled_from([one[place], Axis("area", groups=groups[place])])))
        if place != "region" and draw(st.booleans()):
            other.append(Axis("region"))
    where = [[], []]
    if within:
        where[0].append(Filter("region", (within,)))
        where[1].append(draw(st.sampled_from([Filter("area", tuple(areas)), where[0][0]])))
    if draw(st.booleans()):
        where[1].append(Filter("age", ("0", "1", "2", "3")))
    return question(plain, *where[0]), question(draw(st.permutations(other)), *where[1])


@settings(
    max_examples=examples(40, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(both=rephrased())
def test_any_rephrasing_keeps_risk_utility_and_notes(
    numbers: BundleNumbers, both: tuple[TableQuery, TableQuery]
) -> None:
    risk = EntropyRisk(weights=(0.1, 0.7, 0.1, 0.1), split=6, parts="true", shared="expected")
    shown = [numbers.views(query).shown for query in both]
    assert len({expected_figures(release, risk) for release in shown}) == 1
    assert len({str(release.notes[1]) for release in shown}) == 1
