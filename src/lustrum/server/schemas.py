"""The shapes of the API, for its description. What is sent in is checked by the model, in its own sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lustrum.model.decided import AttackerFigures, Reason, SizeFigures, SumFigures, TraceStep, said


class GroupIn(BaseModel):
    """An own group of categories."""

    label: str = Field(description="What the group is called.", examples=["European Union"])
    members: list[str] = Field(description="Codes that it joins.", examples=[["1", "2"]])
    code: str = Field("", description="A code for the group; G1, G2 and so on if left out.")


class AxisIn(BaseModel):
    """A variable of the table, at a level, or some of its codes, or own groups."""

    variable: str = Field(description="Name of the variable.", examples=["age"])
    level: str | None = Field(None, description="Name of a level.", examples=["ten-year"])
    codes: list[str] | None = Field(None, description="Only these codes; all if left out.")
    groups: list[GroupIn] = Field([], description="Own groups, instead of a level or codes.")
    total: bool = Field(False, description="Whether to add a total.")


class PeriodIn(BaseModel):
    """An earlier period: another category of the variable that selects the period."""

    variable: str = Field(description="Name of the variable.", examples=["year"])
    code: str = Field(description="Code of the earlier period.", examples=["2023"])


class StatisticIn(BaseModel):
    """What the cells show."""

    statistic: str = Field(
        description="count, sum, mean, ratio, share, growth, median or quantile.", examples=["mean"]
    )
    measure: str | None = Field(None, description="The measure that it is of; none for counts.")
    per: str | None = Field(None, description="Of a ratio: the measure to divide by.")
    of: str | None = Field(
        None, description="Of a share: 'total', 'row', 'column' or a variable of the table."
    )
    since: str | PeriodIn | None = Field(
        None, description="Of a growth: the earlier measure, or the earlier period."
    )
    variable: str | None = Field(
        None,
        description="Of a median or quantile: the variable whose codes are classes of a number.",
    )
    at: float | None = Field(None, description="Of a quantile: between 0 and 1.", examples=[0.9])
    decimals: int | None = Field(None, description="Decimals of what is worked out, 0 to 6.")


class TableQueryIn(BaseModel):
    """A question for a table."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "dataset": "demo",
                "by": [{"variable": "age", "level": "ten-year"}, "sex"],
                "where": {"region": ["1"]},
                "totals": True,
            }
        }
    )

    dataset: str = Field(description="Name of the dataset.", examples=["demo"])
    by: list[str | AxisIn] = Field(description="Variables of the table, rows first.")
    where: dict[str, list[str] | str] = Field(
        {}, description="Who is counted: for a variable, the codes that count."
    )
    measure: str | None = Field(None, description="A numeric column to sum instead of counting.")
    weight: str | None = Field(None, description="A column of weights.")
    statistics: list[str | StatisticIn] | None = Field(
        None,
        description="What the cells show, each as a text such as mean:turnover or as an object; counts if "
        "left out.",
        examples=[["count", "mean:turnover"]],
    )
    totals: bool = Field(False, description="Whether to add a total to every variable.")


def _always_sent(schema: dict[str, Any]) -> None:
    """Say that every field is there, also one that the record has a default for."""
    schema["required"] = list(schema["properties"])
    for one in schema["properties"].values():
        one.pop("default", None)


SENT = ConfigDict(json_schema_extra=_always_sent)


@dataclass(frozen=True)
class ReasonOut(Reason):
    """Why something is not shown."""

    __pydantic_config__ = SENT


class RiskOut(BaseModel):
    """Risk of disclosure, from 0 to 1, as a reader of the protected table can expect it."""

    before: float | None = Field(description="Of the table without protection.")
    after: float | None = Field(description="Of the protected table.")


@dataclass(frozen=True)
class TraceOut(TraceStep):
    """What one of the five steps decided."""


class BoundsOut(BaseModel):
    """What anybody can know of each true value from its cell and the method, as the table's values run."""

    low: list[float | None] = Field(description="The least; null where nothing is known.")
    high: list[float | None] = Field(description="The most; null where nothing is known.")


@dataclass(frozen=True)
class AttackerOut(AttackerFigures):
    """What one attacker can say about a largest contributor from the release alone."""

    __pydantic_config__ = SENT


@dataclass(frozen=True)
class SizeOut(SizeFigures):
    """How far sums of one size are expected to be off."""


@dataclass(frozen=True)
class SumFiguresOut(SumFigures):
    """Risk and utility of the sums of one measure."""

    __pydantic_config__ = SENT
    attackers: tuple[AttackerOut, ...] = said()
    errors: tuple[SizeOut, ...] = said()


