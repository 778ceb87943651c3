"""A description and a connection are enough: keys once, checks by aggregates, the same protected population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import services
from lustrum.cli.protect import protect_dataset
from lustrum.cli.work import make_record_keys
from lustrum.model import (
    Dataset,
    DatasetError,
    DescriptionError,
    IngestError,
    InputError,
    TableQuery,
)
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.policy import read_policy
from lustrum.policy.presets import preset
from lustrum.policy.read import sealed
from lustrum.tabulate import FrameEngine, Store
from lustrum.tabulate.remote import (
    BACKENDS,
    ConnectedEngine,
    Connection,
    IbisEngine,
    open_connected,
    read_connection,
)
from lustrum.tabulate.remote.spark import SETTINGS
from lustrum.tabulate.store.renewal import rotate
from tabulate.remote.folders import QUIET, bundle, connected, copied
from tabulate.remote.tables import find_world, in_duckdb, in_postgres, in_sqlite, key_table, reading
from tabulate.worlds import SECRET, World

QUESTION = TableQuery.from_mapping({"dataset": "world", "by": [{"variable": "v0"}]})


@pytest.fixture(scope="module")
def world() -> World:
    return find_world()


def counts_only(policy: Path, world: World) -> None:
    """A policy without sums and weights, for which no record is read."""
    plain = replace(world.dataset, measures=(), weights=())
    policy.write_bytes(sealed(preset("strict", plain).encode(), str(policy)))


@pytest.fixture
def in_database(postgres: services.Postgres, world: World, tmp_path: Path) -> Callable[[], Path]:
    def make() -> Path:
        in_postgres(world, postgres, True, keys=False)
        return connected(world, tmp_path, reading(postgres, services.OWNER), reading(postgres))

    return make


def test_a_bundle_from_postgres_is_byte_for_byte_that_of_a_copy_and_its_log_tells_nothing(
    in_database: Callable[[], Path], postgres: services.Postgres, world: World, tmp_path: Path
) -> None:
    begin = postgres.log.stat().st_size
    data = in_database()
    counts_only(data / "policies" / "world.toml", world)
    ours = bundle(data)
    assert ours == bundle(copied(world, tmp_path, data / "policies" / "world.toml"))
    log = postgres.log.read_text()[begin:]
    assert SECRET.value.hex() not in log.lower()
    for row in key_table(world).to_pylist():
        assert str(row["lustrum_key_high"]) not in log
        assert str(row["lustrum_key_low"]) not in log
    read = [
        line
        for line in log.splitlines()
        if line.startswith(f"{services.READER}|") and '"agency"."people"' in line
    ]
    assert read
    for line in read:
        select = line.partition("SELECT")[2]
        assert "GROUP BY" in select or "COUNT(" in select or "DISTINCT" in select, line
        assert "COPY" not in line


def test_a_bundle_from_duckdb_is_byte_for_byte_that_of_a_copy(world: World, tmp_path: Path) -> None:
    where = in_duckdb(world, tmp_path / "world.duckdb", True)
    new = Connection("duckdb", "people", "made_keys", database=where.database)
    data = connected(world, tmp_path, new, new)
    assert bundle(data) == bundle(copied(world, tmp_path, data / "policies" / "world.toml"))


def test_only_the_role_of_lustrum_and_the_owner_may_read_the_keys(
    in_database: Callable[[], Path], postgres: services.Postgres
) -> None:
    in_database()
    with postgres.connect() as connection:
        rights = connection.execute(
            "SELECT grantee FROM information_schema.role_table_grants WHERE table_name = 'keys'"
        ).fetchall()
    assert {row[0] for row in rights} == {services.OWNER, services.READER}


def test_no_credential_is_kept_or_told(
    in_database: Callable[[], Path],
    postgres: services.Postgres,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = in_database()
    kept = b"".join(p.read_bytes() for p in data.rglob("*") if p.is_file())
    for word in postgres.passwords.values():
        assert word.encode() not in kept
    monkeypatch.setenv("LUSTRUM_TEST_LUSTRUM", "a-wrong-password")
    with pytest.raises(DatasetError, match="did not accept user and password") as caught:
        IbisEngine(reading(postgres), world.dataset)
    assert "a-wrong-password" not in str(caught.value)
    assert "password=" not in repr(caught.value)
    monkeypatch.delenv("LUSTRUM_TEST_LUSTRUM")
    lost = replace(reading(postgres), database="nowhere", password_env="LUSTRUM_TEST_AGENCY")
    with pytest.raises(DatasetError, match="has no database of this name"):
        IbisEngine(replace(lost, user=services.OWNER), world.dataset)
    with pytest.raises(Exception, match="names as 'password_env' is not set"):
        IbisEngine(reading(postgres), world.dataset)


def test_a_lost_connection_is_made_again_and_a_stopped_server_is_one_sentence(
    postgres: services.Postgres, world: World
) -> None:
    engine = IbisEngine(in_postgres(world, postgres, True), world.dataset)
    first = engine.tabulate(QUESTION).values.tolist()
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{services.READER}'"
    postgres.execute(cut)
    assert engine.tabulate(QUESTION).values.tolist() == first
    postgres.stop()
    try:
        with pytest.raises(DatasetError, match="cannot be reached") as caught:
            engine.tabulate(QUESTION)
        assert postgres.passwords[services.READER] not in str(caught.value)
        assert caught.value.__cause__ is None
    finally:
        postgres.start()
    assert engine.tabulate(QUESTION).values.tolist() == first
    engine.database.close()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_keys_from_a_file_give_the_bundle_of_a_copy(
    world: World, tmp_path: Path, kind: str
) -> None:
    there = in_sqlite(world, tmp_path / "world.sqlite", True, keys=False)
    made = tmp_path / f"keys.{kind}"
    data = connected(world, tmp_path, there, replace(there, keys="keys"), made)
    assert made.stat().st_mode & 0o777 == 0o600
    policy = data / "policies" / "world.toml"
    same = copied(world, tmp_path, policy)
    assert bundle(data) == bundle(same)
    with pytest.raises(InputError, match="is there already"):
        make_record_keys(tmp_path / "world.toml", tmp_path / "owner.toml", None, made, data, QUIET)
    with pytest.raises(DescriptionError, match="writes no keys into SQLite"):
        make_record_keys(tmp_path / "world.toml", tmp_path / "reader.toml", None, None, data, QUIET)


@pytest.mark.parametrize(
    ("kind", "as_text"), [("uuid", True), ("decimal(18,0)", False), ("varchar", True)]
)
def test_identifiers_of_any_simple_type_have_the_keys_of_a_copy(
    world: World, tmp_path: Path, kind: str, as_text: bool
) -> None:
    made_of = "printf('%08x-0000-4000-8000-000000000000', id)" if kind == "uuid" else "id"
    path = tmp_path / "world.duckdb"
    there = in_duckdb(world, path, True)
    with duckdb.connect(str(path)) as database:
        database.execute("DROP TABLE keys")
        database.execute(
            f"CREATE OR REPLACE TABLE people AS SELECT * REPLACE (({made_of})::{kind} AS id) FROM people"
        )
        ids = database.execute(f"SELECT id::{'varchar' if as_text else 'bigint'} AS id FROM people")
        column = pa.array([row[0] for row in ids.fetchall()])
    data = connected(world, tmp_path, there, there)
    records = world.arrow()
    place = records.schema.get_field_index("id")
    ours = FrameEngine(records.set_column(place, "id", column), world.dataset, SECRET)
    theirs = open_connected(Store(data), "world")
    table = ours.cube(QUESTION).keys
    assert table is not None
    assert np.array_equal(table, theirs.cube(QUESTION).keys)


def test_a_table_that_changed_since_it_was_checked_is_not_protected(
    in_database: Callable[[], Path], postgres: services.Postgres
) -> None:
    data = in_database()
    postgres.execute("DELETE FROM agency.people WHERE id = (SELECT min(id) FROM agency.people)")
    with pytest.raises(DatasetError, match="changed since it was checked"):
        protect_dataset("world", data, QUIET)


def test_sums_and_weights_from_postgres_are_byte_for_byte_those_of_a_copy_in_another_order(
    in_database: Callable[[], Path], world: World, tmp_path: Path
) -> None:
    data = in_database()
    policy = data / "policies" / "world.toml"
    decided = read_policy(policy)
    assert decided.magnitudes is not None
    assert decided.weights is not None
    turned = replace(world, records=world.records[::-1])
    ours = bundle(data)
    assert ours == bundle(copied(turned, tmp_path, policy))


def test_records_that_change_while_they_are_read_are_not_protected(
    in_database: Callable[[], Path],
    postgres: services.Postgres,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = in_database()
    other = next(code for code in world.codes["v2"] if code != world.records[0]["v2"])
    read = ConnectedEngine.in_memory

    def late(engine: ConnectedEngine) -> KernelEngine:
        number = world.records[0]["id"]
        postgres.execute(f"UPDATE agency.people SET v2 = '{other}' WHERE id = {number}")
        return read(engine)

    monkeypatch.setattr(ConnectedEngine, "in_memory", late)
    with pytest.raises(DatasetError, match="changed while it was read"):
        protect_dataset("world", data, QUIET)


def test_the_secret_is_not_rotated_away_from_keys_in_a_database(
    in_database: Callable[[], Path],
) -> None:
    with pytest.raises(DatasetError, match="cannot be rotated from here"):
        rotate(Store(in_database()))


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE agency.people SET v0 = 'nonsense'", "'nonsense' is not in the code list"),
        ("UPDATE agency.people SET v0 = NULL", "a value is missing"),
        ("UPDATE agency.people SET debt = NULL", "column 'debt': a value is missing"),
        ("UPDATE agency.people SET weight = -1", "a value is negative"),
        ("UPDATE agency.people SET weight = 0.123", "at most the described decimals"),
        ("UPDATE agency.people SET id = 7", "have the same record id"),
        ("DELETE FROM agency.people", "has no rows"),
        ("ALTER TABLE agency.people DROP COLUMN v0", "has no column 'v0'"),
        ("DELETE FROM agency.keys", "records without a record key"),
        ("DROP TABLE agency.keys", "has no table agency.keys"),
        ("REVOKE SELECT ON agency.people FROM lustrum", "grant it SELECT"),
    ],
)
def test_records_that_do_not_fit_are_refused_in_one_sentence(
    postgres: services.Postgres, world: World, statement: str, sentence: str
) -> None:
    where = in_postgres(world, postgres, True)
    postgres.execute(statement)
    with pytest.raises((IngestError, DatasetError), match=sentence):
        IbisEngine(where, world.dataset).tabulate(QUESTION)


def test_records_without_an_identifier_are_refused(world: World, tmp_path: Path) -> None:
    words = {**world.description, "dataset": {"name": "world", "identifiers": ["owner"]}}
    with pytest.raises(DescriptionError, match="no order by which a record could be known"):
        IbisEngine(in_duckdb(world, tmp_path / "w.duckdb", True), Dataset.from_mapping(words))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('password = "secret-word"', "a password has no place"),
        (
            'backend = "postgres"\ntable = "t"\nsettings = {"spark.x.password" = "w"}',
            "has no 'settings'",
        ),
        (
            'backend = "spark"\ntable = "t"\nsettings = {"a.password" = "secret-word"}',
            "has no place in a connection",
        ),
        ('backend = "oracel"\ntable = "t"', "'oracel' is not known"),
        ('backend = "trino"\ntable = "t"\nmaster = "local"', "Trino has no 'master'"),
        ('backend = "trino"\ntable = "t"\noptions = {token = "secret-word"}', "no place in a"),
        ('backend = "postgres"\ntable = "a.b.c.d"', "must be table, schema.table or catalog"),
        ('backend = "postgres"\ntable = "t"\nport = "5432"', "'port' must be a port number"),
        ('backend = "postgres"', "'table' is missing"),
        ('backend = "postgres"\ntabel = "t"', "unknown key 'tabel'"),
        ("password = secret-word", "is not valid TOML"),
    ],
)
def test_a_connection_that_is_wrong_is_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(DescriptionError, match=sentence) as caught:
        read_connection(tmp_path / "c.toml")
    assert "secret-word" not in str(caught.value)


CREDENTIAL_FORMS = (
    "u:{}@h", "postgres://u:{}@h/db", "jdbc:x://h/db?password={}", "h;token={}", "a=b&key={}",
)  # fmt: skip
SPARK_CREDENTIALS = (
    "fs.azure.account.key.census.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.fixed.token.census",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.javax.jdo.option.ConnectionURL",
    "spark.sql.catalog.census.uri",
    "spark.authenticate.secret",
    "spark.ssl.keyPassword",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
)


@given(
    where=st.sampled_from(
        (
            "backend", "table", "keys", "database", "host", "user", "password_env", "password_file",
            "master",
        )
    ),
    form=st.sampled_from(CREDENTIAL_FORMS),
    secret=st.from_regex("[A-Za-z0-9+]{12,20}", fullmatch=True),
    backend=st.sampled_from(sorted(BACKENDS)),
)  # fmt: skip
def test_a_credential_written_into_an_address_is_refused_and_not_repeated(
    where: str, form: str, secret: str, backend: str
) -> None:
    words = {"backend": backend, "table": "t", "database": "d", where: form.format(secret)}
    with pytest.raises(DescriptionError) as caught:
        Connection.from_mapping(words)
    assert secret not in str(caught.value)


@given(
    name=st.sampled_from(SPARK_CREDENTIALS) | st.sampled_from(sorted(SETTINGS)),
    form=st.sampled_from(("{}", "-Dtrust.password={}", *CREDENTIAL_FORMS)),
    secret=st.from_regex("[A-Za-z0-9+/]{16,20}==", fullmatch=True),
)
def test_no_setting_of_spark_can_hold_a_credential(name: str, form: str, secret: str) -> None:
    words = {"backend": "spark", "table": "t", "settings": {name: form.format(secret)}}
    with pytest.raises(DescriptionError, match="has no place in a connection") as caught:
        Connection.from_mapping(words)
    assert secret not in str(caught.value)
