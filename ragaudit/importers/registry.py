"""The formats by name, each imported when it is asked for, and `auto`: which of them a file is, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ragaudit.errors import ConfigError, InputError
from ragaudit.importers.formats import Format, Sample
from ragaudit.importers.inputs import first_records, head

MODULES: Mapping[str, str] = {
    "langsmith": "langsmith",
    "langfuse": "langfuse",
    "langchain": "langchain",
    "llamaindex": "llamaindex",
    "deepeval": "deepeval",
    "promptfoo": "promptfoo",
    "autorag": "autorag",
    "ragchecker": "ragchecker",
    "continuous-eval": "continuous_eval",
    "open-rag-eval": "open_rag_eval",
    "haystack": "haystack",
    "phoenix": "phoenix",
    "mlflow": "mlflow",
    "trulens": "trulens",
    "spans": "spans.importer",
    "ragas": "ragas",
    "mteb": "mteb",
    "beir": "beir",
    "msmarco": "msmarco",
    "trec": "trec",
    "table": "table",
}
"""Name -> module of this package that holds its `FORMAT`. The special before the general: `auto` asks in this order."""


@dataclass(frozen=True)
class Guess:
    """The format that `auto` chose, why, and the others that would have been possible."""

    format: Format
    why: str
    others: tuple[str, ...]


def format_named(name: str) -> Format:
    """One format.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in MODULES:
        raise ConfigError(f"{name}: no such format. Use auto, or one of: {', '.join(MODULES)}.")
    found: Format = import_module(f"ragaudit.importers.{MODULES[name]}").FORMAT
    return found


def formats() -> list[Format]:
    """All of them, in the order in which `auto` asks."""
    return [format_named(name) for name in MODULES]


def guess(path: Path) -> Guess:
    """The format of a file or folder.

    Raises:
        ConfigError: It is a bundle, or the traces of one, and needs no import.
        InputError: It is not there, or no format fits; the message says what was seen.
    """
    sample = sample_of(path)
    claims = [(each, why) for each in formats() if (why := each.sniff(sample)) is not None]
    if (how := _ours(sample)) is not None and not (claims and sample.path.is_dir()):  # others have a traces.jsonl too
        raise ConfigError(f"{path}: is in our own format already and needs no import. Run: ragaudit audit {how}.")
    if not claims:
        raise InputError(
            f"{path}: no known format fits{_seen(sample)}."
            f" Name its columns: ragaudit import table {path} --map query_text=COLUMN."
        )
    (chosen, why), *others = claims
    return Guess(chosen, why, tuple(each.name for each, _ in others))


def sample_of(path: Path) -> Sample:
    """What there is to look at.

    Raises:
        InputError: It is not there.
    """
    if path.is_dir():
        return Sample(path, frozenset(each.name for each in path.iterdir()), (), "")
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder. Check the path.")
    return Sample(path, frozenset({path.name}), first_records(path), head(path))


_ROWS = (".jsonl", ".jsonl.gz", ".parquet")


def _ours(sample: Sample) -> str | None:
    """How to audit what is a bundle as it stands; None = it is none."""
    if sample.path.is_dir():
        return str(sample.path) if {f"traces{ending}" for ending in _ROWS} & sample.names else None
    first = sample.values[0] if sample.values else None
    if not isinstance(first, dict) or not sample.path.name.endswith(_ROWS):
        return None
    has_lists = isinstance(first.get("arms"), dict) or isinstance(first.get("final_context_ids"), list)
    known = has_lists and isinstance(first.get("query_text"), str) and "query_id" in first
    return f"--traces {sample.path}" if known else None


def _seen(sample: Sample) -> str:
    if sample.path.is_dir():
        return f" (a folder with {', '.join(sorted(sample.names)[:8]) or 'nothing in it'})"
    first = sample.values[0] if sample.values else None
    if isinstance(first, dict):
        return f" (records with {', '.join(str(key)[:40] for key in list(first)[:8] if key)})"
    if not sample.values:
        return " (no records could be read)" if sample.path.stat().st_size else " (the file is empty)"
    return ""