class HintOut(BaseModel):
    """What the rules would say; the risk is measured only when the table is asked for."""

    cells: int = Field(description="Cells of the table, totals not counted.")
    most: int = Field(description="Most cells that are allowed.")
    passes: bool = Field(description="Whether the rules would let the question pass.")
    reasons: list[ReasonOut] = Field(description="What they would say against it.")


class AnswerOut(BaseModel):
    """An answer, a partial answer or a refusal; all three are answers to the question."""

    id: str = Field(description="A name for the question that never changes.")
    decision: Literal["answer", "partial", "refusal"]
    reasons: list[ReasonOut] = Field(description="Why something is not shown; empty if all is.")
    table: dict[str, Any] | None = Field(description="A JSON-stat 2.0 dataset, or null.")
    risk: RiskOut | None = Field(None, description="Included unless other parts are asked for.")
    utility: float | None = Field(
        None,
        description="What a reader can expect the table to be worth, from 0 to 1; included likewise.",
    )
    sums: list[SumFiguresOut] | None = Field(
        None, description="Risk and utility of each measure that is summed; included likewise."
    )
    bounds: BoundsOut | None = Field(
        None, description="Included if asked for; null where the method leaves everything open."
    )
    trace: list[TraceOut] | None = Field(
        None, description="The five steps, as far as they went; included likewise."
    )
    query: dict[str, Any] = Field(description="The question, as it was understood.")
    notes: list[str] = Field(description="What a reader of the table should know.")
    links: dict[str, str] = Field(description="Addresses that ask again: page, self, formats.")


class JobOut(BaseModel):
    """A table that is made in the background."""

    id: str = Field(description="The name of the job.")
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    step: str = Field(description="Which of the five steps it is at.")
    share: float = Field(description="How far it is, from 0 to 1.")
    sentence: str = Field(description="Why it failed, if it did.")
    query: dict[str, Any] = Field(description="The question.")
    links: dict[str, str] = Field(description="Addresses: self, page, and result once it is done.")
    token: str | None = Field(
        None,
        description="Cancels the job; given once, in the answer to those who asked for the table.",
    )


class DatasetSummary(BaseModel):
    """A dataset of the catalogue."""

    name: str = Field(description="The name to ask by.", examples=["demo"])
    title: str
    description: str
    unit: str = Field(description="What one record is.", examples=["person"])
    units: str = Field(description="The same in the plural.", examples=["people"])


class PreparedSummary(BaseModel):
    """A programme of prepared tables."""

    name: str = Field(description="The name to ask by.", examples=["business-2025"])
    title: str
    period: str = Field(description="What the tables are about.", examples=["2025"])
    dataset: str = Field(description="The dataset that the tables were made from.")
    tables: int = Field(description="How many tables there are.")
    digest: str = Field(description="The digest of all public files.")


class Programmes(BaseModel):
    """Every programme of prepared tables."""

    programmes: list[PreparedSummary]


class PreparedTableOut(BaseModel):
    """A prepared table and its files."""

    id: str = Field(examples=["activity-region.turnover"])
    title: str
    label: str = Field(description="The title with what is shown.")
    unit: str
    cells: int
    suppressed: int = Field(description="Cells that are not shown; never written as 0.")
    files: dict[str, str] = Field(description="The address of each format.")


class PreparedOut(BaseModel):
    """A programme with its tables."""

    name: str
    title: str
    period: str
    dataset: str
    digest: str
    notes: list[str]
    tables: list[PreparedTableOut]
    files: dict[str, str] = Field(description="The address of the report and of proofs.")


class CategoryOut(BaseModel):
    """A code with its label."""

    code: str
    label: str


class Datasets(BaseModel):
    """A page of the catalogue."""

    datasets: list[DatasetSummary]
    total: int = Field(description="How many datasets match.")
    next: str | None = Field(description="Address of the next page, or null.")
    opening: list[str] = Field(
        description="Names of datasets that are not ready yet: they are being opened or made."
    )


class Categories(BaseModel):
    """A page of the categories of a variable."""

    categories: list[CategoryOut]
    total: int = Field(description="How many categories match.")
    next: str | None = Field(description="Address of the next page, or null.")


class StillOpenOut(BaseModel):
    """What a number of a finest cell leaves open."""

    shown: int = Field(description="The number shown.", examples=[3])
    low: int = Field(description="The least that it can stand for.", examples=[0])
    high: int = Field(description="The most that it can stand for.", examples=[5])


