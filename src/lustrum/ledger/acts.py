"""Who did what to a data folder: one line for each act; no counts, and no names but that of the account.

What leaves the house by an act stands in the book of releases as well, and so does how far the other books of
the folder went by then: that of acts, and those of budgets, which are locked while noise is drawn. A book that
was cut, or exchanged for an older one, does not hold what the book of releases says of it.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lustrum._version import __version__
from lustrum.ledger.chain import Chain, digest_of
from lustrum.ledger.releases import Recorded, ReleaseBook
from lustrum.runtime.data_folder import ACTS, BUNDLES, CONNECTIONS, POLICIES, datasets_in

LEAVES = ("protect", "release", "suppress", "session", "budget")
"""What makes something that leaves the house, or pays for it."""

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


def record_act(
    root: Path, act: str, about: str, digest: str = "", *, policy: bytes = b"", **said: Any
) -> None:
    """Record that the account of this process did something to a dataset or programme of a data folder.

    ``digest`` names the policy, bundle or tables that came of it. What leaves the house is recorded before it
    does, with the ``policy`` that decided it.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"at": now, "user": account(), "act": act, "about": about, "digest": digest}
    head = Chain(root / ACTS, loose=True).append(line)
    if act in LEAVES:
        enter_act(root, act, about, digest, {ACTS: head}, policy=policy, **said)


def enter_act(
    root: Path,
    act: str,
    about: str,
    digest: str,
    heads: Mapping[str, str],
    *,
    policy: bytes = b"",
    dataset: str | None = None,
    **said: Any,
) -> None:
    """Enter into the book of releases what leaves, with the last lines of other books; nobody's name.

    ``dataset`` is whose people it tells of, where that is not what the line is about.
    """
    whole: dict[str, Any] = {"kind": "act", "act": act, "about": about, "decision": digest}
    whole |= {"version": __version__, "heads": dict(heads), **said}
    if policy:
        whole["policy"] = digest_of(policy)
    book = ReleaseBook(root)
    try:
        contents = {digest_of(policy): policy} if policy else {}
        book.enter(whole, dataset=about if dataset is None else dataset, contents=contents)
    finally:
        book.close()


def heads_in(book: ReleaseBook, about: str | None = None) -> dict[str, set[str]]:
    """By the names of their files, the lines of other books that the book of releases knows of.

    Where the agency stated what a budget lacks, such as after a backup, earlier lines are not asked for.
    """
    known: dict[str, set[str]] = {}
    for entry in book.entries(dataset=about):
        for name, head in dict(entry.said.get("heads", {})).items():
            if entry.said.get("what") == "stated":
                known.pop(name, None)
            known.setdefault(name, set()).add(head)
    return known


def left(root: Path) -> list[Recorded]:
    """The lines of the book about what tells of people: all but charges, and looks of the agency."""
    if not ReleaseBook.exists(root):
        return []
    book = ReleaseBook(root)
    try:
        lines = list(book.entries())
    finally:
        book.close()
    return [e for e in lines if e.said.get("kind") != "look" and e.said.get("act") != "budget"]


def verify_books(root: Path, book: ReleaseBook) -> int:
    """Check the other books of a data folder against what the book of releases says of them; how many."""
    known = heads_in(book)
    for name, heads in known.items():
        Chain(root / name, loose=name == ACTS).verify(*heads)
    return len(known)


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
