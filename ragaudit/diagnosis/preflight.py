"""One pass over the run before any verdict: what is dead, mixed, missing or inconsistent, and what that forbids."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ragaudit.config import AclSettings, Settings
from ragaudit.diagnosis.assumed import assumed_fields, assumed_findings
from ragaudit.diagnosis.patterns import MIN_FOR_PATTERN
from ragaudit.diagnosis.preflight_access import AccessNotes
from ragaudit.diagnosis.preflight_gold import GoldIds
from ragaudit.diagnosis.preflight_input import input_findings
from ragaudit.diagnosis.preflight_lists import out_of_nowhere
from ragaudit.diagnosis.preflight_rules import (
    config_findings,
    index_findings,
    k_findings,
    missing_field_findings,
    noted,
)
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.sources import lexical_arms, top_k_sources
from ragaudit.model.counting import counted, queries
from ragaudit.model.record import said
from ragaudit.model.result import Canary, Finding, Level
from ragaudit.model.trace import ArmState, Ranking, Trace
from ragaudit.readers.fields import quoted
from ragaudit.readers.problems import Problems


class Preflight:
    """Watches every trace once, then answers for the run. Holds counts and ids only, never traces."""

    def __init__(self, identities: Identities, settings: Settings) -> None:
        self._identities = identities
        self._settings = settings
        self._access = AccessNotes(identities.inventory, settings.acl or AclSettings())
        self.n = 0
        self._missing: Counter[str] = Counter()
        self._assumed: Counter[str] = Counter()
        self._arms: Counter[str] = Counter()
        self._empty: Counter[str] = Counter()
        self._errored: Counter[str] = Counter()
        self._constant: Counter[str] = Counter()
        self._untidy: Counter[str] = Counter()
        self._first_untidy: dict[str, str] = {}
        self._appeared: Counter[str] = Counter()
        self._first_appeared: dict[str, str] = {}
        self._gold = GoldIds(identities.inventory)
        self._gold_queries = 0
        self._reranked = 0
        self._rerank_same = 0
        self._over_k = 0
        self._under_k = 0
        self._judged = 0
        self._synthetic = 0
        self._sources: Counter[str] = Counter()
        self._revisions: Counter[str] = Counter()
        self._last_query: str | None = None
        self.ks: Counter[int] = Counter()

    def watch(self, trace: Trace) -> None:
        """Count one trace."""
        self.n += 1
        self.ks[trace.k_final] += 1
        for name in ("user_acl", "index_revision", "embedding_model", "filters_applied", "arms", "final_context_ids"):
            self._missing[name] += getattr(trace, name) is None
        self._assumed.update(assumed_fields(trace, self._settings.pipeline))
        self._missing["fused"] += trace.fused is None and len(trace.arms or {}) > 1
        self._missing["after_rerank"] += trace.after_rerank is None and self._reranker_configured
        self._missing["gold"] += not trace.gold_labelled and trace.answerable is None
        self._missing["prompt_ids"] += trace.prompt_ids is None and trace.prompt_tokens is None
        answer = trace.answer
        self._judged += answer is not None and (answer.correct is not None or answer.abstained is not None)
        self._synthetic += str((trace.slices or {}).get("origin", "")).casefold() == "synthetic"
        if trace.index_revision is not None:
            self._revisions[trace.index_revision] += 1
        if trace.timestamp is not None and (self._last_query is None or trace.timestamp > self._last_query):
            self._last_query = trace.timestamp
        for name, hits in trace.lists().items():
            for what in self._list(name, hits):
                self._untidy[what] += 1
                self._first_untidy.setdefault(what, f"{name} of {quoted(trace.query_id)}")
        if found := out_of_nowhere(trace, self._identities, self._settings.pipeline.arms or ()):
            name, chunk_id = found
            self._appeared[name] += 1
            self._first_appeared.setdefault(name, f"{quoted(chunk_id)} of {quoted(trace.query_id)}")
        for name, status in (trace.arm_status or {}).items():
            self._errored[name] += status.status is ArmState.ERRORED
        self._rerank(trace)
        if trace.final_context_ids is not None:
            self._over_k += len(trace.final_context_ids) > trace.k_final
            self._under_k += len(trace.final_context_ids) < trace.k_final
        self._gold.watch(trace)
        self._gold_queries += bool(trace.gold)
        self._access.watch(trace)
        self._sources.update(top_k_sources(trace))

    @property
    def _reranker_configured(self) -> bool:
        return said(self._settings.pipeline.rerank)

    def _list(self, name: str, hits: Ranking) -> Iterator[str]:
        """Count what concerns the arm, and name what is odd about the list."""
        if name.startswith("arm:"):
            arm = name.removeprefix("arm:")
            self._arms[arm] += 1
            self._empty[arm] += not hits
            scores = {hit.value for hit in hits}
            self._constant[arm] += len(hits) >= 3 and len(scores) == 1 and None not in scores
        ranks = [hit.rank for hit in hits if hit.rank is not None]
        if ranks:
            if min(ranks) == 0:
                yield "zero_based"
            if any(a >= b for a, b in pairwise(ranks)):
                yield "rank_disorder"
            if max(ranks) - min(ranks) + 1 > len(ranks):
                yield "rank_gaps"
        values = [hit.value for hit in hits if hit.value is not None]
        falling = all(a >= b for a, b in pairwise(values))
        if not falling and not all(a <= b for a, b in pairwise(values)):
            yield "not_in_score_order"
        if len({hit.id for hit in hits}) < len(hits):
            yield "repeated_ids"

    def _rerank(self, trace: Trace) -> None:
        before = trace.rerank_input if trace.rerank_input is not None else trace.fused
        if before is None and len(trace.arms or {}) == 1:
            before = next(iter((trace.arms or {}).values()))
        if trace.after_rerank is None or before is None or len(trace.after_rerank) < 3:
            return
        self._reranked += 1
        after = [hit.id for hit in trace.after_rerank]
        self._rerank_same += after == [hit.id for hit in before[: len(after)]]

    # --- what it adds up to ------------------------------------------------------------------------------------

    def facts(self) -> RunFacts:
        """What the procedure needs to know about the run."""
        chunks = (self._identities.inventory.chunks or {}).values()
        return RunFacts(stamps=Counter(chunk.embedding_model for chunk in chunks if chunk.embedding_model))

    def canary(self) -> Canary:
        """Shares of the top K by the arms that found it; needs no gold."""
        total = sum(self._sources.values())
        return Canary(source_share={name: n / total for name, n in sorted(self._sources.items())} if total else {})

    @property
    def k_final(self) -> int | None:
        """The one K of the run; None when queries differ."""
        return next(iter(self.ks)) if len(self.ks) == 1 else None

    def findings(self, problems: Problems | None = None) -> tuple[Finding, ...]:
        """Every finding, blocking ones first; with what the readers had to leave out or repair, when it is given."""
        found = [*self._gold.findings(), *self._arm_findings(), *self._rerank_findings()]
        found += input_findings(problems or Problems())
        found += self._run_findings()
        found += missing_field_findings(self._missing, self.n)
        found += assumed_findings(self._assumed, self.n)
        found += index_findings(self._identities.inventory, self._settings, self._revisions, self._last_query)
        found += self._list_findings()
        found += self._access.findings(self.n)
        found += config_findings(self._settings)
        found += k_findings(self._settings.pipeline.k_final, self.ks)
        order = list(Level)
        return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))

    def _arm_findings(self) -> Iterable[Finding]:
        for arm, n in self._arms.items():
            if self._empty[arm] == n:
                yield noted(
                    "dead_arm",
                    Level.WARN,
                    f"arm {arm} returned nothing on {n:,} of {queries(n)}",
                    f"Check that {arm} has an index, a tokenizer for the language, and no filter that matches nothing.",
                )
            elif self._constant[arm] >= max(MIN_FOR_PATTERN, n // 2):
                yield noted(
                    "constant_scores",
                    Level.WARN,
                    f"arm {arm}: every hit has the same score in {self._constant[arm]:,} of {queries(n)}",
                    "Log the raw score of the engine; ranks made from equal scores are arrival order.",
                )
            if self._errored[arm]:
                yield noted(
                    "arm_errored",
                    Level.WARN,
                    f"arm {arm} failed on {self._errored[arm]:,} of {queries(n)}",
                    "See arm_status.error of those queries.",
                )
        for arm in self._settings.pipeline.arms or ():
            if arm not in self._arms and self.n and self._missing["arms"] < self.n:
                yield noted(
                    "arm_not_logged",
                    Level.WARN,
                    f"arm {arm} is configured and stands in no trace",
                    f"Log arms.{arm} ([] when it returned nothing), or take it out of [pipeline] arms.",
                )
        total = sum(self._sources.values())
        lexical = [arm for arm in lexical_arms(self._arms) if self._arms[arm] > self._empty[arm]]
        if len(self._arms) > 1 and lexical and self._gold_queries + self.n >= 2 * MIN_FOR_PATTERN and total:
            only = sum(self._sources[arm] for arm in lexical)
            if not only:
                yield noted(
                    "lexical_share_zero",
                    Level.WARN,
                    f"no chunk in the top K of {queries(self.n)} came from {', '.join(lexical)} alone",
                    "Hybrid search may be vector-only: look for a floor on the fused list, or a fusion weight of 0.",
                )

    def _rerank_findings(self) -> Iterable[Finding]:
        if self._reranked >= MIN_FOR_PATTERN and self._rerank_same == self._reranked:
            yield noted(
                "reranker_noop",
                Level.WARN,
                f"the reranker changed no order on all {queries(self._reranked)}",
                "Map its scores to documents by its own index and keep them in full precision.",
            )

    def _run_findings(self) -> Iterable[Finding]:
        if self.n < self._settings.audit.min_queries:
            yield noted(
                "few_queries",
                Level.WARN,
                f"{queries(self.n)}: intervals are wide, and small differences mean nothing",
                f"Audit at least {self._settings.audit.min_queries} real queries.",
            )
        if self.n and self._synthetic == self.n:
            yield noted(
                "synthetic_only",
                Level.WARN,
                "every query is synthetic",
                "Add real user questions; synthetic ones are an extra.",
            )
        if self.n and not self._judged and self._settings.audit.scope == "answer":
            yield noted(
                "answers_unjudged",
                Level.INFO,
                "no answer was judged: a query whose evidence was delivered stays undetermined at Generate",
                "Log answer.correct, or audit with --scope retrieval.",
            )

    def _list_findings(self) -> Iterable[Finding]:
        odd = {
            "zero_based": ("ranks start at 0", "the position in the list is used"),
            "rank_disorder": ("ranks repeat or go back", "the position in the list is used"),
            "rank_gaps": ("ranks have gaps", "the position in the list is used"),
            "not_in_score_order": ("scores neither fall nor rise", "the order is kept as logged"),
            "repeated_ids": ("an id stands twice", "it counts once, at its first position"),
        }
        for name, n in self._untidy.items():
            what, so = odd[name]
            where = f"in {counted(n, 'list')} (first: {self._first_untidy[name]})"
            yield noted(name, Level.INFO, f"{what} {where}; {so}", "Nothing to do if that is how the step works.")
        if self._appeared:
            where = "; ".join(
                f"{name}: {queries(n)}, first {self._first_appeared[name]}"
                for name, n in sorted(self._appeared.items())
            )
            yield noted(
                "id_from_nowhere",
                Level.WARN,
                f"ids stand in a list and not in what it was made from ({where}): a list was cut in the log, an arm is "
                "not logged, or ids differ",
                "Log every list whole, as the step got or gave it; map ids that differ with id_map.",
            )
        if self._over_k:
            yield noted(
                "context_over_k",
                Level.WARN,
                f"more chunks than k_final says were packed for {queries(self._over_k)}",
                "Log the K that the generator really got; metrics are cut at k_final.",
            )
        if self._under_k == self.n and self.n >= MIN_FOR_PATTERN:
            yield noted(
                "context_under_k",
                Level.INFO,
                "every query packed fewer chunks than k_final: a hidden top_n or budget may cut the context",
                "Log the K that the generator really got, and [pipeline.rerank] top_n, [pipeline.pack] token_budget.",
            )
