"""Who did what to a data folder: one line for each act; no counts, and no names but that of the account."""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from pathlib import Path

from lustrum.ledger.chain import Chain, digest_of
from lustrum.ledger.releases import ReleaseBook
from lustrum.runtime.data_folder import ACTS, BUNDLES, CONNECTIONS, POLICIES, datasets_in

_LEAVES = ("protect", "release")
"""What makes something that leaves the house: it stands in the book of releases as well."""

_WORDS = ("at", "user", "act", "about", "digest")


def account() -> str:
    """The account of this process, by its name where the system knows one."""
    try:
        import pwd

        user = pwd.getpwuid(os.getuid()).pw_name
    except ImportError:  # on Windows
        user = getpass.getuser()
    except KeyError:
        user = str(os.getuid())
    return user.encode("utf-8", "replace").decode()


def record_act(root: Path, act: str, about: str, digest: str = "") -> None:
    """Record that the account of this process did something to a dataset or programme of a data folder.

    ``digest`` names the policy, bundle or tables that came of it.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"at": now, "user": account(), "act": act, "about": about, "digest": digest}
    Chain(root / ACTS, loose=True).append(line)
    if act in _LEAVES:
        # Without the account: the book of releases holds nobody's name.
        said = {"kind": "act", "act": act, "about": about, "decision": digest}
        ReleaseBook(root).enter(said, dataset=about)


def acts_of(root: Path) -> tuple[list[dict[str, str]], int]:
    """What was recorded, the newest first, up to a line that was changed, and the number of that line or 0."""
    entries, wrong = Chain(root / ACTS, loose=True).read()
    acts = [{key: str(entry.said.get(key, "")) for key in _WORDS} for entry in entries]
    return acts[::-1], wrong


def record_seal(path: Path, raw: bytes) -> None:
    """Record that a policy is sealed, before it is in force; of one that lies in no data folder nothing."""
    folder = path.absolute().parent
    root = folder.parent
    signs = any((root / part).exists() for part in (ACTS, BUNDLES, CONNECTIONS))
    if folder.name == POLICIES and (signs or datasets_in(root)):
        record_act(root, "seal", path.stem, digest_of(raw))
