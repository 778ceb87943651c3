"""The page on Spark as it is written: each command in a process of its own, over a catalogue that lasts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import services
from lustrum.cli.protect import protect_dataset
from lustrum.model import Dataset
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.keys import dataset_key
from tabulate.remote.folders import QUIET, in_one_process, toml
from tabulate.remote.tables import find_world
from tabulate.worlds import SECRET

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "your-data-in-spark.md"
SAVE = """
import tomllib
from lustrum.tabulate.remote.spark import spark_session
words = tomllib.load(open("spark.toml", "rb"))
session = spark_session(words["master"], words["settings"])
session.sql("CREATE DATABASE census")
session.read.parquet("people.parquet").write.saveAsTable("census.people")
"""


@pytest.mark.parametrize(
    ("private", "together"),
    [(True, True), *(pytest.param(p, False, marks=pytest.mark.deep) for p in (True, False))],
)
def test_the_commands_of_the_page_protect_a_table_that_another_process_saved(
    tmp_path: Path, private: bool, together: bool
) -> None:
    """In `make test` one process saves and runs all commands, so that Java starts once."""
    if services.ensure_services.java() is None:
        pytest.skip("Java is missing; run scripts/ensure_services.py")
    world, page = find_world(), PAGE.read_text()
    connection, commands = re.findall(r"```(?:toml|sh)\n(.*?)```", page, re.DOTALL)
    derby = re.search(r'`("spark.driver.extraJavaOptions".*?)`', page)
    assert derby is not None
    # Each process lives for seconds: what Java's best compiler costs would not come back.
    own = derby[1].rstrip('"') + f' {services.SHORT_LIVED}"'
    text = re.sub('"spark.hadoop.hive.metastore.uris".*', lambda _: own, connection)
    master = "local[1]" if private else "local-cluster[1, 1, 512]"
    for old, new in (("spark://spark.example.org:7077", master), ("/srv", str(tmp_path))):
        assert old in text
        text = text.replace(old, new)
    text += '"spark.driver.host" = "127.0.0.1"\n"spark.driver.bindAddress" = "127.0.0.1"\n'
    text += '"spark.sql.shuffle.partitions" = "1"\n"spark.executor.memory" = "512m"\n'
    text += '"spark.sql.codegen.wholeStage" = "false"\n"spark.sql.adaptive.enabled" = "false"\n'
    # Workers find Lustrum by the name of their Python, as the page says, and nowhere else.
    text += f'"spark.pyspark.python" = "{sys.executable}"\n'
    (tmp_path / "spark.toml").write_text(text)
    # Blocks are protected by Spark's workers, where these may see counts, and otherwise here.
    divided = min((len(codes), name) for name, codes in world.codes.items() if len(codes) > 1)[1]
    words = world.description["dataset"] | {"blocks": divided}
    description = toml(world.description | {"dataset": words}).replace('"world"', '"people"')
    (tmp_path / "people.toml").write_text(description)
    pq.write_table(world.arrow(), tmp_path / "people.parquet")
    data = tmp_path / "lustrum-data"
    SECRET.write(data / "record-keys.secret")
    lustrum = str(Path(sys.executable).parent / "lustrum")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": "/usr/bin:/bin"}
    said = ""
    lines = [line for line in commands.split("\n") if line]
    programs = [[sys.executable, "-c", SAVE], *([lustrum, *line.split()[1:]] for line in lines)]
    for words in [in_one_process(lines, before=SAVE)] if together else programs:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said += done.stdout + done.stderr
    assert "No module named 'lustrum'" not in said
    files = list((tmp_path / "warehouse" / "census.db" / "people_keys").rglob("*"))
    assert files
    assert not [file for file in files if file.stat().st_mode & 0o077]
    kept = b"".join(
        file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file() and file.name != "record-keys.secret"
    )
    derived = SECRET.derive("lustrum protected population people")
    for secret in (SECRET.value, dataset_key(SECRET, "people"), derived):
        assert secret not in kept
        assert secret.hex() not in said.lower()
    again = tmp_path / "copied"
    people = Dataset.from_mapping(tomllib.loads(description))
    ingest(FrameSource(world.arrow()), people, Store(again), secret=SECRET)
    (again / "policies").mkdir()
    (again / "policies" / "people.toml").write_bytes(
        (data / "policies" / "people.toml").read_bytes()
    )
    protect_dataset("people", again, QUIET)
    for file in (again / "bundles" / "people").iterdir():
        assert file.read_bytes() == (data / "bundles" / "people" / file.name).read_bytes()
