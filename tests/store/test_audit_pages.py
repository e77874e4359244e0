import pytest

from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity, Stage
from ragaudit.model.result import QueryResult
from ragaudit.model.trace import Trace
from ragaudit.store import AuditReader, AuditWriter
from ragaudit.store.reader import _matching

QUERIES = [
    # id, outcome, stage, causes, text
    ("q1", Outcome.FAIL, Stage.RERANK, ("top_n_cut",), "refund window"),
    ("q2", Outcome.PASS, Stage.NONE, (), "gift cards"),
    ("q3", Outcome.FAIL, Stage.FUSE, ("id_mismatch", "top_n_cut"), "REFUND for 100% of_it"),
    ("q4", Outcome.FAIL, Stage.RERANK, ("top_n_cut",), "sso"),
    ("q5", Outcome.FAIL, Stage.UNDETERMINED, (), "export limits"),
    ("q6", Outcome.FAIL, Stage.FILTER, (), "salary bands"),
]


@pytest.fixture
def reader(tmp_path):
    with AuditWriter(tmp_path / "run.audit", key="k") as writer:
        for query_id, outcome, stage, causes, text in QUERIES:
            severity = Severity.LEAK if query_id == "q6" else Severity.NORMAL
            diagnosis = Diagnosis(query_id=query_id, outcome=outcome, stage=stage, causes=causes, severity=severity)
            result = QueryResult(diagnosis=diagnosis, query_text=text, k_final=8, metrics={})
            writer.add([(result, Trace(query_id=query_id, query_text=text, k_final=8))])
    with AuditReader.open(tmp_path / "run.audit.partial") as reader:
        yield reader


def ids(rows):
    return [row.query_id for row in rows]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["q6", "q1", "q2", "q3", "q4", "q5"]),
        ({"stage": Stage.RERANK}, ["q1", "q4"]),
        ({"outcome": Outcome.FAIL}, ["q6", "q1", "q3", "q4", "q5"]),
        ({"outcome": Outcome.FAIL, "stage": Stage.UNDETERMINED}, ["q5"]),
        ({"cause": "top_n_cut"}, ["q1", "q3", "q4"]),
        ({"cause": "top_n_cut", "stage": Stage.RERANK}, ["q1", "q4"]),
        ({"cause": "no_such_cause"}, []),
        ({"severity": Severity.LEAK}, ["q6"]),
        ({"severity": Severity.NORMAL, "stage": Stage.FILTER}, []),
        ({"search": "refund"}, ["q1", "q3"]),
        ({"search": "100%"}, ["q3"]),
        ({"search": "f_i"}, ["q3"]),
        ({"search": "Q4"}, ["q4"]),
        ({"search": "'; DROP TABLE queries; --"}, []),
    ],
)
def test_pages_and_counts_agree_on_what_matches(reader, wanted, expected):
    assert ids(reader.page(**wanted)) == expected
    assert reader.count(**wanted) == len(expected)


def test_pages_follow_one_another_without_gap_or_repeat(reader):
    seen, after = [], None
    while rows := reader.page(after=after, limit=2):
        seen += ids(rows)
        after = rows[-1].seq
    assert seen == ["q6", "q1", "q2", "q3", "q4", "q5"]
    assert ids(reader.page(cause="top_n_cut", after=reader.page(cause="top_n_cut")[0].seq)) == ["q3", "q4"]


def test_results_stream_in_the_order_of_pages_with_or_without_those_that_passed(reader):
    assert [r.diagnosis.query_id for r in reader.iter_results()] == ["q6", "q1", "q2", "q3", "q4", "q5"]
    assert [r.diagnosis.query_id for r in reader.iter_results(passed=False)] == ["q6", "q1", "q3", "q4", "q5"]


def test_a_row_holds_what_a_list_shows(reader):
    row = reader.page(stage=Stage.FUSE)[0]
    assert (row.outcome, row.stage, row.causes) == (Outcome.FAIL, Stage.FUSE, ("id_mismatch", "top_n_cut"))
    assert (row.n_gold, row.gap, row.query_text) == (0, None, "REFUND for 100% of_it")


@pytest.mark.parametrize(
    ("wanted", "plan"),
    [
        ((None, None, None, None, None), "SEARCH q USING INTEGER PRIMARY KEY (rowid>?)"),
        ((Outcome.FAIL, None, None, None, None), "SEARCH q USING INDEX queries_outcome (outcome=? AND rowid>?)"),
        ((None, Stage.FUSE, None, None, None), "SEARCH q USING INDEX queries_stage (stage=? AND rowid>?)"),
        (
            (Outcome.FAIL, Stage.FUSE, None, None, None),
            "SEARCH q USING INDEX queries_stage_outcome (stage=? AND outcome=? AND rowid>?)",
        ),
        ((None, None, "x", None, None), "SEARCH c USING PRIMARY KEY (cause=? AND seq>?)"),
        ((None, None, None, Severity.LEAK, None), "SEARCH q USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ],
)
def test_pages_go_through_an_index_and_need_no_sort(reader, wanted, plan):
    table, seq, where, values = _matching(*wanted)
    sql = f"SELECT q.query_text FROM {table} WHERE {' AND '.join([*where, f'{seq} > ?'])} ORDER BY {seq} LIMIT 100"
    steps = [step for *_, step in reader._connection.execute(f"EXPLAIN QUERY PLAN {sql}", [*values, 5])]
    assert steps[0] == plan
    assert not [step for step in steps if step.startswith(("SCAN", "USE TEMP B-TREE"))]
