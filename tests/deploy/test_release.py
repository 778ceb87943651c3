"""The same commit gives the same wheel, byte by byte, and its bill names every package in it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from waiting import until

ROOT = Path(__file__).parents[2]


def sbom() -> Any:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "scripts" / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(source: Path, where: Path, umask: int) -> bytes:
    """The wheel of a copy of the source that has other times and modes."""
    copy = where / "checkout"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, copy / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / "src", copy / "src", ignore=ignored, copy_function=shutil.copyfile)
    before = os.umask(umask)
    try:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(where / "dist")],
            cwd=copy,
            env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
            check=True,
            capture_output=True,
        )
    finally:
        os.umask(before)
    (wheel,) = (where / "dist").glob("*.whl")
    return wheel.read_bytes()


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    first = built(ROOT, tmp_path / "one", 0o022)
    assert first == built(ROOT, tmp_path / "two", 0o077)
    (wheel,) = (tmp_path / "one" / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"lustrum/server/locales/de.po", "lustrum/server/locales/fr.po"} <= set(names)
    assert "lustrum/demo/files/demo-policy.toml" in names
    bundles = {name for name in names if name.startswith("lustrum/demo/bundles/")}
    assert len({name.split("/")[3] for name in bundles}) == 4
    assert not [name for name in names if name.endswith((".secret", ".pyc"))]


def test_the_bill_names_every_pinned_package_with_its_digests() -> None:
    text = (ROOT / "requirements" / "run.txt").read_text()
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py")]
    printed = [
        subprocess.run(command, capture_output=True, env=environment, check=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1]
    found = json.loads(printed[0])
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", found["serialNumber"])
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    pinned = set(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text, flags=re.M))
    assert {(c["name"], c["version"]) for c in found["components"]} == pinned
    assert sum(len(c["hashes"]) for c in found["components"]) == text.count("--hash=sha256:")
    refs = {c["bom-ref"] for c in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    for entry in found["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= refs
    direct = next(d for d in found["dependencies"] if "lustrum@" in d["ref"])["dependsOn"]
    assert any(ref.startswith("pkg:pypi/numpy@") for ref in direct)


def test_a_changed_pin_gives_another_bill() -> None:
    module = sbom()
    moment = module.datetime.fromtimestamp(0, module.UTC)
    one = module.bill("numpy==2.0 \\\n    --hash=sha256:aa\n    # via lustrum\n", "1", moment)
    two = module.bill("numpy==2.1 \\\n    --hash=sha256:aa\n    # via lustrum\n", "1", moment)
    assert one["serialNumber"] != two["serialNumber"]
    assert one["components"][0]["purl"] == "pkg:pypi/numpy@2.0"


@pytest.mark.deep
def test_the_wheel_serves_the_demo_from_an_empty_environment(tmp_path: Path) -> None:
    """What the container's file does, in a folder: pinned packages, the wheel, loops, then a server."""
    built(ROOT, tmp_path / "built", 0o022)
    (wheel,) = (tmp_path / "built" / "dist").glob("*.whl")
    python = tmp_path / "venv" / "bin" / "python"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path / "loops"), "NUMBA_CPU_NAME": "generic"}
    pip = [str(python), "-m", "pip", "install", "-q", "--no-deps"]
    for command in (
        [sys.executable, "-m", "venv", str(tmp_path / "venv")],
        [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / "requirements" / "run.txt")],
        [*pip, "--no-index", str(wheel)],
        [str(python), "-m", "lustrum.cli.warm"],
    ):  # fmt: skip
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    found = [str(python), "-c", "import lustrum; print(lustrum.__file__)"]
    place = subprocess.run(found, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert place.stdout.startswith(str(tmp_path / "venv"))
    serve = [str(python), "-m", "lustrum", "serve", "--demo", "--data", "data", "--port", "0"]
    with subprocess.Popen(
        serve, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            address = line.rsplit(" at ", 1)[1].strip()
            ready = f"{address}/health/ready"
            until(lambda: _status(ready) == 200)
            for question in (
                "demo/tables?by=sex",
                "businesses/tables?by=size",
                "survey/tables?by=sex",
            ):
                name, rest = question.split("/")
                with urlopen(f"{address}/api/v1/{rest}&dataset={name}&format=csv") as answer:
                    assert len(answer.read().splitlines()) > 2
        finally:
            server.terminate()
            server.wait(60)


def _status(address: str) -> int:
    try:
        with urlopen(address, timeout=10) as answer:
            return int(answer.status)
    except (HTTPError, URLError):
        return 0
