"""Preflight rules that need no trace: missing fields by name, the index export, the settings."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ragaudit.config import Settings
from ragaudit.diagnosis.facts import moment, same_model
from ragaudit.model.counting import queries
from ragaudit.model.inventory import Inventory
from ragaudit.model.record import said
from ragaudit.model.result import Finding, Level

_FIELDS: Mapping[str, tuple[Level, str, str]] = {
    "gold": (Level.WARN, "whether the evidence was found at all", "gold_ids (or answerable: false)"),
    "arms": (Level.WARN, "embed, retrieve, fuse and filter apart", "arms: {name: [{id, rank, score}]} for every arm"),
    "final_context_ids": (
        Level.WARN,
        "whether the evidence reached the generator",
        "final_context_ids: the ids as packed, after rerank and truncation",
    ),
    "fused": (Level.WARN, "fuse and rerank apart", "fused: the merged list before the reranker"),
    "after_rerank": (Level.WARN, "a demotion by the reranker", "after_rerank ([] when it returned nothing)"),
    "user_acl": (Level.WARN, "which gold the user may read, and leaks", "user_acl: the user's principals"),
    "filters_applied": (Level.WARN, "filter faults apart from others", "filters_applied ({} when none was sent)"),
    "embedding_model": (Level.INFO, "a model mismatch", "embedding_model of the query side"),
    "index_revision": (Level.INFO, "whether the inventory is of the index that was asked", "index_revision"),
    "prompt_ids": (
        Level.INFO,
        "whether packed chunks were cut from the prompt",
        "prompt_ids of the rendered prompt, or prompt_tokens",
    ),
}


def noted(check: str, severity: Level, message: str, fix: str) -> Finding:
    """One finding."""
    return Finding(check=check, severity=severity, message=message, fix=fix)


def missing_field_findings(missing: Counter[str], n: int) -> Iterable[Finding]:
    """A finding for each field that some queries lack: what that makes undecidable and how to log it."""
    for name, (level, undecided, how) in _FIELDS.items():
        if missing[name]:
            share = "every query" if missing[name] == n else f"{missing[name]:,} of {queries(n)}"
            yield noted(f"missing_{name}", level, f"{share} without {name}: cannot decide {undecided}", f"Log {how}.")


def index_findings(
    inventory: Inventory, settings: Settings, revisions: Counter[str], last_query: str | None
) -> Iterable[Finding]:
    """What the inventory itself shows."""
    if inventory.sources is None or inventory.chunks is None:
        missing = [name for name in ("sources", "chunks") if getattr(inventory, name) is None]
        yield noted(
            "missing_inventory",
            Level.INFO,
            f"no {' and no '.join(f'{name}.jsonl' for name in missing)}: cannot decide ingestion, parse and chunk",
            "Export what was ingested and indexed (docs/data.md says which columns).",
        )
    index = inventory.index
    if index is None:
        return
    if index.complete is False:
        yield noted(
            "incomplete_export",
            Level.INFO,
            "the index export is partial: no verdict rests on a row that is missing from it",
            "Export the whole index and set complete = true.",
        )
    if index.revision is not None and revisions and index.revision not in revisions:
        yield noted(
            "revision_mismatch",
            Level.WARN,
            f"the inventory is of revision {index.revision}, the queries asked {next(iter(revisions))}",
            "Export the inventory of the revision that answered the queries.",
        )
    snapshot, last = moment(index.snapshot_at), moment(last_query)
    if snapshot is not None and last is not None and snapshot < last:
        yield noted(
            "snapshot_older",
            Level.INFO,
            f"the inventory of {index.snapshot_at} is older than the last query at {last_query}",
            "Export the inventory after the queries, or when nothing was written in between.",
        )
    yield from _vector_findings(inventory, settings)


def _vector_findings(inventory: Inventory, settings: Settings) -> Iterable[Finding]:
    index = inventory.index
    for name, arm in (index.arms if index else {}).items():
        for what, counts in (("models", arm.models or {}), ("dimensions", arm.dims or {})):
            if len(counts) > 1:
                shares = ", ".join(f"{key}: {n}" for key, n in counts.items())
                yield noted(
                    f"mixed_{what}",
                    Level.WARN,
                    f"{name} holds vectors of several {what} ({shares})",
                    "Re-embed the minority with the model of the rest.",
                )
        if arm.chunks == 0:
            yield noted("empty_index", Level.WARN, f"the index of {name} holds 0 chunks", f"Rebuild {name}.")
    query, corpus = settings.pipeline.embedding.query.model, settings.pipeline.embedding.corpus.model
    if query is not None and corpus is not None and not same_model(query, corpus):
        yield noted(
            "model_mismatch",
            Level.WARN,
            f"queries are embedded by {query}, the corpus by {corpus}",
            "Use one model on both sides.",
        )
    if index is not None and index.sources_expected and (index.sources_indexed or 0) < index.sources_expected:
        yield noted(
            "sources_short",
            Level.WARN,
            f"{index.sources_indexed or 0} of {index.sources_expected} sources are indexed",
            "Compare the source list with the index and ingest the difference.",
        )


def config_findings(settings: Settings) -> Iterable[Finding]:
    """Settings that later commands stop without, and those that leave steps undecided."""
    if not said(settings.pipeline):
        yield noted(
            "missing_pipeline",
            Level.WARN,
            "no [pipeline] in ragaudit.toml: thresholds, fusion, filter mode and budgets are unknown",
            "Run `ragaudit init` and write down what the pipeline does.",
        )
    if settings.acl is None or "rule" not in settings.acl.model_fields_set:
        yield noted(
            "missing_acl_rule",
            Level.WARN,
            'no [acl] rule: "any principal in common" is assumed',
            'Write [acl] rule = "any" or "all" in ragaudit.toml.',
        )
    if not settings.gates:
        yield noted(
            "missing_gates",
            Level.INFO,
            "no [gates]: `ragaudit gate` will stop",
            "Choose thresholds from a baseline and write them under [gates].",
        )
    if settings.experiment is None or settings.experiment.index_write is None:
        yield noted(
            "missing_index_write",
            Level.INFO,
            "no [experiment] index_write: no index may be changed for an experiment",
            'Write [experiment] index_write = "test" when a test index may be changed.',
        )


def k_findings(configured: int | None, ks: Mapping[int, int]) -> Iterable[Finding]:
    """The K of [pipeline] against those of the traces, given with how many queries have each."""
    others = {k: n for k, n in ks.items() if k != configured}
    if configured is None or not others:
        return
    logged = max(others, key=lambda k: (others[k], -k))
    yield noted(
        "k_final_differs",
        Level.WARN,
        f"[pipeline] k_final is {configured}, {others[logged]:,} of {queries(sum(ks.values()))} say {logged}: "
        "metrics are cut at what each query says",
        "Correct the one that is not the K of the generator.",
    )
