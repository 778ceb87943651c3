"""The page on PostgreSQL as it is written: its commands in one process, and no secret anywhere."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import services
from lustrum.cli.protect import protect_dataset
from lustrum.model import Dataset
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.keys import dataset_key
from tabulate.remote.folders import QUIET, in_one_process, toml
from tabulate.remote.tables import find_world, in_postgres
from tabulate.worlds import SECRET

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "your-data-in-postgresql.md"


def test_the_commands_of_the_page_protect_records_that_stay_in_the_database(
    tmp_path: Path, postgres: services.Postgres
) -> None:
    world, page = find_world(), PAGE.read_text()
    in_postgres(world, postgres, typed=False, keys=False)
    rights, python = (re.search(f"```{k}\n(.*?)```", page, re.DOTALL) for k in ("sql", "python"))
    assert rights is not None
    assert python is not None
    # The role is there already, with a password that stands in no file of the run.
    postgres.execute(*(line for line in rights[1].splitlines() if line.startswith("GRANT")))
    connection = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    for name, role in (("reader", services.READER), ("owner", services.OWNER)):
        file = tmp_path.with_name(f"{tmp_path.name}-{name}")
        file.write_text(postgres.passwords[role])
        file.chmod(0o600)
        text = connection
        for old, new in (
            ("db.example.org", "127.0.0.1"),
            ("5432", str(postgres.port)),
            ('user = "lustrum"', f'user = "{role}"'),
            ("/run/secrets/lustrum-postgres", str(file)),
        ):
            assert old in text
            text = text.replace(old, new)
        (tmp_path / f"{name}.toml").write_text(text)
    described = toml(world.description).replace('"world"', '"people"')
    (tmp_path / "people.toml").write_text(described)
    data = tmp_path / "lustrum-data"
    SECRET.write(data / "record-keys.secret")
    before = postgres.log.stat().st_size
    commands = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).splitlines()
    assert [line.split()[1] for line in commands].count("keys") == 2
    done = subprocess.run(
        in_one_process(commands, after=python[1]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    said = done.stdout + done.stderr
    logged = postgres.log.read_bytes()[before:]
    files = [f for f in tmp_path.rglob("*") if f.is_file() and f.name != "record-keys.secret"]
    kept = b"".join(file.read_bytes() for file in files) + said.encode() + logged
    derived = SECRET.derive("lustrum protected population people")
    for secret in (SECRET.value, dataset_key(SECRET, "people"), derived):
        assert secret not in kept
        assert secret.hex().encode() not in kept.lower()
    for password in postgres.passwords.values():
        assert password.encode() not in kept
    again = tmp_path / "copied"
    people = Dataset.from_mapping(tomllib.loads(described))
    ingest(FrameSource(world.arrow()), people, Store(again), secret=SECRET)
    (again / "policies").mkdir()
    (again / "policies" / "people.toml").write_bytes(
        (data / "policies" / "people.toml").read_bytes()
    )
    protect_dataset("people", again, QUIET)
    for file in (again / "bundles" / "people").iterdir():
        assert file.read_bytes() == (data / "bundles" / "people" / file.name).read_bytes()
