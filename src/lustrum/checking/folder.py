"""The folder that a session hands to the checker, and what the checker decides about it.

============================  ==========================================================================
``for-the-checker/``          confidential: files as they are asked for, evidence, comments, the findings
``for-the-checker/digests``   the digest of every file
``decisions.jsonl``           what was decided, chained: no line can be changed unnoticed
``approved/``                 what the checker approved; empty until then, and the only public part
============================  ==========================================================================

It holds no record, no name and no digest of a person.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from lustrum._version import __version__
from lustrum.checking.joint import JointAudit
from lustrum.checking.rules import Verdict
from lustrum.checking.tables import OutputPopulation, TableOutput
from lustrum.ledger.acts import account
from lustrum.ledger.chain import Chain, digest_of
from lustrum.model import DatasetError, InputError
from lustrum.model.errors import check_known
from lustrum.runtime.durable import outages, sync, write_whole

# An output of a session, with what the rules say of it.


@dataclass(frozen=True, eq=False)
class SessionOutput:
    """One output: what would go out (``frame``), what the rules say of it, and what to do.

    ``outcome`` says of every cell which rules it fails; it is for the safe room alone, as ``suggestion`` is.
    """

    name: str
    kind: str
    command: str
    frame: Any
    outcome: Any
    verdict: Verdict
    summary: str
    suggestion: str = ""
    table: TableOutput | None = None
    population: OutputPopulation | None = None
    comments: tuple[str, ...] = ()
    exception: str = ""
    file: Path | None = None

    def __repr__(self) -> str:
        return f"SessionOutput({self.name!r}: {self.verdict}, {self.summary})"

    def _repr_html_(self) -> str:
        shown = self.frame._repr_html_() if hasattr(self.frame, "_repr_html_") else ""
        return (
            f"<p><b>{escape(self.name)}</b>: {escape(f'{self.verdict}, {self.summary}')}</p>{shown}"
        )


INSIDE, APPROVED, DIGESTS = "for-the-checker", "approved", "digests.json"
DECISIONS = ("approve", "refuse")


def write_folder(
    folder: Path,
    title: str,
    outputs: Sequence[SessionOutput],
    audit: JointAudit,
    rules: Mapping[str, float],
) -> str:
    """Write a new folder for the checker; the digest of its list of digests."""
    inside = folder / INSIDE
    with outages(folder):
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty; name a new folder.")
        inside.mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)
        (folder / APPROVED).mkdir(mode=0o700)
    files: dict[str, bytes] = {}
    listed = []
    for one in outputs:
        file = f"{one.name}{one.file.suffix if one.file else '.csv'}"
        if f"outputs/{file}".lower() in map(str.lower, files):
            raise InputError(f"Two outputs would have the file {file}; rename one of them.")
        with outages(one.file or folder):
            data = one.file.read_bytes() if one.file else _csv(one.frame)
        files[f"outputs/{file}"] = data
        files[f"evidence/{one.name}.csv"] = _csv(one.outcome)
        listed.append(
            {
                "name": one.name,
                "kind": one.kind,
                "what": one.command,
                "verdict": one.verdict,
                "summary": one.summary,
                "suggestion": one.suggestion,
                "comments": list(one.comments),
                "exception": one.exception,
                "file": file,
                "digest": digest_of(data),
                "audited": one.population is not None,
            }
        )
    said = {
        "title": title,
        "version": __version__,
        "rules": dict(rules),
        "outputs": listed,
        "differences": [asdict(one) | {"smallest": one.smallest} for one in audit.differences],
        "undecided": list(audit.undecided),
    }
    files["session.json"] = json.dumps(said, indent=1, ensure_ascii=False).encode()
    digests = {name: digest_of(data) for name, data in sorted(files.items())}
    files[DIGESTS] = json.dumps(digests, indent=1).encode()
    with outages(inside):
        for name, data in files.items():
            (inside / name).parent.mkdir(exist_ok=True, mode=0o700)
            write_whole(inside / name, data, 0o600)
        sync(folder)
    digest = digest_of(files[DIGESTS])
    Chain(folder / "decisions.jsonl").append(
        {"what": "finalised", "digest": digest, "by": account()}
    )
    return digest


def _csv(frame: Any) -> bytes:
    return bytes(frame.to_csv(lineterminator="\n").encode())


class CheckerFolder:
    """A folder of a session as its checker reads it; an error if a file is not what the session wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._chain = folder, Chain(folder / "decisions.jsonl")
        self.session: dict[str, Any] = json.loads(self.verified()["session.json"])

    def verified(self) -> dict[str, bytes]:
        """Every file, compared with its digest, and the digests with the first line of the record."""
        inside = self.folder / INSIDE
        with outages(inside):
            raw = (inside / DIGESTS).read_bytes()
            entries = self._chain.entries()
            if not entries or entries[0].said.get("digest") != digest_of(raw):
                raise DatasetError(
                    f"{inside / DIGESTS} is not what the session wrote; ask for the folder again."
                )
            found = {}
            for name, digest in json.loads(raw).items():
                path = inside / name
                if path.is_symlink() or inside.resolve() not in path.resolve().parents:
                    raise DatasetError(f"{path} does not lie in the folder; ask for it again.")
                found[name] = path.read_bytes()
                if digest_of(found[name]) != digest:
                    raise DatasetError(
                        f"{inside / name} is not what the session wrote; ask for the folder again."
                    )
        return found

    def output(self, name: str) -> dict[str, Any]:
        listed: dict[str, dict[str, Any]] = {one["name"]: one for one in self.session["outputs"]}
        check_known((name,), listed, "The session has no output")
        return listed[name]

    def decisions(self) -> dict[str, Mapping[str, Any]]:
        """The last decision about each output; an error if the record was changed."""
        entries = self._chain.entries()
        last = {e.said["output"]: e.said for e in entries if e.said["what"] in DECISIONS}
        approved = [name for name, said in last.items() if said["what"] == "approve"]
        wanted = {self.output(name)["file"]: last[name]["digest"] for name in approved}
        folder = self.folder / APPROVED
        with outages(folder):
            found = {path.name: digest_of(path.read_bytes()) for path in folder.iterdir()}
        if found != wanted:
            raise DatasetError(
                f"{folder} is not what was decided: a file was put there, changed or taken out, or the record "
                "of decisions was cut."
            )
        return last

    def history(self) -> list[Mapping[str, Any]]:
        return [entry.said for entry in self._chain.entries()]

    def decide(self, name: str, decision: str, comment: str = "") -> None:
        """Approve or refuse an output: entered first, then its file is put into ``approved`` or taken out."""
        if decision not in DECISIONS:
            raise InputError(f"A decision is 'approve' or 'refuse', not {decision!r}.")
        output = self.output(name)
        data = self.verified()[f"outputs/{output['file']}"]
        unsafe = output["verdict"] != "pass" or any(
            name in one["outputs"] for one in self.session["differences"]
        )
        if decision == "approve" and unsafe and not comment.strip():
            raise InputError("An output that does not pass every check is approved with a reason.")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"what": decision, "output": name, "digest": output["digest"], "comment": comment}
        path = self.folder / APPROVED / Path(output["file"]).name
        if path.parent.is_symlink() or path.name != output["file"]:
            raise DatasetError(f"{path} does not lie in the folder; ask for it again.")
        with self._chain.alone(wait=True) as add:
            self.decisions()  # nothing follows a changed record
            add(entry | {"at": now, "by": account()})
            with outages(path):
                if decision == "approve":
                    write_whole(path, data)
                else:
                    path.unlink(missing_ok=True)


