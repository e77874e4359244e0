"""Takes text out of a trace that its own user may not read: what is kept of such a chunk is its id."""

from ragaudit.config import AclSettings
from ragaudit.evidence.acl import may_read
from ragaudit.model.inventory import Inventory
from ragaudit.model.trace import Hit, PerArm, Ranking, Trace

_LISTS = ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank")


def without_unreadable_text(trace: Trace, inventory: Inventory, acl: AclSettings) -> Trace:
    """The trace without the texts and metadata of unreadable chunks. Unknown access keeps them, as the log had them."""
    texts, digests = trace.context_texts or {}, trace.context_hashes or {}
    carrying = {hit.id for hits in trace.lists().values() for hit in hits if _says_something(hit)}
    carrying |= texts.keys() | digests.keys()
    hidden = {chunk_id for chunk_id in carrying if may_read(chunk_id, trace, inventory, acl) is False}
    if not hidden:
        return trace
    update: dict[str, object] = {name: _stripped(getattr(trace, name), hidden) for name in _LISTS}
    update["arms"] = _stripped(trace.arms, hidden)
    if trace.context_texts is not None:
        update["context_texts"] = {i: text for i, text in texts.items() if i not in hidden}
    if trace.context_hashes is not None:
        update["context_hashes"] = {i: digest for i, digest in digests.items() if i not in hidden}
    return trace.model_copy(update=update)


def _stripped(lists: Ranking | PerArm | None, hidden: set[str]) -> Ranking | PerArm | None:
    if isinstance(lists, dict):
        return {arm: tuple(_bare(hit, hidden) for hit in hits) for arm, hits in lists.items()}
    return None if lists is None else tuple(_bare(hit, hidden) for hit in lists)


def _bare(hit: Hit, hidden: set[str]) -> Hit:
    if hit.id not in hidden or not _says_something(hit):
        return hit
    return Hit(hit.id, hit.rank, hit.score, hit.rrf, hit.sources, None, hit.source_id)


def _says_something(hit: Hit) -> bool:
    """Metadata holds titles, and stores return the text under names of their own (`page_content`)."""
    return (hit.text, hit.metadata, hit.extra) != (None, None, None)
