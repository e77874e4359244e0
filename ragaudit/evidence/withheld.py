"""Takes text out of a trace that its own user may not read: what is kept of such a chunk is its id."""

from collections.abc import Collection

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.logged import logged_source
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Hit, PerArm, Ranking, Trace

_LISTS = ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank")


def without_unreadable_text(trace: Trace, identities: Identities, acl: AclSettings, pipeline: Pipeline) -> Trace:
    """The trace without the texts and metadata of unreadable chunks. Unknown access keeps them, as the log had them.

    What shows that they are unreadable stays: the source id, the metadata fields that an access clause reads, and, for
    an id that no table knows, the hash of its text. `pipeline` is what this query ran under.
    """
    access = Access(trace, identities, acl, pipeline)
    texts, digests = trace.context_texts or {}, trace.context_hashes or {}
    saying = [hit for hits in trace.lists().values() for hit in hits if _says_something(hit)]
    carrying = {hit.id for hit in saying} | texts.keys() | digests.keys()
    hidden = {chunk_id for chunk_id in carrying if not access.may_show(chunk_id)}
    if not hidden:
        return trace
    kept = access.guarding
    update: dict[str, object] = {name: _stripped(getattr(trace, name), hidden, kept) for name in _LISTS}
    update["arms"] = _stripped(trace.arms, hidden, kept)
    if trace.context_texts is not None:
        update["context_texts"] = {i: text for i, text in texts.items() if i not in hidden}
    proofs = {hit.id: content_hash(hit.text) for hit in saying if hit.id in hidden and hit.text}
    proofs |= {i: content_hash(text) for i, text in texts.items() if i in hidden}
    proofs |= {i: digest for i, digest in digests.items() if i in hidden}
    proofs = {i: digest for i, digest in proofs.items() if identities.inventory.chunk(i) is None}
    if trace.context_hashes is not None or proofs:
        update["context_hashes"] = {i: digest for i, digest in digests.items() if i not in hidden} | proofs
    return trace.model_copy(update=update)


def _stripped(lists: Ranking | PerArm | None, hidden: set[str], kept: Collection[str]) -> Ranking | PerArm | None:
    if isinstance(lists, dict):
        return {arm: tuple(_bare(hit, hidden, kept) for hit in hits) for arm, hits in lists.items()}
    return None if lists is None else tuple(_bare(hit, hidden, kept) for hit in lists)


def _bare(hit: Hit, hidden: set[str], kept: Collection[str]) -> Hit:
    if hit.id not in hidden or not _says_something(hit):
        return hit
    whose = {name: value for name, value in (hit.metadata or {}).items() if name in kept} or None
    return Hit(hit.id, hit.rank, hit.score, hit.rrf, hit.sources, None, logged_source(hit), whose)


def _says_something(hit: Hit) -> bool:
    """Metadata holds titles, and stores return the text under names of their own (`page_content`)."""
    return (hit.text, hit.metadata, hit.extra) != (None, None, None)
