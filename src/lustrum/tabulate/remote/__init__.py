"""Records that stay in a database: connections, the engine over them, and their keys."""

from lustrum.tabulate.remote.conformance import EngineCheck, check_engine
from lustrum.tabulate.remote.connected import (
    ConnectedEngine,
    connect,
    connected_names,
    open_connected,
    write_keys,
)
from lustrum.tabulate.remote.connection import (
    BACKENDS,
    Connection,
    Database,
    read_connection,
)
from lustrum.tabulate.remote.engine import IbisEngine
from lustrum.tabulate.remote.keys import make_keys

__all__ = [
    "BACKENDS",
    "ConnectedEngine",
    "Connection",
    "Database",
    "EngineCheck",
    "IbisEngine",
    "check_engine",
    "connect",
    "connected_names",
    "make_keys",
    "open_connected",
    "read_connection",
    "write_keys",
]