# The book of sessions on the same data: what went to the checker before, so that later ones know.
#
# The folder stays in the safe room, for its owner alone. ``book.jsonl`` is chained; ``people/*.npz`` hold
# of each finalised output, keyed digests of its people beside the codes of their categories, and
# ``key.secret`` the key. Without the data nobody learns from them who somebody is; with it and the key,
# everything: so the checker's folder holds none of them.

_BYTES = 32


class SessionBook:
    """The book in a folder, which is made where there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._chain = folder, Chain(folder / "book.jsonl")
        with outages(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> bytes:
        """The key of digests: made once, since others would make the same people different ones."""
        path = self._folder / "key.secret"
        with self._chain.alone(wait=True), outages(path):
            if not path.exists():
                if self._chain.entries():
                    raise DatasetError(
                        f"{path} is missing, without which earlier sessions cannot be compared."
                    )
                write_whole(path, secrets.token_bytes(_BYTES), 0o600)
            key = path.read_bytes()
        if len(key) != _BYTES:
            raise DatasetError(f"{path} is not what was written; bring back the file as it was.")
        return key

    def populations(self) -> list[OutputPopulation]:
        """Whom the outputs of all finalised sessions are about; an error if a file was changed."""
        found = []
        for number, entry in enumerate(self._chain.entries(), start=1):
            for name, digest in entry.said["outputs"].items():
                path = self._path(digest)
                with outages(path):
                    data = path.read_bytes()
                if digest_of(data) != digest:
                    raise DatasetError(
                        f"{path} is not what was written; bring back the file as it was."
                    )
                with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                    found.append(OutputPopulation.from_arrays(f"session {number}: {name}", arrays))
        return found

    def enter(self, folder: str, title: str, outputs: Mapping[str, OutputPopulation]) -> str:
        """Enter a session that was finalised; ``folder`` is the digest of what the checker gets."""
        digests = {}
        for name, population in outputs.items():
            buffer = io.BytesIO()
            np.savez(buffer, **population.to_arrays())
            digests[name] = digest_of(buffer.getvalue())
            path = self._path(digests[name])
            with outages(path):
                path.parent.mkdir(exist_ok=True, mode=0o700)
                write_whole(path, buffer.getvalue(), 0o600)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return self._chain.append({"at": now, "title": title, "folder": folder, "outputs": digests})

    def _path(self, digest: str) -> Path:
        return self._folder / "people" / f"{Path(digest).name}.npz"
