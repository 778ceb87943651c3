"""Germany, France, Spain, Portugal, Italy and the north: separators, encodings, symbols, languages."""

from __future__ import annotations

from corpus.build.attack import Cell, Dim, flat, last, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread, with_rest
from corpus.build.layout import code, const, delimited, flag, long, number, value, wide

LAND = tree("Land", ["Deutschland", "Hessen", "Saarland", "Sachsen", "Thüringen"])
WZ = tree("Wirtschaftszweig", ["Insgesamt", "Bergbau", "Handel", "Verkehr"])
GERMAN = number(".")
DE_BY = ["--total", "Land=Deutschland"]
SIGNS = ". = Zahlenwert unbekannt oder geheim zu halten; - = nichts vorhanden (0)"


def genesis(rows: list[list[str]], encoding: str = "latin-1") -> bytes:
    above = ["Tabelle: 42111-0101", "Betriebe: Bundesländer, Stichtag, Wirtschaftszweig", ""]
    below = ["__________", SIGNS, "(C)opyright Statistisches Amt"]
    return delimited(rows, ";", above=above, below=below, encoding=encoding)


@case(
    "germany",
    "genesis-dots",
    "GENESIS flat file; semicolons, Latin-1, '.' hides, '-' is 0, title and notes",
)
def _() -> Case:
    book = leak(true_table(401, LAND, WZ, low=3, high=90), 1)
    rows = wide(book, 1, ["Land"], ".", GERMAN)
    columns = [a for c in WZ.codes for a in ("--value", c)]
    return Case(
        book,
        "disclosed",
        {".csv": genesis(rows)},
        [*DE_BY, *columns, "--hidden", ".", "--relation", "Insgesamt = Bergbau + Handel + Verkehr"],
        SIGNS,
        wanted="--skip 3, and an end of the table before the notes",
    )


@case(
    "germany",
    "genesis-long",
    "GENESIS 'flat' layout; long, decimal comma, '.' hides, 'Insgesamt' as total",
)
def _() -> Case:
    book = secure(true_table(402, LAND, WZ, low=300, high=90000, counts=False), 2)
    form = number("", ",", 1)
    rows = long(
        book, code("Land", 0), code("Wirtschaftszweig", 1), value(book, "Umsatz", ".", form)
    )
    options = [*DE_BY, "--value", "Umsatz", "--hidden", "."]
    return Case(book, "safe", {".csv": delimited(rows, ";", encoding="latin-1")}, options, SIGNS)


@case(
    "germany",
    "genesis-long-leak",
    "GENESIS-like; long, decimal comma and points for thousands, '.' hides",
)
def _() -> Case:
    book = leak(true_table(403, LAND, WZ, low=3000, high=90000, counts=False), 3)
    form = number(".", ",", 1)
    rows = long(
        book, code("Land", 0), code("Wirtschaftszweig", 1), value(book, "Umsatz", ".", form)
    )
    options = [*DE_BY, "--value", "Umsatz", "--hidden", "."]
    return Case(
        book, "disclosed", {".csv": delimited(rows, ";", encoding="utf-8-sig")}, options, SIGNS
    )


@case("germany", "dash-is-zero", "German table; '-' is 0, so the one '.' of the row follows")
def _() -> Case:
    dim = tree("Kreis", ["Insgesamt", "Aue", "Burg", "Celle", "Düren"])
    book = true_table(404, dim, low=20, high=90)
    book.values["value", "Insgesamt"] -= book.values["value", "Burg"]
    book.values["value", "Burg"] = 0
    book.hidden = [("value", "Celle")]
    rows = long(
        book,
        code("Kreis", 0),
        (
            "Anzahl",
            lambda c: "." if c in book.hidden else str(book.values[c]) if book.values[c] else "-",
        ),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, ";", encoding="latin-1")},
        ["--value", "Anzahl", "--hidden", "."],
        SIGNS,
        wanted="--zero '-'",
        reason="'-' is 0 here and a hidden value elsewhere.",
        readings=[
            ("'-' hides a value too", reread(book, hidden=[("value", "Burg"), ("value", "Celle")]))
        ],
    )


