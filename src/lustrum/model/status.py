"""Cell status letters: the SDMX code list ``CL_CONF_STATUS``."""

from __future__ import annotations

from enum import StrEnum

from lustrum.model.text import Message, say


class CellStatus(StrEnum):
    """Why a cell is shown or not.

    >>> CellStatus("F").shown, CellStatus.SECONDARY.shown
    (True, False)
    """

    FREE = "F"
    SMALL_COUNT = "A"
    DOMINATED_BY_ONE = "O"
    DOMINATED_BY_TWO = "T"
    DOMINATED_BY_ONE_OR_TWO = "G"
    CONCENTRATED = "M"
    SECONDARY = "D"
    NOT_FOR_PUBLICATION = "N"

    @property
    def shown(self) -> bool:
        """Whether the value of such a cell may be seen. Suppressed is never 0."""
        return self is CellStatus.FREE

    @property
    def meaning(self) -> str:
        """The letter in words, for legends."""
        return _MEANING[self]


_MEANING: dict[CellStatus, Message] = {
    CellStatus.FREE: say("free for publication"),
    CellStatus.SMALL_COUNT: say("suppressed: few contributors"),
    CellStatus.DOMINATED_BY_ONE: say("suppressed: dominated by one contributor"),
    CellStatus.DOMINATED_BY_TWO: say("suppressed: dominated by two contributors"),
    CellStatus.DOMINATED_BY_ONE_OR_TWO: say("suppressed: dominated by one or two contributors"),
    CellStatus.CONCENTRATED: say("suppressed: too concentrated"),
    CellStatus.SECONDARY: say("suppressed to protect another cell"),
    CellStatus.NOT_FOR_PUBLICATION: say("not for publication"),
}
