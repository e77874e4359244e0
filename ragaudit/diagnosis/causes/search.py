"""Causes in the search itself: the query that was sent, a dead arm, a weak match."""

import re

from ragaudit.diagnosis.causes.index import lost_within_reach
from ragaudit.diagnosis.facts import ArmFacts, GoldFacts, moment
from ragaudit.diagnosis.namespaces import read_elsewhere, reads_it
from ragaudit.diagnosis.registry import cause
from ragaudit.model.diagnosis import Stage
from ragaudit.model.trace import ArmState

# Codes, SKUs, versions, identifiers: a word with a digit in it, or one written in capitals with a separator.
_LITERAL = re.compile(r"\b(?=\w*\d)\w[\w./:-]*\w\b|\b[A-Z]{2,}[_-][A-Z0-9_-]+\b|\b\w+_\w+\b")

# --- the query that was sent ------------------------------------------------------------------------------------


@cause(
    "literal_lost",
    Stage.RETRIEVE,
    "query",
    summary="The rewrite dropped a code or name that only the literal text would match.",
    remedy="Turn the rewrite off, or keep literals in it; nothing else.",
)
def literal_lost(f: GoldFacts) -> str | None:
    for probe in f.probes("literals_lost"):
        if isinstance(probe.value, tuple) and probe.value:
            return f"the rewritten query lost {', '.join(map(repr, probe.value))}"
    rewrite, text = rewrite_text(f), f.row.chunk.text if f.row.chunk else None
    if rewrite is None or text is None:
        return None
    lost = [
        word
        for word in dict.fromkeys(_LITERAL.findall(f.trace.query_text))
        if word.casefold() not in rewrite.casefold() and word.casefold() in text.casefold()
    ]
    return f"the rewritten query lost {', '.join(map(repr, lost))}, which {f.id} holds" if lost else None