@case(
    "germany",
    "dash-hides",
    "German-like table; '-' is the sign for a hidden value, in two cells of each row",
)
def _() -> Case:
    dim = tree("Kreis", ["Insgesamt", "Aue", "Burg", "Celle", "Düren"])
    book = true_table(405, dim, low=20, high=90)
    book.hidden = [("value", "Burg"), ("value", "Celle")]
    marks = {("value", "Burg"): "-", ("value", "Celle"): "."}
    rows = long(book, code("Kreis", 0), ("Anzahl", lambda c: marks.get(c, str(book.values[c]))))
    joint = sum(book.values[c] for c in book.hidden)
    as_zero = reread(
        book,
        hidden=[("value", "Celle")],
        values={("value", "Burg"): 0, ("value", "Celle"): joint},
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";", encoding="latin-1")},
        ["--value", "Anzahl", "--hidden", ".", "--hidden", "-"],
        "'.' und '-': geheim zu halten.",
        reason="'-' is a hidden value here and 0 elsewhere.",
        readings=[("'-' is 0", as_zero)],
    )


@case(
    "germany",
    "land-as-total",
    "German one-way table; the state heads its districts, one district hidden",
)
def _() -> Case:
    dim = tree("Gebiet", ["Saarland", "Merzig", "Neunkirchen", "Saarlouis"])
    book = true_table(406, dim, low=20, high=90)
    book.hidden = [("value", "Neunkirchen")]
    rows = long(book, code("Gebiet", 0), value(book, "Betriebe", "."))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, ";", encoding="latin-1")},
        ["--value", "Betriebe", "--hidden", ".", "--total", "Saarland"],
        "Saarland: Summe der Kreise.",
        reason="Nothing in the file tells that the first row adds up the others.",
        readings=[
            ("the first row is an area like the others", reread(book, (peer(dim, "Saarland"),)))
        ],
    )


@case(
    "germany",
    "darunter",
    "German table; 'darunter' rows are only some of the parts of the row above",
)
def _() -> Case:
    listed = tree("Zweig", ["Insgesamt", ["Handel", "darunter Kfz", "darunter Möbel"], "Verkehr"])
    dim = Dim("Zweig", {**listed.codes})
    full = dict(dim.codes)
    full["Handel"] = full["Handel"] | {"?x"}
    full["Insgesamt"] = full["Insgesamt"] | {"?x"}
    dim = Dim("Zweig", full)
    book = true_table(407, dim, low=20, high=90)
    book.hidden = [("value", "darunter Kfz")]
    rows = long(book, code("Zweig", 0), value(book, "Betriebe", "."))
    plain = book.values["value", "Handel"] - book.values["value", "darunter Möbel"]
    return Case(
        book,
        "safe",
        {
            ".csv": delimited(rows, ";", encoding="latin-1"),
            ".hierarchy.toml": b'Insgesamt = ["Handel", "Verkehr"]\n',
        },
        ["--value", "Betriebe", "--hidden", ".", "--hierarchy", "Zweig={stem}.hierarchy.toml"],
        "darunter: nicht alle Teile sind genannt.",
        wanted="--of-which 'Handel: darunter Kfz, darunter Möbel' (parts that do not add up)",
        reason="The file does not say in a form for machines that 'darunter' rows are not all parts.",
        readings=[
            (
                "the two rows make up Handel",
                reread(book, (listed,), values={("value", "darunter Kfz"): plain}),
            )
        ],
    )


