"""The invented country of the demo: its districts and the places in them.

Written by hand, once. The order of the names is the order of the area codes, so a name may be
changed but never moved.
"""

from __future__ import annotations

from dataclasses import dataclass

REGIONS = (("1", "Upper Merrow"), ("2", "Lower Merrow"))


@dataclass(frozen=True)
class DistrictNames:
    """A district, its share of the people of its region, and its places by kind.

    Within a kind, places are listed from large to small.
    """

    region: str
    name: str
    share: float
    city: tuple[str, ...]
    town: tuple[str, ...]
    country: tuple[str, ...]
    coast: tuple[str, ...] = ()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


DISTRICTS = (
    DistrictNames(
        "1",
        "Merrow City",
        0.34,
        _names("Merrow Old Town, Castle Hill, Millgate, Eastquay, Lanternfield, Northgardens"),
        _names("Hallowbridge, Wexley, Dunmere, Orchard Cross"),
        _names("Little Wexley, Foxholt"),
    ),
    DistrictNames(
        "1",
        "Ardenshire",
        0.15,
        _names("Ardenham, Kingsford"),
        _names("Brackwell, Coldharbour, Tarrant Bridge, Ashcombe"),
        _names("Upper Arden, Nether Arden, Hazelwick, Stonecroft, Thornby, Wickenden"),
    ),
    DistrictNames(
        "1",
        "Severin Valley",
        0.13,
        _names("Severin"),
        _names("Marlowe, Pendleford, Glassworks, Silverbeck"),
        _names("Larkhill, Oxwater, Ferndale, Quarry End, Rushmoor, Saint Osric, Greyling"),
    ),
    DistrictNames(
        "1",
        "Lakes",
        0.09,
        _names(""),
        _names("Westmere, Ullingham, Braythwaite, Kelder"),
        _names("Tarnside, Heron Isle, Blea Moss, Rowan Head, Skelby, Drygill, Mirkwater"),
    ),
    DistrictNames(
        "1",
        "Highmoor",
        0.06,
        _names(""),
        _names("Moorgate, Tolland, Castle Brandon"),
        _names(
            "High Tolland, Low Tolland, Wether Law, Cairnfold, Heatherslack, Peat Lane, "
            "Windyhaugh, Ravenscar Top, Sheepwash"
        ),
    ),
    DistrictNames(
        "1",
        "Ironbridge Hundred",
        0.12,
        _names("Ironbury"),
        _names("Furnace Green, Hammerton, Coalford, Nailstone, Tinhay"),
        _names("Slag Hill, Bellows End, Forge Row, Pitsford, Hobley"),
    ),
    DistrictNames(
        "1",
        "Chalk Downs",
        0.07,
        _names(""),
        _names("Whitcombe, Saltdown Cross, Flintham"),
        _names("Chalkney, Upper Whitcombe, Barrow Down, Beacon Hill, Lambourne, Yewtree, Sarsen"),
    ),
    DistrictNames(
        "1",
        "Border Marches",
        0.04,
        _names(""),
        _names("Marchmont, Keswell"),
        _names(
            "Wardlaw, Debatable Land, Pele Tower, Gallowrig, Nether Rig, Hartside, "
            "Otterburn Low, Thieves Gap"
        ),
    ),
    DistrictNames(
        "2",
        "Port Calder",
        0.31,
        _names("Calder Docks, Calder Centre, Saint Brannoc, Riverside, University Quarter"),
        _names("Harbourne, Ropewalk, Calder Heath, Netherby"),
        _names("Saltmarsh, Gullwick"),
        _names(
            "Calder Sands",
        ),
    ),
    DistrictNames(
        "2",
        "Vale of Lunt",
        0.20,
        _names("Luntborough"),
        _names("Appleford, Cidermill, Perry Green, Hopley, Damson Hill"),
        _names("Orchardleigh, Medlar, Quincewood, Bramley End, Russet, Pippin Cross"),
    ),
    DistrictNames(
        "2",
        "Amber Coast",
        0.16,
        _names(""),
        _names("Amberley, Oysterhaven"),
        _names("Reedham, Marram, Sandling"),
        _names("Amber Bay, Whelk Sands, Grand Parade, Pebble Cove, Curlew Point, Lightstone"),
    ),
    DistrictNames(
        "2",
        "Fenland",
        0.13,
        _names(""),
        _names("Elyworth, Sluice Gate, Drayton Fen, Marshbank"),
        _names("Eel Pie, Dyke End, Long Drove, Wicken Lode, Bittern, Peatling, Black Fen"),
    ),
    DistrictNames(
        "2",
        "Weald and Forest",
        0.12,
        _names(""),
        _names("Charcoal Hill, Verderers Cross, Oakhanger"),
        _names(
            "Hornbeam, Pannage, Deerleap, Burley Wood, Coppice Row, Ashdown Gate, "
            "Beechen Cliff, Hollybush"
        ),
    ),
    DistrictNames(
        "2",
        "The Islands",
        0.08,
        _names(""),
        _names("Saint Elmo, Fishertown"),
        _names("Inner Skerry, Outer Skerry, Puffin Isle, Seal Sound, Kelpness"),
        _names("Regatta Bay, Lobster Pot, Shellness, Gannet Head"),
    ),
)
