"""A connection to the database where the records stay, and what is said when it fails.

A connection is described in a file of its own. It names where credentials are found, in a file or in an
environment variable, and holds none. A driver's own words may quote a record or a password, so that none of
them is ever repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import tomllib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from lustrum.model import DatasetError, DescriptionError, InputError
from lustrum.model.errors import LustrumError, choices
from lustrum.tabulate.remote.spark import HINT, SETTINGS, is_unknown_table, spark_session

BACKENDS = {
    "athena": "Athena",
    "bigquery": "BigQuery",
    "clickhouse": "ClickHouse",
    "databricks": "Databricks",
    "druid": "Druid",
    "duckdb": "DuckDB",
    "exasol": "Exasol",
    "impala": "Impala",
    "materialize": "Materialize",
    "mssql": "SQL Server",
    "mysql": "MySQL",
    "oracle": "Oracle",
    "postgres": "PostgreSQL",
    "risingwave": "RisingWave",
    "singlestoredb": "SingleStoreDB",
    "snowflake": "Snowflake",
    "spark": "Spark",
    "sqlite": "SQLite",
    "trino": "Trino",
}
"""Every database that Ibis speaks to, by Ibis's name; Ibis calls Spark ``pyspark``."""

_SERVER = ("host", "port", "user", "password_env", "password_file")
_FILES = ("duckdb", "sqlite")
_ONLY = {
    **dict.fromkeys(_FILES, ("database",)),
    "postgres": ("database", *_SERVER),
    "spark": ("database", "master", "settings"),
}
_OTHERS = ("database", *_SERVER, "options")
PASSWORDS = {"databricks": "access_token", "trino": "auth"}
"""How Ibis calls the password of a database, where it has another name."""

