"""Arguments that the type checker must find misspelt: it complains of a line here that it lets pass."""

import lustrum as lu
from lustrum.sensitivity import Threshold


def misspelt(table: lu.Table, known: lu.audit.Knowledge) -> None:
    lu.suppress({}, ["a"], Threshold(), toatls=True)  # type: ignore[call-arg]
    lu.Table.from_frame({}, ["a"], toatls=True)  # type: ignore[call-arg]
    lu.protect.CellKey(ptabel="shlomo-2015")  # type: ignore[call-arg]
    lu.protect.RandomRounding(bas=3)  # type: ignore[call-arg]
    lu.risk.R1(lvl=1)  # type: ignore[call-arg]
    Threshold(minmum=3)  # type: ignore[call-arg]
    lu.rumap(table, replicatons=3)  # type: ignore[call-arg]
    lu.rumap(table).chart(limt=0.2)  # type: ignore[call-arg]
    lu.rumap(table).save("map.svg", limt=0.2)  # type: ignore[call-arg]
    lu.audit.bounds(known, methd=1)  # type: ignore[call-arg]