@cause(
    "rewrite_drift",
    Stage.RETRIEVE,
    "query",
    summary="The rewritten query moved away from the question: the original finds the gold.",
    remedy="Turn the rewrite off (send the original query); nothing else.",
)
def rewrite_drift(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_original_query")
    if rank is None or rank > f.k:
        return None
    return f"{f.id}: rank {rank} for the original query, not in the top {f.k} for the query that was sent"


@cause(
    "other_namespace",
    Stage.RETRIEVE,
    "query",
    summary="One arm searched another namespace than the gold's, in which another arm of the same query searched.",
    remedy="Compare the namespace that the two arms are configured with, and correct that one arm; the filter stays.",
)
def other_namespace(f: GoldFacts) -> str | None:
    found = read_elsewhere(f)
    if found is None or f.row.eligible is not True:
        return None
    mine, searched, held = found
    there = next((arm.name for arm in f.arms if reads_it(f, arm)), None)
    astray = next((arm.name for arm in f.missed_arms if not reads_it(f, arm) and not arm.did_not_run), None)
    if there is None or astray is None:
        return None
    return f"{f.id} stands in namespace {mine!r}, where {there} searched; {astray} searched {searched!r}{held}"


@cause(
    "followup_lost",
    Stage.RETRIEVE,
    "query",
    summary="A follow-up was searched without the conversation it depends on.",
    remedy="Search the standalone form of the question, or carry the former turn's chunks over; one of the two.",
)
def followup_lost(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_standalone_query")
    if rank is not None and rank <= f.k and f.trace.conversation is not None:
        return f"{f.id}: rank {rank} for the standalone question, not in the top {f.k} for the one that was sent"
    if f.delivered_before and not f.in_arm_within_k:
        turn = f.trace.conversation.turn if f.trace.conversation else None
        return f"{f.id} was in the former turn's context{f' (turn {turn})' if turn else ''}; this turn's query lost it"
    return None


@cause(
    "query_incomplete",
    Stage.RETRIEVE,
    "query",
    summary="What was searched lacks words that find the gold, or drowns them: a form that stands alone finds it.",
    remedy="Search the form that stands alone (a rewrite, or one search for each step of the question); nothing else.",
)
def query_incomplete(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_standalone_query")
    if rank is None or rank > f.k or f.trace.conversation is not None:
        return None
    note = next((f" ({p.note})" for p in f.probes("rank_standalone_query") if p.note), "")
    return f"{f.id}: rank {rank} for a question that stands alone{note}, not in the top {f.k} for the one that was sent"


def rewrite_text(f: GoldFacts) -> str | None:
    """The words of the rewritten query, whatever its form; None when the original was sent."""
    rewrite = f.trace.query_rewrite
    if isinstance(rewrite, dict):
        rewrite = rewrite.get("text") or rewrite.get("query")
    if isinstance(rewrite, list):
        rewrite = " ".join(str(part) for part in rewrite)
    return rewrite if isinstance(rewrite, str) and rewrite.strip() else None


# --- arms that did not work ---------------------------------------------------------------------------------------


@cause(
    "lexical_no_terms",
    Stage.RETRIEVE,
    "search",
    summary="No term of the query is in the lexical index's vocabulary: its tokenizer does not fit the language.",
    remedy="Change the tokenizer of the lexical arm on both sides and rebuild that arm alone.",
)
def lexical_no_terms(f: GoldFacts) -> str | None:
    for arm in _lexical_missed(f):
        for name in ("query_terms_in_vocabulary", "query_terms"):
            for probe in f.probes(name, arm.name):
                if probe.value == 0 and not isinstance(probe.value, bool):
                    note = f" ({probe.note})" if probe.note else ""
                    what = "terms in its vocabulary" if name.endswith("vocabulary") else "query terms"
                    return f"{arm.name}: 0 {what}{note}"
    return None


@cause(
    "lexical_operator",
    Stage.RETRIEVE,
    "search",
    summary="The lexical arm wants every term at once, and its ranking by any term finds the gold.",
    remedy="Match any term instead of all terms; nothing else.",
)
def lexical_operator(f: GoldFacts) -> str | None:
    for arm in _lexical_missed(f):
        rank = f.probe_rank("lexical_rank", arm.name)
        fetched = len(arm.hits) if arm.hits else f.k
        if rank is not None and rank <= min(f.k, fetched):
            operator = f" with operator {arm.search.operator!r}" if arm.search.operator else ""
            return f"{f.id}: rank {rank} by the lexical engine's own ranking; {arm.name}{operator} did not return it so"
    return None


@cause(
    "dead_arm",
    Stage.RETRIEVE,
    "search",
    summary="A configured arm did not run, failed, or searched an empty index.",
    remedy="Bring that one arm back; change nothing else.",
)
def dead_arm(f: GoldFacts) -> str | None:
    for name, status in (f.trace.arm_status or {}).items():
        if status.status is ArmState.ERRORED:
            return f"{name}: failed{f' ({status.error})' if status.error else ''}"
        if status.status is ArmState.OFF and name in (f.pipeline.arms or ()):
            return f"{name}: configured, and off for this query"
    for arm in f.missed_arms:
        if arm.index is not None and arm.index.chunks == 0:
            return f"{arm.name}: its index holds 0 chunks"
    return None


@cause(
    "lexical_stale",
    Stage.RETRIEVE,
    "search",
    summary="The lexical index was built before the gold was written and does not hold it.",
    remedy="Rebuild the lexical arm alone.",
)
def lexical_stale(f: GoldFacts) -> str | None:
    for arm in _lexical_missed(f):
        built = moment(arm.index.built_at if arm.index else None)
        written = moment(f.row.chunk.indexed_at if f.row.chunk else None)
        if built is not None and written is not None and built < written and arm.place is None:
            return f"{arm.name}: built at {arm.index.built_at if arm.index else ''}, before {f.id} was written"
        if arm.place is None and f.in_index.get(arm.name) is False and any(f.in_index.values()):
            return f"{f.id}: not in the index of {arm.name}, though in that of another arm"
    return None


@cause(
    "diversity",
    Stage.RETRIEVE,
    "search",
    summary="Diversity re-selection (MMR) dropped the gold that plain similarity ranks within K.",
    remedy="Use plain similarity, or turn the diversity weight around; one of the two.",
)
def diversity(f: GoldFacts) -> str | None:
    for arm in f.missed_arms:
        rank = f.probe_rank("exact_rank", arm.name)
        if arm.search.type == "mmr" and rank is not None and rank <= f.k:
            weight = f" (lambda {arm.search.lambda_mult:g})" if arm.search.lambda_mult is not None else ""
            return f"{f.id}: rank {rank} by similarity alone; {arm.name} selects by MMR{weight}"
    return None


@cause(
    "fetch_too_small",
    Stage.RETRIEVE,
    "search",
    summary="The arm fetches too few candidates: with a larger limit the gold is within K.",
    remedy="Raise the number of candidates that this arm fetches; same filter, same K.",
)
def fetch_too_small(f: GoldFacts) -> str | None:
    for arm in f.missed_arms:
        rank = f.probe_rank("lexical_rank" if arm.lexical else "exact_rank", arm.name)
        if rank is not None and f.reach(arm) < rank <= f.k:
            return f"{f.id}: exact rank {rank} in {arm.name}, which fetched {len(arm.hits)}; K is {f.k}"
        wider = f.probe_rank("rank_other_limit", arm.name)
        lost = not arm.lexical and lost_within_reach(f, arm) is not None
        if arm.place is None and wider is not None and wider <= f.k and not lost:
            note = next((p.note for p in f.probes("rank_other_limit", arm.name) if p.note), "another limit")
            return f"{f.id}: rank {wider} in {arm.name} with {note}, absent with the limit that was sent"
    return None


@cause(
    "weak_match",
    Stage.RETRIEVE,
    "search_last",
    summary="Even an exact search ranks the gold outside K: the arm does not match this question to this text.",
    remedy="Add a lexical arm, or a larger candidate pool with a reranker; embeddings last. One change.",
)
def weak_match(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        rank = f.probe_rank("exact_rank", arm.name)
        if rank is not None and rank > f.k:
            return f"{f.id}: exact rank {rank} in {arm.name}, K is {f.k}{f.untrained_language}"
    for arm in f.missed_arms:
        rank = f.probe_rank("lexical_rank", arm.name)
        if arm.lexical and rank is not None and rank > f.k:
            return f"{f.id}: lexical rank {rank}, K is {f.k}"
    return None


def _lexical_missed(f: GoldFacts) -> list[ArmFacts]:
    return [arm for arm in f.missed_arms if arm.lexical]


# --- the residue --------------------------------------------------------------------------------------------------


@cause(
    "below_k",
    Stage.RETRIEVE,
    "residue",
    summary="The gold is searchable and whole, and ranks below K.",
    remedy="Raise the candidate pool and rerank it, or add a lexical arm; one change.",
)
def below_k(f: GoldFacts) -> str | None:
    if f.best_rank is not None:
        return f"{f.id}: best rank {f.best_rank} in {_names(f)}, K is {f.k}; index, text and filter are sound"
    return f"{f.id}: not returned by {_names(f)}; index, text and filter are sound"


def _names(f: GoldFacts) -> str:
    return ", ".join(arm.name for arm in f.arms)