OPTIONS = {
    **dict.fromkeys(
        (
            "account", "catalog", "cluster", "location", "role", "schema", "service_name",
            "warehouse",
        ),
        r"[\w.-]{1,80}",
    ),
    **dict.fromkeys(("project_id", "dataset_id"), r"[\w.:-]{1,80}"),
    "auth_mechanism": "NOSASL|PLAIN|GSSAPI|LDAP",
    "driver": r"[\w .{}-]{1,60}",
    "http_path": r"/[\w./-]{1,120}",
    "secure": "true|false",
    "server_hostname": r"[\w.-]{1,120}",
    "use_ssl": "true|false",
}  # fmt: skip
"""What else a database may need to be named, by Ibis's words, and the form of each value."""
_HOST = r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)"
_AT = rf"{_HOST}(:\d+)?"
_FORMS = {
    "backend": (r"[a-z]+", "the name of a database's kind"),
    "table": (
        r"([^\s.:/@?=;&]+\.){0,2}[^\s.:/@?=;&]+",
        "table, schema.table or catalog.schema.table",
    ),
    "host": (rf"{_HOST}|[0-9a-fA-F:]+|(/[\w.-]+)+", "a host's name or address alone"),
    "user": (r"[^\s:/?=;&]+", "the name of a user alone"),
    "database": (r"[^:@?=;&]+", "the name of a database, or the path of its file"),
    "password_env": (r"[A-Za-z_]\w*", "the name of an environment variable"),
    "password_file": (r"[^:@?=;&]+", "the path of a file"),
    "master": (
        rf"local(-cluster)?(\[[\d*, ]+\])?|yarn|(spark|k8s)://(https?://)?{_AT}(,{_AT})*",
        "an address such as spark://host:7077, yarn or local",
    ),
}
_FORMS["keys"] = _FORMS["table"]
_ELSEWHERE = "What it holds may be a credential and is not repeated."
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Connection:
    """Where the records are: a backend, a table, and the table of their keys.

    Without ``keys`` the table of the records holds the keys itself. ``settings`` are those of Spark, and
    ``options`` name what another database needs besides. No value has the form of a text that could hold a
    credential, and none that does not fit its form is repeated.
    """

    backend: str
    table: str
    keys: str | None = None
    database: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (form, meaning) in _FORMS.items():
            value = getattr(self, name)
            if value is not None and not re.fullmatch(form, value):
                raise DescriptionError(f"{name!r} must be {meaning}. {_ELSEWHERE}")
        if self.backend not in BACKENDS:
            raise DescriptionError(
                f"A connection to {self.backend!r} is not known; {choices(self.backend, BACKENDS)}."
            )
        allowed = ("backend", "table", "keys", *_ONLY.get(self.backend, _OTHERS))
        for item in fields(self):
            if item.name not in allowed and getattr(self, item.name):
                raise DescriptionError(
                    f"A connection to {BACKENDS[self.backend]} has no {item.name!r}; it has "
                    f"{', '.join(allowed)}."
                )
        if self.backend in _FILES and self.database is None:
            raise DescriptionError(
                f"A connection to {BACKENDS[self.backend]} needs 'database', the path of its file."
            )
        if self.password_env and self.password_file:
            raise DescriptionError(
                "Name the password's file or its environment variable, not both."
            )
        for name, value in self.settings.items():
            if not re.fullmatch(SETTINGS.get(name, "(?!)"), value):
                raise DescriptionError(
                    f"The setting {name[:80]!r}, or its value, has no place in a connection: it might hold a "
                    "credential. Set it in Spark's own configuration (spark-defaults.conf, hive-site.xml), "
                    "where credentials come from the environment or a secret manager."
                )
        for name, value in self.options.items():
            if not re.fullmatch(OPTIONS.get(name, "(?!)"), value):
                raise DescriptionError(
                    f"The option {name[:80]!r}, or its value, has no place in a connection; there are "
                    f"{', '.join(OPTIONS)}. {_ELSEWHERE}"
                )

    def parts(self, table: str) -> tuple[str | None, str | None, str]:
        """Catalogue, schema and name of a table; in Spark, ``database`` is the schema of names without one."""
        *above, name = table.split(".")
        if not above and self.backend == "spark" and self.database is not None:
            above = [self.database]
        catalog, schema = [None] * (2 - len(above)) + above
        return catalog, schema, name

    @property
    def name(self) -> str:
        return f"The table {self.table} in {BACKENDS[self.backend]}"

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], where: str = "The connection") -> Connection:
        """Check a connection as read from TOML or JSON."""
        if "password" in raw:
            raise DescriptionError(
                f"{where}: a password has no place in a connection; write 'password_file' or 'password_env', "
                "which say where it is."
            )
        known = {item.name: item for item in fields(cls)}
        for key, value in raw.items():
            if key not in known:
                shown = key if re.fullmatch(r"\w{1,40}", key) else "(not repeated)"
                raise DescriptionError(
                    f"{where}: unknown key {shown!r}; {choices(shown, list(known))}."
                )
            if key == "port":
                good = type(value) is int and 0 < value < 65536
            elif key in ("settings", "options"):
                good = isinstance(value, Mapping) and all(
                    isinstance(v, str) for v in value.values()
                )
            else:
                good = isinstance(value, str)
            if not good:
                kind = {
                    "port": "a port number",
                    "settings": "a table of texts",
                    "options": "a table of texts",
                }.get(key, "a text")
                raise DescriptionError(f"{where}: {key!r} must be {kind}.")
        for key in ("backend", "table"):
            if not raw.get(key):
                raise DescriptionError(f"{where}: {key!r} is missing.")
        try:
            return cls(**raw)
        except DescriptionError as error:
            raise DescriptionError(f"{where}: {error}") from None

    def to_mapping(self) -> dict[str, Any]:
        """The words of the file; they hold no credentials."""
        field_values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {n: dict(v) if isinstance(v, Mapping) else v for n, v in field_values.items() if v}

    def keywords(self) -> dict[str, Any]:
        """What Ibis is given to connect to a server, by its own words."""
        known = {name: getattr(self, name) for name in ("host", "port", "user", "database")}
        flags = {"true": True, "false": False}
        return {
            **{name: value for name, value in known.items() if value is not None},
            **{name: flags.get(value, value) for name, value in self.options.items()},
        }

    def password(self) -> str | None:
        """The password from where the connection says it is; a clear sentence where it is not there."""
        if self.password_env is not None:
            secret = os.environ.get(self.password_env)
            if not secret:
                raise InputError(
                    "The environment variable that the connection names as 'password_env' is not set."
                )
            return secret
        if self.password_file is None:
            return None
        path = Path(self.password_file)
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or "it is not a text"
        raise InputError(
            f"The file that the connection names as 'password_file' cannot be read: {cause}."
        )


