"""`ragaudit inventory`: what stands in a live index, as the inventory files of a bundle. Reads only."""

import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.errors import InputError
from ragaudit.inventories.account import Account, account, completeness
from ragaudit.inventories.clients import hushed
from ragaudit.inventories.export import Asked, Seen, export, prepare
from ragaudit.inventories.finish import Counts, chunks, index, sources
from ragaudit.inventories.payloads import Fields
from ragaudit.inventories.records import KEY_VARIABLE, URL_VARIABLE, Where
from ragaudit.inventories.registry import MODULES, store_named
from ragaudit.inventories.secrets import Secrets, public
from ragaudit.inventories.work import Work
from ragaudit.model.json_line import json_line
from ragaudit.report.inventory_text import inventory_text
from ragaudit.store.whole_file import refuse, whole_file

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""A path has folded the second slash; one letter before the colon is a drive."""
FILES = ("sources.jsonl", "chunks.jsonl", "index.json")


def _pairs(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [value.partition("=") for value in values]
    for name, sign, value in pairs:
        if not (name and sign):
            raise click.BadParameter(f"{name or value}: write NAME=VALUE.")
    return tuple((name, value) for name, _, value in pairs)


@click.command("inventory")
@click.argument("store", type=click.Choice(list(MODULES)), metavar="STORE")
@click.argument("path", type=PATH, metavar="[PATH]", required=False)
@click.option("--url", metavar="URL", help=f"Address of a server; else {URL_VARIABLE}. Its key: {KEY_VARIABLE}.")
@click.option("-o", "--output", type=PATH, metavar="DIR", required=True, help="The bundle's folder.")
@click.option("--collection", metavar="NAME", help="Collection, table or index, where the store has several.")
@click.option("--id-field", metavar="FIELD", help="Your chunk id, as traces and labels have it [chunk_id].")
@click.option("--text-field", metavar="FIELD", help="The chunk's text.")
@click.option("--source-field", metavar="FIELD", help="The id of the document that it was cut from.")
@click.option("--acl-field", metavar="FIELD", help="Who may read it [acl].")
@click.option("--namespace-field", metavar="FIELD", help="Tenant or namespace, where it is a field.")
@click.option("--embedding-model", metavar="NAME", help="The model of rows that name none.")
@click.option(
    "--arm",
    "arms",
    multiple=True,
    callback=_pairs,
    metavar="INDEX=ARM",
    help="The store's name of an index, and yours.",
)
@click.option("--only", multiple=True, callback=_pairs, metavar="FIELD=VALUE", help="Only rows with this metadata.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N rows.")
@click.option(
    "--complete", type=click.Choice(["yes", "no"]), help="Is this the whole index? Counts where the store cannot tell."
)
@click.option("--no-text", is_flag=True, help="Hashes in place of texts.")
@click.option("--no-vectors", is_flag=True, help="Do not read vectors: no lengths, and faster.")
@click.option("--trusted", is_flag=True, help="The folder is your own, and may be unpickled by its client.")
@click.option("--restart", is_flag=True, help="Throw an unfinished export away.")
@click.option("--replace", is_flag=True, help="Write over files that are there.")
@click.option("--json", "as_json", is_flag=True, help="The account as JSON.")
@quiet_option
@click.pass_obj
def command(
    streams: Streams,
    store: str,
    path: Path | None,
    url: str | None,
    output: Path,
    collection: str | None,
    id_field: str | None,
    text_field: str | None,
    source_field: str | None,
    acl_field: str | None,
    namespace_field: str | None,
    embedding_model: str | None,
    arms: tuple[tuple[str, str], ...],
    only: tuple[tuple[str, str], ...],
    limit: int | None,
    complete: str | None,
    no_text: bool,
    no_vectors: bool,
    trusted: bool,
    restart: bool,
    replace: bool,
    as_json: bool,
) -> None:
    """Write what stands in a live index as sources.jsonl, chunks.jsonl and index.json. Reads only.

    STORE: chroma, qdrant, pgvector, lancedb, milvus, elasticsearch, opensearch, faiss, llamaindex, file.

    The account says what was read, whether it is complete and why not, and what an audit can decide with it.
    An export that was interrupted goes on with the same command. docs/inventory.md has a section for each store.
    """
    fields = Fields(text_field, source_field, acl_field, id_field, namespace_field, embedding_model)
    place, is_url = _place(path, url)
    key = os.environ.get(KEY_VARIABLE)
    where = Where(
        place=place,
        is_url=is_url,
        collection=collection,
        key=key,
        with_vectors=not no_vectors,
        arms=dict(arms),
        is_trusted=trusted,
        id_field=id_field,
        secrets=Secrets.of(place if is_url else None, key),
    )
    asked = Asked(
        store=store,
        place=public(place) if is_url else place,
        collection=collection,
        fields=fields,
        only=only,
        limit=limit,
        with_text=not no_text,
        with_vectors=not no_vectors,
        arms=arms,
    )
    for name in FILES:
        refuse(output / name, replace)
    done = _run(streams, where, asked, output, None if complete is None else complete == "yes", restart, replace)
    if as_json:
        streams.json(done.as_json())
    else:
        streams.text(inventory_text(done))
    streams.say(f"Wrote {', '.join(FILES)} to {output}. With traces.jsonl beside them: ragaudit check {output}")


def _place(path: Path | None, url: str | None) -> tuple[str, bool]:
    """Where the store is, and whether that is an address."""
    if path is not None and url is not None:
        raise click.UsageError("Pass PATH or --url, not both.")
    if path is not None:
        if _ADDRESS.match(str(path)):
            raise click.UsageError(f"Pass an address as --url or in {URL_VARIABLE}, which keeps it out of lists.")
        return str(path), False
    found = url or os.environ.get(URL_VARIABLE)
    if not found:
        raise click.UsageError(f"Say where the store is: PATH, --url, or {URL_VARIABLE}.")
    return found, True


def _run(
    streams: Streams, where: Where, asked: Asked, output: Path, said: bool | None, restart: bool, replace: bool
) -> Account:
    with ExitStack() as stack:
        stack.enter_context(hushed())
        reader = stack.enter_context(store_named(asked.store).open(where))
        work = Work(output, restart=restart)
        stack.callback(work.close)
        prepare(work, asked)
        try:
            now = reader.contents()
            with streams.progress("rows", now.rows) as progress:
                seen = export(reader, now, work, asked, progress, streams.say)
        except (KeyboardInterrupt, InputError):
            streams.say(f"{work.count():,} rows are kept in {work.path}. The same command goes on from there.")
            raise
        done = _write(work, asked, seen, output, said, replace)
        work.drop()
    return done


def _write(work: Work, asked: Asked, seen: Seen, output: Path, said: bool | None, replace: bool) -> Account:
    """All three files, in place together."""
    counts = Counts()
    complete, why = completeness(work, asked, seen, said)
    with ExitStack() as stack:
        files = {name: stack.enter_context(whole_file(output / name, replace=replace)) for name in FILES}
        for row in chunks(work, asked, counts):
            files["chunks.jsonl"].write(_line(row))
        for row in sources(work):
            files["sources.jsonl"].write(_line(row))
        whole = index(work, seen, counts, complete, why)
        files["index.json"].write(json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return account(work, asked, seen, counts, complete, why, whole)


def _line(row: dict[str, Any]) -> str:
    return json_line(row) + "\n"
