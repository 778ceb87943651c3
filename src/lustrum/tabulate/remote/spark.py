"""Spark: the settings that a connection may hold, the session, and rights on files that it writes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from lustrum.model import DatasetError, InputError

log = logging.getLogger("lustrum.tabulate")

NO_LUSTRUM = "Spark's workers have no Lustrum: name a Python that has it in spark.pyspark.python."
_PIECE = 1 << 22

_COUNT, _SWITCH, _SIZE = r"\d{1,9}", "true|false", r"\d{1,9}(\.\d+)?[kmgtKMGT]?[bB]?"
_TIME, _NAME = r"\d{1,9}(ms|s|m|min|h|d)?", r"[\w.-]{1,60}"
_HOST = r"[\w.:-]{1,255}"
_PATH = r"([a-z][a-z0-9]*://[\w.-]+(:\d+)?|file:)?/[\w./-]*"
_JAVA = rf"(-XX:[+-]?\w+(=\w+)?|-X(ms|mx|ss)\w+|-Dderby\.system\.home={_PATH})"

SETTINGS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "spark.cores.max", "spark.default.parallelism", "spark.driver.cores",
            "spark.driver.port", "spark.dynamicAllocation.initialExecutors",
            "spark.dynamicAllocation.maxExecutors", "spark.dynamicAllocation.minExecutors",
            "spark.executor.cores", "spark.executor.instances",
            "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.shuffle.partitions",
            "spark.task.cpus", "spark.task.maxFailures",
        ),
        _COUNT,
    ),
    **dict.fromkeys(
        (
            "spark.authenticate", "spark.dynamicAllocation.enabled", "spark.io.encryption.enabled",
            "spark.network.crypto.enabled", "spark.speculation", "spark.sql.adaptive.enabled",
            "spark.sql.codegen.wholeStage", "spark.ui.enabled", "spark.ui.showConsoleProgress",
        ),
        _SWITCH,
    ),
    **dict.fromkeys(
        (
            "spark.driver.maxResultSize", "spark.driver.memory", "spark.driver.memoryOverhead",
            "spark.executor.memory", "spark.executor.memoryOverhead",
            "spark.sql.autoBroadcastJoinThreshold", "spark.sql.files.maxPartitionBytes",
        ),
        _SIZE,
    ),
    **dict.fromkeys(("spark.executor.heartbeatInterval", "spark.network.timeout"), _TIME),
    **dict.fromkeys(("spark.driver.bindAddress", "spark.driver.host"), _HOST),
    **dict.fromkeys(("spark.local.dir", "spark.sql.warehouse.dir"), _PATH),
    **dict.fromkeys(("spark.pyspark.python", "spark.pyspark.driver.python"), rf"{_PATH}|{_NAME}"),
    **dict.fromkeys(
        (
            "spark.kubernetes.namespace", "spark.scheduler.pool", "spark.sql.defaultCatalog",
            "spark.yarn.queue",
        ),
        _NAME,
    ),
    **dict.fromkeys(
        ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), rf"{_JAVA}( {_JAVA})*"
    ),
    "spark.hadoop.hive.metastore.uris": r"thrift://[\w.-]+:\d+(,thrift://[\w.-]+:\d+)*",
    "spark.sql.catalogImplementation": "hive|in-memory",
}  # fmt: skip
"""What a connection may set, and the form of each value: none of them can hold a credential."""

HINT = (
    " Spark's default catalogue lives in one process: tables are found again where the catalogue is kept, for "
    'instance with "spark.sql.catalogImplementation" = "hive".'
)
_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND")


def spark_session(master: str | None, settings: Mapping[str, str]) -> Any:
    """The session of this process on a cluster. Files that it writes are for its own user alone."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "A connection to Spark needs PySpark; install the extra: pip install 'lustrum[spark]'."
        ) from None
    builder = SparkSession.builder.appName("lustrum")
    if master is not None:
        builder = builder.master(master)
    closed = {"spark.ui.enabled": "false", "spark.hadoop.fs.permissions.umask-mode": "077"}
    for name, value in {**closed, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # A session that Python starts reads this setting of the workers' Python from its environment alone.
    named = session.sparkContext.getConf().get("spark.pyspark.python")
    if named and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = named
    return session


def is_unknown_table(error: BaseException) -> bool:
    """Whether Spark says that it knows no such table, schema or catalogue."""
    condition = getattr(error, "getCondition", lambda: None)()
    return isinstance(condition, str) and condition.startswith(_UNKNOWN)


def quoted(parts: tuple[str | None, str | None, str]) -> str:
    """A table's name in Spark's SQL."""
    return ".".join(f"`{part}`" for part in parts if part is not None)


# --- record keys


def identifiers(ids: Any) -> tuple[int, int, int, int]:
    """How many rows there are, how many identifiers, how many different ones, and the smallest number."""
    from pyspark.sql import functions as f

    (column,) = ids.columns
    is_number = ids.schema[0].dataType.typeName() in ("byte", "short", "integer", "long")
    smallest = f.min(f"`{column}`") if is_number else f.lit(0)
    row = ids.agg(
        f.count(f.lit(1)), f.count(f"`{column}`"), f.countDistinct(f"`{column}`"), smallest
    ).first()
    return int(row[0]), int(row[1]), int(row[2]), int(row[3] or 0)


def is_private(session: Any) -> bool:
    """Whether what goes to workers and to their disks is encrypted, or stays in this process."""
    conf = session.sparkContext.getConf()
    if conf.get("spark.master", "").startswith("local["):
        return True
    return all(
        conf.get(name, "false") == "true"
        for name in ("spark.network.crypto.enabled", "spark.io.encryption.enabled")
    )


def written_by_workers(ids: Any, make: Callable[[pa.Array], pa.Table], target: str) -> bool:
    """Let workers make keys and write their table; false where Lustrum is not installed on them."""
    from pyspark.errors import PythonException
    from pyspark.sql.types import LongType, StructField, StructType

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from make(batch.column(0)).to_batches()

    parts = make(pa.array([], pa.int64())).column_names[1:]
    schema = StructType([ids.schema[0], *(StructField(name, LongType()) for name in parts)])
    try:
        ids.mapInArrow(keys, schema).write.saveAsTable(target)
    except PythonException as error:
        if "ModuleNotFoundError" not in str(error):
            raise
        log.warning("%s Keys are made here.", NO_LUSTRUM)
        return False
    return True


def pieces(ids: Any) -> Iterator[pa.Array]:
    """All identifiers in a few large pieces, read one partition after the other."""
    (column,) = ids.columns
    rows = ids.toLocalIterator()
    while piece := list(islice(rows, _PIECE)):
        yield pa.array([row[column] for row in piece])


def sums_of(table: Any, *columns: str) -> tuple[int, ...]:
    """How many rows a table has, and the sums of columns."""
    row = table.selectExpr("count(*)", *(f"sum({name})" for name in columns)).first()
    return tuple(int(value or 0) for value in row)


def closed_to_others(session: Any, target: str) -> str:
    """Let only their owner read the files of a table; says in a sentence what was reached."""
    found = {
        row.col_name: row.data_type for row in session.sql(f"DESCRIBE FORMATTED {target}").collect()
    }
    location = found.get("Location", "")
    scheme = location.partition(":")[0]
    if scheme not in ("file", "hdfs", "viewfs"):
        return (
            "Lustrum cannot see who may read the files of the keys; give the right to read their table, and "
            "the place where it is stored, to Lustrum's role alone."
        )
    hadoop = session._jvm.org.apache.hadoop.fs
    root = hadoop.Path(location)
    system = root.getFileSystem(session._jsc.hadoopConfiguration())
    todo = [system.getFileStatus(root)]
    while todo:
        status = todo.pop()
        if status.getPermission().toShort() & 0o077:
            mode = 0o700 if status.isDirectory() else 0o600
            system.setPermission(status.getPath(), hadoop.permission.FsPermission(mode))
            if system.getFileStatus(status.getPath()).getPermission().toShort() & 0o077:
                raise DatasetError(
                    "The files of the keys are open to others and cannot be closed; nothing is kept. Let "
                    "Spark's warehouse be in a file system with rights."
                )
        if status.isDirectory():
            todo.extend(system.listStatus(status.getPath()))
    return "Only their owner may read its files."