def read_connection(path: Path) -> Connection:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DescriptionError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):  # its own words may quote a password
        raise DescriptionError(f"{path} is not valid TOML.") from None
    return Connection.from_mapping(raw, str(path))


class Database:
    """An open connection that runs one question at a time, and connects again once where it was lost."""

    def __init__(self, connection: Connection, *, read_only: bool = True) -> None:
        self.connection = connection
        self._read_only = read_only
        self._lock = threading.RLock()
        self._backend: Any = None
        self._end: Callable[[], Any] = lambda: None

    def __repr__(self) -> str:
        return f"Database({BACKENDS[self.connection.backend]})"

    def schema(self, table: str) -> Any:
        catalog, schema, name = self.connection.parts(table)
        place = schema if catalog is None else (catalog, schema)
        return self.run(lambda backend: backend.table(name, database=place).schema(), table)

    def table(self, name: str) -> Any:
        """A table as an expression that is bound to no connection, so that another one can answer it."""
        schema = self.schema(name)
        catalog, database, plain = self.connection.parts(name)
        return import_ibis().table(schema, name=plain, database=database, catalog=catalog)

    def rows(self, expression: Any, *, few: bool = False) -> pa.Table:
        """The answer to an expression; ``few`` says that it has so few rows that they may come at once.

        Ibis reads from PostgreSQL through a cursor, for which that server plans no parallel work. From Spark it
        reads through a frame of pandas, which is slow and makes numbers beside missing ones inexact.
        """
        backend = self.connection.backend
        read = _through_ibis
        if backend == "spark":
            read = _through_arrow
        elif backend == "postgres" and few:
            read = _at_once
        return self.run(lambda connected: read(connected, expression))

    def run(self, work: Callable[[Any], Answer], table: str | None = None) -> Answer:
        """Do something with the backend; any failure of it becomes one sentence without its words."""
        table = table or self.connection.table
        with self._lock:
            for last in (False, True):
                failed = lost = None
                fresh = self._backend is None
                try:
                    if fresh:
                        self._backend = self._connected()
                        self._end = weakref.finalize(
                            self, _disconnect, self._backend, self.connection.backend
                        )
                    return work(self._backend)
                except LustrumError:
                    raise
                except Exception as error:  # whatever a driver throws
                    lost = _is_outage(error)
                    failed = _sentence(self.connection, error, table)
                if lost:
                    self.close()
                if last or fresh or not lost:
                    break
            raise DatasetError(failed)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._backend is not None:
                self._end()
                self._backend = None

    def _connected(self) -> Any:
        """A connection; where another database than those below refuses it, one sentence says so."""
        try:
            return self._connect()
        except LustrumError:
            raise
        except ImportError:
            backend = self.connection.backend
            raise InputError(
                f"A connection to {BACKENDS[backend]} needs its driver; install it: "
                f"pip install 'ibis-framework[{backend}]'."
            ) from None
        except Exception as error:
            if self.connection.backend in _ONLY:
                raise
            kind = type(error).__name__
        raise DatasetError(
            f"{BACKENDS[self.connection.backend]} took no connection ({kind}); see that it runs, and that "
            "host, port, user, password, database and options are right."
        )

    def _connect(self) -> Any:
        ibis = import_ibis()
        connection = self.connection
        if connection.backend in _FILES:
            path = Path(str(connection.database))
            if not path.is_file():
                raise DatasetError(f"There is no {BACKENDS[connection.backend]} file {path}.")
            if connection.backend == "duckdb":
                return ibis.duckdb.connect(path, read_only=self._read_only)
            from sqlite3 import connect

            opened = connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
            return ibis.sqlite.from_connection(opened)
        if connection.backend == "postgres":
            return ibis.postgres.connect(
                **connection.keywords(),
                password=connection.password(),
                connect_timeout=10,
                keepalives_idle=30,
                application_name="lustrum",
                options="-c default_transaction_read_only=on" if self._read_only else "",
            )
        if connection.backend == "spark":
            return ibis.pyspark.connect(spark_session(connection.master, connection.settings))
        secret = connection.password()
        word = PASSWORDS.get(connection.backend, "password")
        given = {} if secret is None else {word: secret}
        return getattr(ibis, connection.backend).connect(**connection.keywords(), **given)