@case("germany", "indented", "German table; hierarchy by blanks before the names, Latin-1")
def _() -> Case:
    dim = tree(
        "Zweig",
        [
            "Insgesamt",
            ["Industrie", "  Nahrung", "  Textil", "  Metall"],
            ["Handel", "  Kfz", "  Möbel"],
        ],
    )
    book = true_table(408, dim, low=20, high=90)
    book.hidden = [("value", "  Textil")]
    rows = long(book, code("Zweig", 0), value(book, "Betriebe", "."))
    return Case(
        book,
        "disclosed",
        {
            ".csv": delimited(rows, ";", encoding="latin-1"),
            ".hrc": b"Industrie\n@Nahrung\n@Textil\n@Metall\nHandel\n@Kfz\n@M\xc3\xb6bel\n",
        },
        ["--value", "Betriebe", "--hidden", ".", "--hierarchy", "Zweig={stem}.hrc"],
        "Eingerückte Zeilen sind Teile der Zeile darüber.",
    )


# France.

REGION = tree("Région", ["Ensemble", "Bretagne", "Corse", "Normandie", "Occitanie"])
NAF = tree("Activité", ["Ensemble", "Industrie", "Construction", "Commerce"])
SECRET = "s : secret statistique ; nd : non disponible."


@case("france", "secret-s", "INSEE-like; 's' for secret, semicolons, no-break spaces for thousands")
def _() -> Case:
    book = leak(true_table(411, REGION, NAF, low=900, high=9000), 11)
    rows = long(
        book,
        code("Région", 0),
        code("Activité", 1),
        value(book, "Établissements", "s", number("\u00a0")),
    )
    options = ["--value", "Établissements", "--hidden", "s"]
    return Case(book, "disclosed", {".csv": delimited(rows, ";")}, options, SECRET)


@case("france", "secret-s-safe", "INSEE-like; 's' and 'nd', decimal comma, narrow no-break spaces")
def _() -> Case:
    book = secure(true_table(412, REGION, NAF, low=9000, high=90000, counts=False), 12, primaries=3)
    odd = book.hidden[0]
    form = number("\u202f", ",", 1)
    rows = long(
        book,
        code("Région", 0),
        code("Activité", 1),
        (
            "Effectif",
            lambda c: "nd" if c == odd else "s" if c in book.hidden else form(book.values[c]),
        ),
    )
    options = ["--value", "Effectif", "--hidden", "s", "--hidden", "nd"]
    return Case(book, "safe", {".csv": delimited(rows, ";")}, options, SECRET)


@case(
    "france",
    "geo-object-columns",
    "INSEE Melodi-like; GEO, GEO_OBJECT, TIME_PERIOD, CONF_STATUS, OBS_VALUE_NIVEAU",
)
def _() -> Case:
    geo = tree("GEO", ["2021-FRANCE-F", "2021-REG-11", "2021-REG-24", "2021-REG-27"])
    act = tree("ACTIVITY", ["_T", "C", "F", "G"])
    book = secure(true_table(413, geo, act, low=3, high=90), 13)
    rows = long(
        book,
        code("GEO", 0),
        ("GEO_OBJECT", lambda c: "FRANCE" if "FRANCE" in c[1] else "REG"),
        code("ACTIVITY", 1),
        const("TIME_PERIOD", "2021"),
        flag(book, "CONF_STATUS", "C", "F"),
        value(book, "OBS_VALUE_NIVEAU"),
    )
    options = [
        "--by",
        "GEO,ACTIVITY",
        "--value",
        "OBS_VALUE_NIVEAU",
        "--total",
        "GEO=2021-FRANCE-F",
    ]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";", quote="all")},
        options,
        "CONF_STATUS C : confidentiel, F : libre.",
    )


@case(
    "france",
    "france-entiere",
    "INSEE-like; 'France entière' above departments of which not all are listed",
)
def _() -> Case:
    listed = tree("Département", ["France entière", "Ain", "Aisne", "Allier"])
    dim = with_rest(listed, "France entière")
    book = true_table(414, dim, low=100, high=900)
    book.hidden = [("value", "Aisne")]
    rows = long(book, code("Département", 0), value(book, "Nombre", "s"))
    plain = sum(
        book.values["value", c] * w for c, w in (("France entière", 1), ("Ain", -1), ("Allier", -1))
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";")},
        [
            "--value",
            "Nombre",
            "--hidden",
            "s",
            "--total",
            "France entière",
            "--rest",
            "Département",
        ],
        "Extrait : trois départements.",
        reason="An extract looks like a whole list.",
        readings=[
            (
                "the departments listed make up France",
                reread(book, (listed,), values={("value", "Aisne"): plain}),
            )
        ],
    )


