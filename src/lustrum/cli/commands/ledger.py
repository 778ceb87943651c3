"""`lustrum ledger`: what left the house, and the same bytes again; `lustrum token`: who may ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lustrum.cli.inputs import HERE, Data, ledger_app, token_app
from lustrum.model import InputError

if TYPE_CHECKING:
    from lustrum.ledger.releases import Recorded, ReleaseBook

Line = Annotated[int, typer.Argument(help="The number of a line.", min=1)]


@ledger_app.command("verify")
def verify(
    head: Annotated[
        list[str] | None,
        typer.Option(help="A head that was written down elsewhere, as this command prints it."),
    ] = None,
    data: Data = HERE,
) -> None:
    """Check every line, seal and content, and print the head; write that down where nobody changes it."""
    from lustrum.ledger.acts import verify_books
    from lustrum.ledger.releases import BookHead

    book = _book(data)
    found = book.verify(*(BookHead.from_text(text) for text in head or ()))
    others = verify_books(data, book)
    typer.echo(f"The book of releases is whole: {found.number:,} lines.")
    if others:
        typer.echo(f"Books that it knows of hold what it says of them: {others}.")
    typer.echo(str(found))


@ledger_app.command("list")
def list_(
    dataset: Annotated[str | None, typer.Option(help="Lines about this dataset alone.")] = None,
    reader: Annotated[str | None, typer.Option(help="Lines of this reader alone.")] = None,
    data: Data = HERE,
) -> None:
    """What left the house, a line each: number, time, reader, dataset, what became of it, the question."""
    book = _book(data)
    names = book.names()
    words = (
        None
        if reader is None
        else tuple(w for w, n in names.items() if n == reader.lower()) or ("-",)
    )
    for entry in book.entries(dataset=dataset, audiences=words):
        said = entry.said
        about = said.get("question") or f"{said.get('act', '')} {said.get('about', '')}".strip()
        typer.echo(
            f"{entry.number:6} {said['at'][:19]} {names.get(entry.audience, entry.audience):12.12} "
            f"{said['dataset']:12} {said.get('verdict', said['kind']):8} {about}"
        )


@ledger_app.command("show")
def show(number: Line, data: Data = HERE) -> None:
    """One line, as it was entered."""
    book = _book(data)
    typer.echo(json.dumps(_said(book, _line(book, number)), ensure_ascii=False, indent=1))


@ledger_app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: one line of JSON for each.")],
    contents: Annotated[
        bool, typer.Option("--contents", help="With the decisions and policies beside each line.")
    ] = False,
    data: Data = HERE,
) -> None:
    """Write the whole book into a file that other programs read, in its order and with its digests."""
    from lustrum.runtime.durable import outages, write_whole

    book = _book(data)
    head = book.verify()

    def lines() -> Iterator[bytes]:
        for entry in book.entries():
            said = _said(book, entry) if contents else {**entry.said, "digest": entry.digest}
            yield json.dumps(said, ensure_ascii=False).encode() + b"\n"

    with outages(file):
        write_whole(file, lines(), 0o600)
    typer.echo(f"Wrote {head.number:,} lines to {file}; the head is {head}.")


@ledger_app.command("replay")
def replay(
    number: Annotated[
        int | None, typer.Argument(help="The number of a line; all if left out.")
    ] = None,
    data: Data = HERE,
) -> None:
    """Make recorded answers again, and compare them byte by byte with what left the house."""
    from lustrum.answer.ledger import made_again
    from lustrum.local import local_service

    book = _book(data)
    entries = [_line(book, number)] if number is not None else list(book.entries())
    service = local_service(data)
    other = 0
    for entry in entries:
        found = made_again(entry, book, service)
        if found is not None:
            typer.echo(f"{entry.number:6} {found}")
            other += found != "the same bytes"
    if other:
        raise typer.Exit(3)


@ledger_app.command("audit")
def audit(
    dataset: Annotated[str | None, typer.Option(help="This dataset alone.")] = None,
    data: Data = HERE,
) -> None:
    """Work out what follows from all that readers hold: small counts that are certain, and the closest ones."""
    from lustrum.answer.ledger_audit import audit_held, described
    from lustrum.local import local_service

    book, service = _book(data), local_service(data)
    certain = 0
    for name in [dataset] if dataset is not None else service.names():
        snapshot = service.snapshot(name)
        if not snapshot.counted_together:
            continue
        names = book.names()
        for found in audit_held(book, snapshot):
            typer.echo(
                f"{name}, {found.who(names)}: {found.answers:,} answers; {found.expected:.3g} small counts "
                f"expected to be certain, {len(found.certain)} found."
            )
            certain += len(found.certain)
            for one in (*found.certain, *found.closest):
                lines = ", ".join(map(str, found.questions[one])) or "none by itself"
                typer.echo(f"  {described(one, snapshot.dataset)} (lines {lines})")
    if certain:
        raise typer.Exit(3)


@ledger_app.command("erase")
def erase(
    reader: Annotated[str, typer.Argument(help="The name of a reader.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: Data = HERE,
) -> None:
    """Erase a reader's name beside the book; lines stay, and nobody can tell any more whose they are."""
    book = _book(data)
    if not yes:
        typer.confirm(
            "What this reader holds is counted for nobody any more if the policy counts 'each' reader. Go on?",
            abort=True,
        )
    if not book.erase(reader):
        raise InputError(f"There is no reader {reader!r} in the book.")
    typer.echo("The name is erased; the book is whole.")