def _through_ibis(backend: Any, expression: Any) -> pa.Table:
    rows: pa.Table = backend.to_pyarrow(expression)
    return rows


def _through_arrow(backend: Any, expression: Any) -> pa.Table:
    """All rows that Spark answers, in the columns in which its workers send them."""
    rows: pa.Table = backend.raw_sql(backend.compile(expression)).toArrow()
    return rows


def _at_once(backend: Any, expression: Any) -> pa.Table:
    """All rows that PostgreSQL answers; sums, which it gives as decimals, are whole numbers."""
    schema = expression.schema().to_pyarrow()
    with backend.con.transaction(), backend.con.cursor() as cursor:
        rows = cursor.execute(backend.compile(expression)).fetchall()
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = {}
    for field_, column in zip(schema, columns, strict=True):
        if any(isinstance(value, Decimal) for value in column):
            arrays[field_.name] = pa.array([None if v is None else int(v) for v in column])
        else:
            arrays[field_.name] = pa.array(column, field_.type)
    return pa.table(arrays)


def _disconnect(backend: Any, kind: str) -> None:
    # Spark's session belongs to the process, in which others may use it.
    if kind != "spark":
        with contextlib.suppress(Exception):  # it may be lost already
            backend.disconnect()


def import_ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise InputError(
            "A connection to a database needs Ibis; install the extra: pip install 'lustrum[ibis]'."
        ) from None
    return ibis


def _is_outage(error: BaseException) -> bool:
    """Whether a connection was lost, or never made."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if type(error).__module__.startswith("psycopg"):
        state = getattr(error, "sqlstate", None)
        lost = bool(names & {"OperationalError", "InterfaceError"})
        return lost and (state is None or state.startswith(("08", "28", "3D", "57P")))
    return bool(names & {"Py4JNetworkError", "ConnectionError"})


def _sentence(connection: Connection, error: BaseException, table: str) -> str:
    """What failed, by the kind of the error alone."""
    label = BACKENDS[connection.backend]
    names = {kind.__name__ for kind in type(error).__mro__}
    state = getattr(error, "sqlstate", None) or ""
    if state == "42501":
        return f"{label} does not let this role read {table}; grant it SELECT on it and USAGE on its schema."
    if "TableNotFound" in names or state == "42P01" or is_unknown_table(error):
        hint = HINT if connection.backend == "spark" else ""
        return f"{label} has no table {table} that this role can see; check the names in the connection.{hint}"
    if _is_outage(error):
        return f"{label} {_why_unreachable(connection)}; nothing was answered."
    kind = f"{type(error).__name__} {state}".strip()
    return (
        f"{label} could not answer a question about {table} ({kind}); its own words may quote a record and are "
        "in its log. Check that every column has the type that the description needs."
    )


def _why_unreachable(connection: Connection) -> str:
    """Which step to the data failed: the server, the user or the database."""
    if connection.backend != "postgres":
        at = f" at {connection.master}" if connection.master else ""
        return f"cannot be reached{at}, or was lost while it answered; try again"
    host, port = connection.host or "localhost", connection.port or 5432
    if not host.startswith("/"):
        try:
            socket.create_connection((host.strip("[]"), port), timeout=10).close()
        except OSError:
            return f"at {host}:{port} cannot be reached; see that it runs, and try again"
    import psycopg

    try:
        psycopg.connect(
            host=connection.host,
            port=port,
            user=connection.user,
            password=connection.password(),
            dbname="postgres",
            connect_timeout=10,
        ).close()
    except psycopg.Error:
        return (
            f"at {host}:{port} was reached and did not accept user and password, or takes no connection "
            "from here"
        )
    return (
        f"at {host}:{port} accepted user and password, but has no database of this name that they may open, "
        "or lost the connection just now"
    )