@case(
    "france",
    "ensemble-first-column",
    "INSEE-like; 'Ensemble' across, hidden cells in two columns of one row",
)
def _() -> Case:
    sex = tree("sexe", ["Ensemble", "Hommes", "Femmes"])
    book = leak(
        true_table(415, last(REGION, "Ensemble"), last(sex, "Ensemble"), low=3, high=60), 15
    )
    rows = wide(book, 1, ["Région"], "s")
    options = ["--value", "Hommes", "--value", "Femmes", "--value", "Ensemble"]
    options += ["--relation", "Ensemble = Hommes + Femmes", "--hidden", "s"]
    return Case(book, "disclosed", {".csv": delimited(rows, ";")}, options, SECRET)


# Spain, Portugal, Italy.


@case(
    "south",
    "espana-total",
    "INE-like (Spain); tabs, points for thousands, 'Total Nacional', '..' hides",
)
def _() -> Case:
    area = tree("Comunidades", ["Total Nacional", "Aragón", "Cantabria", "La Rioja", "Murcia"])
    kind = tree("Sector", ["Total", "Industria", "Servicios"])
    book = leak(true_table(421, area, kind, low=1100, high=9000), 21)
    rows = long(
        book,
        code("Comunidades", 0),
        code("Sector", 1),
        const("Periodo", "2021"),
        value(book, "Total", "..", number(".")),
    )
    options = [
        "--by",
        "Comunidades,Sector",
        "--value",
        "Total",
        "--total",
        "Comunidades=Total Nacional",
        "--total",
        "Sector=Total",
    ]
    note = "Puntos para los miles. '..': dato protegido por secreto estadístico."
    files = {".csv": delimited(rows, "\t", encoding="utf-8-sig")}
    return Case(book, "disclosed", files, options, note, wanted="--thousands '.'")


@case(
    "south",
    "point-thousands-mixed",
    "INE-like; '1.345' with points for thousands beside '999' without, one hidden",
)
def _() -> Case:
    dim = tree("Provincia", ["Total", "Ávila", "Burgos", "León"])
    book = true_table(422, dim)
    book.values = {
        ("value", "Total"): 2812,
        ("value", "Ávila"): 1345,
        ("value", "Burgos"): 468,
        ("value", "León"): 999,
    }
    book.hidden = [("value", "Burgos")]
    rows = long(book, code("Provincia", 0), value(book, "Empresas", "..", number(".")))
    note = "Puntos para los miles; números enteros."
    files = {".csv": delimited(rows, ";")}
    return Case(book, "disclosed", files, ["--value", "Empresas"], note, wanted="--thousands '.'")


@case("south", "espana-one-way", "INE-like; 'España' as total of regions, one hidden by '*'")
def _() -> Case:
    dim = tree("Comunidad", ["España", "Aragón", "Cantabria", "Murcia"])
    book = true_table(423, dim, low=20, high=900)
    book.hidden = [("value", "Cantabria")]
    rows = long(book, code("Comunidad", 0), value(book, "Empresas", "*"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, ";", encoding="latin-1")},
        ["--value", "Empresas", "--hidden", "*", "--total", "España"],
        "España es la suma de las comunidades listadas.",
        reason="The name of a country is not known to be a total.",
        readings=[("España is one more row", reread(book, (peer(dim, "España"),)))],
    )


