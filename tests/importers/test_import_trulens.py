"""TruLens: decimal ids, texts without ids, Python's dicts in its CSV."""

import csv
import json

from span_builders import ids, imported

from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import guess

BASE = "ai.observability"
WASHINGTON = "Founded in 1861, the university is in Seattle."
COFFEE = "The coffee company has its seat in Seattle too."
TRACE = "38285552113882235753580066402372722435"


def event(span_type, span_id, parent="1", **attributes):
    named = {f"{BASE}.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return {
        "event_id": span_id,
        "record": {"name": f"__main__.RAG.{span_type}_it", "parent_span_id": parent, "kind": 1},
        "record_attributes": {f"{BASE}.span_type": span_type, f"{BASE}.record_id": "rec-1", **named},
        "record_type": "SPAN",
        "start_timestamp": f"2025-04-11 10:19:5{int(span_id)}.000000",
        "timestamp": f"2025-04-11 10:19:5{int(span_id)}.500000",
        "trace": {"parent_id": parent, "span_id": span_id, "trace_id": TRACE},
    }


EVENTS = (
    event("retrieval", "2", retrieval__query_text="where?", retrieval__retrieved_contexts=[COFFEE, WASHINGTON]),
    event(
        "reranking",
        "3",
        reranking__input_context_texts=[COFFEE, WASHINGTON],
        reranking__output_ranks=[1, 0],
        reranking__output_context_scores=[0.9, 0.1],
        reranking__top_n=2,
    ),
    event("generation", "4", call__kwargs__context_str=[WASHINGTON], **{"call__return": "In Seattle."}),
    event(
        "record_root",
        "1",
        "",
        record_root__input="where?",
        record_root__output="In Seattle.",
        record_root__ground_truth_output="Seattle.",
    ),
    event("eval", "5", eval__score=1),
)
INVENTORY = Texts.of([{"chunk_id": "c-1", "text": COFFEE}, {"chunk_id": "c-2", "text": WASHINGTON}])


def test_events_become_a_row_with_ids_from_the_inventory(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    (row,), report = imported("trulens", path, texts=INVENTORY)
    assert row == {
        "query_id": "rec-1",
        "query_text": "where?",
        "reference": "Seattle.",
        "timestamp": "2025-04-11T10:19:51.000000Z",
        "arms": {
            "retrieval_it": [{"id": "c-1", "rank": 1, "text": COFFEE}, {"id": "c-2", "rank": 2, "text": WASHINGTON}]
        },
        "arm_status": {"retrieval_it": {"status": "ran", "returned": 2}},
        "rerank_input": [{"id": "c-1", "rank": 1, "text": COFFEE}, {"id": "c-2", "rank": 2, "text": WASHINGTON}],
        "after_rerank": [
            {"id": "c-2", "rank": 1, "score": 0.9, "text": WASHINGTON},
            {"id": "c-1", "rank": 2, "score": 0.1, "text": COFFEE},
        ],
        "k_final": 2,
        "prompt_ids": ["c-2"],
        "final_context_ids": ["c-2"],
        "answer": {"text": "In Seattle."},
        "provenance": {
            "arms": "derived",
            "k_final": "derived",
            "prompt_ids": "derived",
            "final_context_ids": "derived",
        },
    }
    assert report.skipped["a span of an evaluation, not of a query"].count == 1
    assert report.notes["ids of hits: looked up by text in the inventory (same text)"].count == 6


def test_without_an_inventory_a_text_has_its_hash_for_an_id(tmp_path):
    path = tmp_path / "events.json"
    path.write_text(json.dumps(EVENTS))
    (row,), report = imported("trulens", path)
    assert [each[:5] for each in ids(row["arms"]["retrieval_it"])] == ["text-", "text-"]
    assert report.notes["ids of hits: none was logged, the hash of the text stands for it"].count == 6


def test_the_csv_of_its_table_holds_python_dicts(tmp_path):
    path = tmp_path / "events.csv"
    names = ("record", "event_id", "record_attributes", "start_timestamp", "timestamp", "trace")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("", *names), *((n, *(each[k] for k in names)) for n, each in enumerate(EVENTS))])
        csv.writer(file).writerow(["9", "{'name': object()}", "x", "{'a': nan}", "", "", "{}"])
    assert guess(path).format.name == "trulens"
    (row,), report = imported("trulens", path, texts=INVENTORY)
    assert (row["query_id"], ids(row["after_rerank"])) == ("rec-1", ["c-2", "c-1"])
    why = "no event of a span: it has no trace, or its record_attributes cannot be read"
    assert report.skipped[why].places == ("events.csv:7",)
