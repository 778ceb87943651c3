"""Broken and odd files are judged, or refused in one sentence that names the file; never a traceback."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit.certificate import certify, verify_file
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model.errors import LustrumError
from lustrum.readers.container import clean_file
from lustrum.readers.judge import judge, open_file
from lustrum.readers.layout import read_layout

CORPUS = Path(__file__).parents[1] / "corpus" / "files"
SMALL = 9_000
"""Files of more bytes are left out, so that many are tried."""
ODD = (
    b"", b"\0", b'"', b"'", b"\n", b"\r", b",", b";", b"\t", b"-", b"-1", b"[", b"{", b"<x/>", b"\xff",
    b"NaN", b"Infinity", b"null", b"true", b"1e400", b"1e999999999", b"1e-999999999", b"9" * 40,
    b"1_000", "٣".encode(), "²".encode(), "…".encode(),
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 1.5, 1e300, float("nan"), float("inf"), "", "x", [], {}, [1], {"a": 1}, 10**30, 10**9,
    "1e999999", "\ud800",
)  # fmt: skip


def files(ending: str) -> list[Path]:
    return sorted(p for p in CORPUS.glob(f"*/*{ending}") if p.stat().st_size < SMALL)


def spoiled(content: bytes, rng: random.Random) -> bytes:
    """A file that is cut, or has a turned bit, something odd in place of a part, or a part twice."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((0, 1, 1, 3, 10, len(out))))
        match rng.randrange(4):
            case 0:
                del out[at:]
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at:end] = rng.choice(ODD)
            case _:
                out[at:at] = out[at:end]
    return bytes(out)


def spoiled_part(content: bytes, rng: random.Random) -> bytes:
    """A workbook one part of which is spoiled."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as parts, zipfile.ZipFile(out, "w") as written:
        chosen = rng.choice(parts.namelist())
        for name in parts.namelist():
            part = parts.read(name)
            written.writestr(name, spoiled(part, rng) if name == chosen else part)
    return out.getvalue()


def spoiled_tree(content: bytes, rng: random.Random) -> bytes:
    """JSON with something odd in place of some of its values."""
    tree = json.loads(content)
    spots: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        inside = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in inside:
            spots.append((node, key))
            if isinstance(child, dict | list):
                walk(child)

    walk(tree)
    for node, key in rng.sample(spots, min(len(spots), rng.choice((1, 1, 2)))):
        node[key] = rng.choice(VALUES)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def one_sentence(error: LustrumError, path: Path) -> None:
    text = str(error)
    assert path.name in text, text
    assert "\n" not in text, text
    assert text.endswith("."), text
    assert len(text) < 600, text


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".json", ".parquet"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40, 2000), deadline=None)
def test_spoiled_files_are_audited_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, ending: str, seed: int
) -> None:
    rng = random.Random(seed)
    source = rng.choice(files(ending))
    spoil = spoiled
    if rng.random() < 0.7:
        spoil = {".xlsx": spoiled_part, ".json": spoiled_tree}.get(ending, spoiled)
    path = tmp_path_factory.mktemp("b") / f"t{ending}"
    path.write_bytes(spoil(source.read_bytes(), rng))
    layout = read_layout(source.with_suffix(".layout.toml")).model_copy(update={"digest": ""})
    for given_layout in (None, layout):
        try:
            assert judge([open_file(path, given_layout)]).report.exit in (0, 3, 4)
        except LustrumError as error:
            one_sentence(error, path)
    if ending == ".xlsx":
        try:
            clean_file(path, path.with_name("clean.xlsx"))
            open_file(path.with_name("clean.xlsx"))
        except LustrumError as error:
            one_sentence(error, path.parent / ("clean" if "clean" in str(error) else path.name))


@given(
    content=st.binary(max_size=200),
    ending=st.sampled_from([".csv", ".csv.gz", ".xlsx", ".json", ".parquet"]),
)
@settings(max_examples=examples(100, 3000), deadline=None)
def test_any_bytes_are_audited_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str
) -> None:
    path = tmp_path_factory.mktemp("b") / f"t{ending}"
    path.write_bytes(content)
    try:
        assert judge([open_file(path)]).report.exit in (3, 4)
    except LustrumError as error:
        one_sentence(error, path)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(100, 3000), deadline=None)
def test_spoiled_certificates_hold_or_are_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("b") / "proof.json"
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7).bound("y", high=5)
    certify(known, [0, 1]).write(path)
    before = path.read_bytes()
    path.write_bytes((spoiled_tree if rng.random() < 0.7 else spoiled)(before, rng))
    report = verify_file(path)
    assert report.holds or report.reason
    assert "\n" not in report.reason