@case(
    "south",
    "italia-wide",
    "Istat-like; 'Italia' last, sexes across, 'c' hides, flags in columns of their own",
)
def _() -> Case:
    area = last(tree("Territorio", ["Italia", "Nord", "Centro", "Sud", "Isole"]), "Italia")
    sex = tree("Sesso", ["totale", "maschi", "femmine"])
    book = secure(true_table(424, area, sex, low=5, high=90), 24)
    rows = long(
        book,
        code("Territorio", 0),
        code("Sesso", 1),
        value(book, "Value"),
        flag(book, "Flags", "c"),
    )
    options = [
        "--by",
        "Territorio,Sesso",
        "--value",
        "Value",
        "--total",
        "Territorio=Italia",
        "--total",
        "Sesso=totale",
    ]
    return Case(book, "safe", {".csv": delimited(rows)}, options, "c: dato riservato.")


@case(
    "south",
    "portugal-section-sign",
    "INE-like (Portugal); '...' hides, '§' marks estimates behind figures",
)
def _() -> Case:
    area = tree("Local", ["Portugal", "Norte", "Centro", "Algarve"])
    kind = tree("Sexo", ["HM", "H", "M"])
    book = leak(true_table(425, area, kind, low=5, high=90), 25)
    places = {c: i for i, c in enumerate(book.values)}
    rows = long(
        book,
        code("Local", 0),
        code("Sexo", 1),
        (
            "value",
            lambda c: (
                "..."
                if c in book.hidden
                else str(book.values[c]) + (" §" if places[c] % 5 == 2 else "")
            ),
        ),
    )
    options = ["--total", "Local=Portugal", "--total", "Sexo=HM", "--hidden", "..."]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, ";")},
        options,
        "...: valor confidencial. §: valor com coeficiente de variação elevado.",
        wanted="--flags §",
    )


# The north.


@case("north", "pxweb-wide-years", "PxWeb CSV; title line, years across, '..' hides, '-' is 0")
def _() -> Case:
    area = tree("region", ["Hela riket", "Skåne", "Halland", "Gotland"])
    years = flat("year", "2020", "2021")
    book = leak(
        true_table(431, area, tree("kön", ["totalt", "män", "kvinnor"]), years, low=4, high=90), 31
    )
    rows = wide(book, 2, ["region", "kön"], "..")
    return Case(
        book,
        "disclosed",
        {
            ".csv": delimited(
                rows,
                quote="text",
                above=['"Företag efter region, kön och år"', ""],
                encoding="latin-1",
            )
        },
        [
            "--total",
            "region=Hela riket",
            "--total",
            "kön=totalt",
            "--value",
            "2020",
            "--value",
            "2021",
        ],
        ".. uppgift sekretessbelagd.",
        wanted="--skip 2",
    )


@case("north", "hela-riket", "SCB-like; 'Riket' as total of counties, one hidden by '..'")
def _() -> Case:
    dim = tree("län", ["Riket", "Skåne", "Halland", "Gotland"])
    book = true_table(432, dim, low=20, high=900)
    book.hidden = [("value", "Halland")]
    rows = long(book, code("län", 0), value(book, "antal", ".."))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "antal", "--total", "Riket"],
        "Riket: summan av länen.",
        reason="The file does not say that 'Riket' is a total.",
        readings=[("Riket is one more row", reread(book, (peer(dim, "Riket"),)))],
    )


@case("north", "ssb-colon", "SSB-like; codes with names ('03 Oslo'), ':' hides, '.' cannot exist")
def _() -> Case:
    area = tree(
        "region", ["0 Hele landet", "03 Oslo", "11 Rogaland", "15 Møre og Romsdal", "18 Nordland"]
    )
    kind = tree("næring", ["Alle næringer", "A", "B", "C"])
    book = secure(true_table(433, area, kind, low=4, high=90), 33)
    rows = long(
        book, code("region", 0), code("næring", 1), const("år", "2021"), value(book, "Foretak", ":")
    )
    options = [
        "--by",
        "region,næring",
        "--value",
        "Foretak",
        "--total",
        "region=0 Hele landet",
        "--total",
        "næring=Alle næringer",
    ]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";", quote="text")},
        options,
        ": vises ikke av konfidensialitetshensyn.",
    )


