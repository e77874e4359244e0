"""`ragaudit show`: one query of an audit."""

from pathlib import Path

import click

from ragaudit.cli.options import PATH
from ragaudit.cli.streams import Streams
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.errors import ConfigError
from ragaudit.report.as_json import query_row
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.store import AuditReader
from ragaudit.store.filters import containing
from ragaudit.store.texts import ReadableTexts


@click.command("show")
@click.argument("audit", type=PATH)
@click.argument("query_id")
@click.option("--with-text", is_flag=True, help="The query's text and the chunk texts that its user may read.")
@click.option("--json", "as_json", is_flag=True, help="The query's row of the JSON report, and its experiments.")
@click.pass_obj
def command(streams: Streams, audit: Path, query_id: str, with_text: bool, as_json: bool) -> None:
    """One query: where each gold id stood, which stage lost it, the proof, and what to change."""
    with AuditReader.open(audit) as reader:
        result = reader.query(query_id)
        if result is None:
            raise ConfigError(_not_there(reader, query_id))
        summary = reader.summary()
        mine = tuple(each for each in summary.experiments if query_id in each.queries)
        if as_json:
            row = query_row(result, with_text=with_text)
            streams.json(row | {"experiments": [each.model_dump(mode="json", by_alias=True) for each in mine]})
            return
        texts = ReadableTexts(reader, summary.run, result).chunk if with_text else None
        streams.text(diagnosis_text(result, CAUSES, STAGE_NOTES, texts=texts, experiments=mine))


def _not_there(reader: AuditReader, query_id: str) -> str:
    near = [row.query_id for row in reader.page(containing(query_id), limit=3)] or [
        row.query_id for row in reader.page(limit=3)
    ]
    return f"{reader.path}: no query {query_id!r}. Queries there: {', '.join(near) or 'none'}, ..."
