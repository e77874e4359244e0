"""What each metric asks, how it is computed, and when it is undefined: what `ragaudit metrics` prints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricInfo:
    """One metric, for people."""

    name: str
    question: str
    formula: str
    source: str
    order_sensitive: bool
    """Does it change when the same chunks come in another order?"""
    undefined_when: str
    needs: str
    """"gold": labelled ids. "judge": a judge model's verdicts."""


_NO_GOLD = "the query has no gold id of grade 1 or more that its user may read"
_NO_JUDGE = "no judge ran, or its verdicts did not come back"

REGISTRY: tuple[MetricInfo, ...] = (
    MetricInfo(
        name="hit@k",
        question="Did any of the evidence reach the generator?",
        formula="1 if a relevant chunk is in the first K, else 0",
        source="trec_eval success_K",
        order_sensitive=False,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="recall@k",
        question="How much of the evidence reached the generator?",
        formula="gold groups with a relevant chunk in the first K / gold groups with a relevant chunk",
        source="Kent et al. 1955; trec_eval recall_K",
        order_sensitive=False,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="precision@k",
        question="How much of the space for K chunks held evidence?",
        formula="slots among the first K with a relevant chunk / K",
        source="Kent et al. 1955; trec_eval P_K",
        order_sensitive=False,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="precision@returned",
        question="How much of what came back was evidence?",
        formula="slots among the first K with a relevant chunk / min(K, length of the list); 0 for an empty list",
        source="Kent et al. 1955; the divisor of most RAG harnesses",
        order_sensitive=False,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="mrr@k",
        question="How high did the first piece of evidence stand?",
        formula="1 / position of the first relevant chunk; 0 when that is below K",
        source="Voorhees 1999; trec_eval recip_rank, cut at K",
        order_sensitive=True,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="ndcg@k",
        question="Did the best evidence stand first?",
        formula="sum of grade / log2(position + 1) over the first K, divided by the same sum for the ideal list",
        source="Järvelin and Kekäläinen 2002; trec_eval ndcg_cut_K. Gain exp: Burges et al. 2005",
        order_sensitive=True,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="ap@k",
        question="Did the evidence come before everything else?",
        formula="precision where each gold group is first found within K, summed / gold groups with a relevant chunk",
        source="Manning, Raghavan and Schütze 2008; trec_eval map_cut_K",
        order_sensitive=True,
        undefined_when=_NO_GOLD,
        needs="gold",
    ),
    MetricInfo(
        name="context_recall",
        question="Could the reference answer be written from the packed chunks?",
        formula="reference claims that a packed chunk supports / reference claims asked about",
        source="Es et al. 2024 (RAGAS); Ru et al. 2024 (RAGChecker, claim recall)",
        order_sensitive=False,
        undefined_when=f"there is no reference answer, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="context_precision",
        question="Did the chunks that support the reference answer come first?",
        formula="average precision over the packed chunks; relevant = supports a reference claim",
        source="Es et al. 2024 (RAGAS)",
        order_sensitive=True,
        undefined_when=f"there is no reference answer, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="context_relevance",
        question="How much of the packed context did the answer rest on? Needs no reference.",
        formula="packed chunks that support an answer claim / packed chunks",
        source="Ru et al. 2024 (RAGChecker, context precision), with the answer's claims",
        order_sensitive=False,
        undefined_when=f"there is no answer, it abstains, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="faithfulness",
        question="Does the answer say only what the packed chunks say?",
        formula="answer claims that a packed chunk supports / answer claims asked about",
        source="Es et al. 2024 (RAGAS)",
        order_sensitive=False,
        undefined_when=f"there is no answer, it abstains, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="hallucination",
        question="How much of the answer comes from nowhere?",
        formula="answer claims that neither a packed chunk nor the reference supports / answer claims asked about",
        source="Ru et al. 2024 (RAGChecker)",
        order_sensitive=False,
        undefined_when=f"there is no answer, it abstains, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="utilisation",
        question="Of the evidence that was in the context, how much did the answer use?",
        formula="reference claims supported by the context and said by the answer / those supported by the context",
        source="Ru et al. 2024 (RAGChecker, context utilisation)",
        order_sensitive=False,
        undefined_when=f"the context supports no reference claim, there is no answer, {_NO_JUDGE}",
        needs="judge",
    ),
    MetricInfo(
        name="answer_recall",
        question="How much of the reference answer does the answer say?",
        formula="reference claims that the answer says / reference claims asked about",
        source="Ru et al. 2024 (RAGChecker, recall)",
        order_sensitive=False,
        undefined_when=f"there is no reference or no answer, {_NO_JUDGE}",
        needs="judge",
    ),
)
"""Every metric of `METRICS` and `JUDGED`, in that order."""

BY_NAME: dict[str, MetricInfo] = {info.name: info for info in REGISTRY}