@case(
    "north",
    "finland-dots",
    "StatFin-like; '...' hides, municipalities below regions by a level column",
)
def _() -> Case:
    area = tree(
        "Area",
        [
            "WHOLE COUNTRY",
            ["Uusimaa", "Espoo", "Hanko", "Helsinki"],
            ["Kainuu", "Kajaani", "Sotkamo"],
        ],
    )
    levels = {"WHOLE COUNTRY": "1", "Uusimaa": "2", "Kainuu": "2"}
    book = leak(
        true_table(434, area, tree("Sex", ["Total", "Males", "Females"]), low=4, high=90), 34
    )
    rows = long(
        book,
        code("Area", 0),
        ("Level", lambda c: levels.get(c[1], "3")),
        code("Sex", 1),
        value(book, "value", "..."),
    )
    lines = "Uusimaa\n@Espoo\n@Hanko\n@Helsinki\nKainuu\n@Kajaani\n@Sotkamo\n"
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hrc": lines.encode()},
        [
            "--by",
            "Area,Sex",
            "--total",
            "Area=WHOLE COUNTRY",
            "--hidden",
            "...",
            "--hierarchy",
            "Area={stem}.hrc",
        ],
        "Level 1 country, 2 region, 3 municipality; each row belongs to the last row of the level above.",
    )


@case(
    "north",
    "denmark-rounded-safe",
    "StatBank-like; counts rounded at random to 5, 'Hele landet', none hidden but two",
)
def _() -> Case:
    area = tree("område", ["Hele landet", "Hovedstaden", "Fyn", "Bornholm"])
    kind = tree("køn", ["I alt", "Mænd", "Kvinder"])
    book = secure(true_table(435, area, kind, low=10, high=90), 35)
    book.noise = 4.0
    hidden = set(book.hidden)
    book.values = {
        c: v if c in hidden else v - v % 5 + (5 if v % 5 and i % 2 else 0)
        for i, (c, v) in enumerate(book.values.items())
    }
    rows = long(book, code("område", 0), code("køn", 1), value(book, "value", ".."))
    options = ["--rounded", "5", "--total", "område=Hele landet", "--total", "køn=I alt"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";")},
        options,
        "Tallene er tilfældigt afrundet til 5.",
    )


@case(
    "north", "iceland-blank", "Iceland-like; blank fields: does a blank hide, or is there nothing?"
)
def _() -> Case:
    dim = tree("svæði", ["Alls", "Vestfirðir", "Austurland", "Suðurland"])
    book = true_table(436, dim, low=20, high=90)
    book.values["value", "Alls"] -= book.values["value", "Vestfirðir"]
    book.values["value", "Vestfirðir"] = 0
    book.hidden = [("value", "Austurland")]
    marks: dict[Cell, str] = {("value", "Vestfirðir"): "", ("value", "Austurland"): "x"}
    rows = long(book, code("svæði", 0), ("fjöldi", lambda c: marks.get(c, str(book.values[c]))))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, ";")},
        ["--value", "fjöldi", "--total", "Alls"],
        "x: leynt. Autt svæði: núll.",
        wanted="--zero ''",
        reason="A blank may be 0 or a hidden value.",
        readings=[
            (
                "the blank hides a value",
                reread(book, hidden=[("value", "Vestfirðir"), ("value", "Austurland")]),
            )
        ],
    )


@case(
    "north", "norway-both-blank", "Norway-like; two blanks in a row that both hide, total 'I alt'"
)
def _() -> Case:
    dim = tree("fylke", ["I alt", "Troms", "Agder", "Viken"])
    book = true_table(437, dim, low=20, high=90)
    book.hidden = [("value", "Troms"), ("value", "Agder")]
    rows = long(book, code("fylke", 0), value(book, "antall"))
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";")},
        ["--value", "antall", "--total", "I alt"],
        "Blankt: skjult.",
    )
