"""Samples of the causes between the arms and the fused list."""

from cause_samples import Sample, probe
from diagnosis_builders import hits, rrf

_NAMES = [{"id": f"d{n}"} for n in range(1, 5)]
_DENSE, _BM25 = hits("d", 8, 0), hits("b", 8, 1, top=12.0, step=0.5)
_WEIGHTED = [{"id": hit["id"], "rank": n} for n, hit in enumerate((*_DENSE, *_BM25), 1)]
_DENSE_ONLY = rrf({"dense": hits("d", 8, 0)})
_ROW = [{**hit, "id": "row-7"} if hit["id"] == "g" else hit for hit in hits("d", 8, 3)]
_DISTANCES = hits("d", 8, 1, top=0.1, step=-0.05)
_TIED = [{**hit, "score": 1.0} for hit in hits("b", 8, 5)]


def _floor(**over: object) -> dict[str, object]:
    return {"thresholds": [{"value": 0.5, "on": "dense", "score": "cosine", "direction": "min", **over}]}


FUSION = {
    "metric_under_floor": Sample(
        {
            "gold_at": 1,
            "trace": {"arms": {"dense": hits("d", 8, 1, top=0.4)}, "after_threshold": [], "final_context_ids": []},
            "index": {"arms": {"dense": {"metric": "l2"}}},
            "pipeline": {**_floor(), "metric": {"expected": "cosine"}},
        },
        {"index": {"arms": {"dense": {"metric": "cosine"}}}},
        "dense compares by l2, the model expects cosine",
        "fail embed metric_under_floor",
        "fail fuse arm_floor,threshold_dropped",
    ),
    "floor_direction": Sample(
        {
            "gold_at": 1,
            "trace": {"arms": {"dense": _DISTANCES}, "after_threshold": [], "final_context_ids": []},
            "index": {"arms": {"dense": {"score": {"direction": "lower"}}}},
            "pipeline": _floor(),
        },
        {"index": {"arms": {"dense": {"score": {"direction": "higher"}}}}},
        "g: cosine 0.1 is under the floor 0.5 on dense; dense scores are distances: lower is better",
        "fail fuse floor_direction,arm_floor,threshold_dropped",
        "fail fuse arm_floor,threshold_dropped",
    ),
    "fused_floor": Sample(
        {
            "gold_at": 0,
            "lexical_at": 1,
            "trace": {"after_threshold": _NAMES, "final_context_ids": ["d1", "d2", "d3"]},
            "pipeline": _floor(on="fused", score="cosine"),
        },
        {"pipeline": _floor(on="none")},
        "g has no cosine score, and the floor 0.5 on fused asks for one",
        "fail fuse fused_floor,threshold_dropped",
        "fail fuse threshold_dropped",
    ),
    "arm_floor": Sample(
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1"]},
            "pipeline": _floor(value=0.88),
        },
        {"pipeline": _floor(value=0.85)},
        "g: cosine 0.85 is under the floor 0.88 on dense",
        "fail fuse arm_floor",
        "fail rerank pack_loss",
    ),
    "floor_probed": Sample(
        {"trace": {"probes": [probe("rank_without_threshold", 3)]}},
        {"trace": {"probes": [probe("rank_without_threshold", 4)]}},
        "g: rank 3 without the threshold",
        "fail fuse floor_probed",
        "fail retrieve below_k",
    ),
    "threshold_dropped": Sample(
        {"gold_at": 2, "trace": {"after_threshold": {"dense": [{"id": "d1"}]}, "final_context_ids": ["d1"]}},
        {"trace": {"after_threshold": {"dense": [{"id": "d1"}, {"id": "g"}]}}},
        "g: rank 2 in dense, gone after its threshold",
        "fail fuse threshold_dropped",
        "fail rerank pack_loss",
    ),
    "fusion_ids": Sample(
        {"lexical_at": 3, "trace": {"arms": {"dense": _ROW}, "id_map": {"row-7": "g"}}},
        {"trace": {"id_map": {"row-7": "other"}}},
        "g: rank 1 when fusion is recomputed with canonical ids; the log has it at 5",
        "fail fuse fusion_ids,fusion_formula",
        "fail undetermined",
    ),
    "single_arm_rule": Sample(
        {"gold_at": 1, "lexical_at": 0, "trace": {"arms": {"bm25": []}, "fused": [], "final_context_ids": []}},
        {"trace": {"fused": hits("d", 8, 1)}},
        "dense returned 8 hits, and the fused list is empty",
        "fail fuse single_arm_rule,fusion_formula",
        "fail rerank pack_loss",
    ),
    "fusion_order": Sample(
        {
            "gold_at": 1,
            "lexical_at": 1,
            "trace": {"fused": [{"id": hit["id"]} for hit in reversed(hits("d", 8, 1))]},
            "pipeline": {"fusion": {"method": "weighted"}},
        },
        {"trace": {"fused": [{"id": f"x{n}"} for n in range(7)] + [{"id": "g"}]}},
        "g: the fused list has d8 and 6 more above it, and no arm has",
        "fail fuse fusion_order",
        "fail fuse fusion_loss",
    ),
    "tied_scores": Sample(
        {
            "gold_at": 0,
            "lexical_at": 5,
            "trace": {"arms": {"bm25": _TIED}, "probes": [probe("lexical_rank", 1, "bm25")]},
        },
        {"trace": {"probes": [probe("lexical_rank", 5, "bm25")]}},
        "bm25: every score is 1; g at 5 there, 1 by the engine's own",
        "fail fuse tied_scores",
        "fail undetermined",
    ),
    "fusion_weight": Sample(
        {
            "gold_at": 0,
            "lexical_at": 1,
            "trace": {"fused": _WEIGHTED},
            "pipeline": {"fusion": {"weights": {"dense": 1.0, "bm25": 0.2}}},
        },
        {"pipeline": {"fusion": {"weights": {"bm25": 0.6}}}},
        "bm25 found g within 3 and weighs 0.2 of 1.2 in fusion",
        "fail fuse fusion_weight",
        "fail undetermined",
    ),
    "fusion_formula": Sample(
        {"gold_at": 1, "lexical_at": 1, "trace": {"fused": _DENSE_ONLY}},
        {"pipeline": {"fusion": {"method": "weighted"}}},
        "g: rank 1 when fusion is recomputed as configured; the log lost it",
        "fail fuse fusion_formula",
        "fail fuse fusion_loss",
    ),
    "fusion_loss": Sample(
        {
            "gold_at": 2,
            "lexical_at": 0,
            "trace": {"fused": [{"id": "b1"}, {"id": "d3"}, {"id": "b2"}]},
            "pipeline": {"fusion": {"method": "learned"}, "thresholds": None},
        },
        {"pipeline": {"fusion": {"method": None}}},
        "g: rank 2 in dense, not in the fused list",
        "fail fuse fusion_loss",
        "fail undetermined",
    ),
}