@token_app.command("add")
def add(
    reader: Annotated[str, typer.Argument(help="Whose token it is: a name without spaces.")],
    role: Annotated[
        str, typer.Option(help="Its role: 'registered', 'licensed' or 'staff'.")
    ] = "registered",
    days: Annotated[int, typer.Option(help="How many days it lasts.", min=1)] = 365,
    group: Annotated[
        str, typer.Option(help="The group of readers that its answers count with.")
    ] = "",
    dataset: Annotated[
        list[str] | None, typer.Option(help="A dataset that it is for; all if left out.")
    ] = None,
    data: Data = HERE,
) -> None:
    """Make a token, and print it once: only its digest is kept."""
    from lustrum.answer.tokens import Tokens
    from lustrum.policy.policy import ROLES

    known = next((one for one in ROLES[1:] if one == role), None)
    if known is None:
        raise InputError(f"The role is one of {', '.join(ROLES[1:])}, not {role!r}.")
    typer.echo(Tokens(data).add(reader, known, days, group, dataset or ()))
    typer.echo("Programs send it as 'Authorization: Bearer ...'. It is shown this once.", err=True)


@token_app.command("list")
def tokens(data: Data = HERE) -> None:
    """The tokens: id, reader, role, group, datasets and end."""
    from datetime import UTC, datetime

    from lustrum.answer.tokens import Tokens

    now = datetime.now(UTC)
    for token in Tokens(data).all().values():
        about = ", ".join(token.datasets) if token.datasets is not None else "all datasets"
        state = "ended" if token.is_over(now) else "ends"
        group = f" of {token.group}" if token.group else ""
        typer.echo(
            f"{token.id}  {token.reader}{group}  {token.role}  {about}  {state} {token.ends[:10]}"
        )


@token_app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="ID", help="The id that 'token list' shows.")],
    data: Data = HERE,
) -> None:
    """Take a token back; the server refuses it from the next request on."""
    from lustrum.answer.tokens import Tokens

    if not Tokens(data).revoke(name):
        raise InputError(f"There is no token {name!r}; 'lustrum token list' shows them.")
    typer.echo("The token is revoked.")


def _book(data: Path) -> ReleaseBook:
    from lustrum.ledger.releases import ReleaseBook

    if not ReleaseBook.exists(data):
        raise InputError(f"There is no book of releases in {data}: nothing was recorded yet.")
    return ReleaseBook(data)


def _line(book: ReleaseBook, number: int) -> Recorded:
    entry = next(book.entries(number - 1), None)
    if entry is None or entry.number != number:
        raise InputError(f"The book of releases has no line {number}.")
    return entry


def _said(book: ReleaseBook, entry: Recorded) -> dict[str, Any]:
    """A line with its digest, the name of its reader and what stands beside it."""
    said = {**entry.said, "digest": entry.digest}
    name = book.names().get(entry.audience)
    beside = {
        f"{word}_content": json.loads(raw)
        for word in ("decision", "policy")
        if (raw := book.content(str(said.get(word, "")))) is not None
    }
    return {**said, **({} if name is None else {"reader": name}), **beside}