class TypicalErrorOut(BaseModel):
    """A typical error, rounded up in coarse steps."""

    variables: int = Field(description="How many variables a count is by, filters counted.")
    error: float = Field(description="Of tables at levels of the classifications.")
    with_own_groups: float = Field(description="Of tables with own groups.")


class StatedMarginsOut(BaseModel):
    """Margins of error, which at least 95 % of the counts of every size keep."""

    variables: int = Field(description="How many variables a count is by, filters counted.")
    own_groups: bool = Field(description="Whether tables have own groups.")
    margins: list[int] = Field(
        description="Of numbers below 10, 100, 1,000 and 10,000, and of larger ones."
    )


class MeaningOfRhoOut(BaseModel):
    """What a rho means for one person's record."""

    rho: float
    power: float = Field(description="How often the best test finds it, at 1 % false alarms.")
    epsilon: float = Field(description="With the delta that the promise states.")


class KnownTotalOut(BaseModel):
    """An exact total that the agency publishes elsewhere."""

    variables: list[str]
    labels: list[str]
    total: int


class ProtectionOut(BaseModel):
    """The public report of a protected population; without it, question by question, `report` is null."""

    method: dict[str, Any] = Field(description="The method and its parameters.")
    report: ReportOut | None


class ReportOut(BaseModel):
    """What was measured once, made coarse, and what follows from the method."""

    changed: float = Field(description="A coarse share of finest cells that show another number.")
    open: list[StillOpenOut] = Field(description="What the numbers of finest cells leave open.")
    errors: list[TypicalErrorOut]
    margins: list[StatedMarginsOut] = Field(
        description="Margins of error by size of the number; a table has that of its largest number."
    )
    proof: dict[str, Any] | None = Field(
        description="The promise of a population with a proof: rho, whom it hides from whom, an epsilon with "
        "its delta, and whether these people were in an earlier release without proof."
    )
    meaning: list[MeaningOfRhoOut] = Field(
        description="What this rho, and others beside it, mean for one person's record."
    )
    largest: int | None = Field(
        description="The class of the largest errors of controlled tables, beyond ten times the base."
    )
    known: list[KnownTotalOut] = Field(description="Exact totals that are public elsewhere.")
    digest: str = Field(description="The digest of the public bundle.")


class GroupOut(CategoryOut):
    """A category of a level."""

    members: list[str] | None = Field(
        description="The finest codes that it holds; null where the variable has too many to list: "
        "ask for its categories with `within`."
    )


class LevelOut(BaseModel):
    """A level of a classification."""

    name: str
    label: str
    offered: bool = Field(description="Whether the policy lets it be asked for.")
    size: int = Field(description="How many categories it has.")
    categories: list[GroupOut] | None = Field(
        description="Its categories, in order; null where there are too many to list: ask for them in pages."
    )


class HierarchyOut(BaseModel):
    """Levels that nest, fine to coarse."""

    name: str
    label: str
    levels: list[LevelOut]


class VariableOut(BaseModel):
    """A variable with all that can be asked of it."""

    name: str
    label: str
    description: str
    size: int = Field(description="How many finest codes it has.")
    categories: list[CategoryOut] | None = Field(
        description="The finest codes, in order; null where there are too many to list: ask for them in pages."
    )
    hierarchies: list[HierarchyOut]


class MeasureOut(BaseModel):
    """A measure whose sums can be asked for."""

    name: str
    label: str
    unit: str
    decimals: int
    earlier: str | None = Field(description="The measure that holds the same of a period before.")


class WeightOut(BaseModel):
    """A weight that can be asked for."""

    name: str
    label: str


class PolicyOut(BaseModel):
    """What the agency decided, as far as it matters to a user."""

    title: str
    notes: list[str]
    rules: dict[str, Any] = Field(description="What may be asked at all.")
    risk: dict[str, Any] = Field(description="How risk is measured, and its limit.")
    protection: dict[str, Any] = Field(description="How every table is protected.")


class DatasetOut(DatasetSummary):
    """A dataset with its variables and its policy."""

    variables: list[VariableOut]
    measures: list[MeasureOut] = Field(description="Those with protected sums.")
    weights: list[WeightOut] = Field(description="Those with protected weighted numbers.")
    policy: PolicyOut


class ProblemOut(BaseModel):
    """Problem details (RFC 9457): the one shape of every error."""

    type: str = Field(
        description="What kind of problem it is.", examples=["urn:lustrum:problem:query"]
    )
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong and what would be right, in a sentence.")
    instance: str = Field(description="The address that was asked.")
    request_id: str = Field(
        default="", description="The id of the request, as in the server's log."
    )
    trace_id: str = Field(default="", description="That of the trace, where a traceparent came in.")
