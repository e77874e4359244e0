import pytest

from ragaudit.errors import ConfigError
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity, Stage
from ragaudit.model.result import QueryResult
from ragaudit.model.trace import Trace
from ragaudit.store import AuditReader, AuditWriter
from ragaudit.store.filters import Sort, exactly, parse_filter

QUERIES = [
    # id, outcome, stage, causes, text
    ("q1", Outcome.FAIL, Stage.RERANK, ("top_n_cut",), "refund window"),
    ("q2", Outcome.PASS, Stage.NONE, (), "gift cards"),
    ("q3", Outcome.FAIL, Stage.FUSE, ("id_mismatch", "top_n_cut"), "REFUND for 100% of_it"),
    ("q4", Outcome.FAIL, Stage.RERANK, ("top_n_cut",), "sso"),
    ("q5", Outcome.FAIL, Stage.UNDETERMINED, (), "export limits"),
    ("q6", Outcome.FAIL, Stage.FILTER, (), "salary bands"),
]
RECALL = {"q1": 0.0, "q4": 0.5}


@pytest.fixture
def reader(tmp_path):
    with AuditWriter(tmp_path / "run.audit", key="k") as writer:
        for query_id, outcome, stage, causes, text in QUERIES:
            severity = Severity.LEAK if query_id == "q6" else Severity.NORMAL
            diagnosis = Diagnosis(query_id=query_id, outcome=outcome, stage=stage, causes=causes, severity=severity)
            result = QueryResult(
                diagnosis=diagnosis,
                query_text=text,
                k_final=8,
                metrics={"recall@k": RECALL.get(query_id)},
                slices={"language": "de"} if query_id == "q3" else {},
            )
            writer.add([(result, Trace(query_id=query_id, query_text=text, k_final=8))])
    with AuditReader.open(tmp_path / "run.audit.partial") as reader:
        yield reader


def ids(rows):
    return [row.query_id for row in rows]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", ["q6", "q1", "q2", "q3", "q4", "q5"]),
        ("stage:rerank", ["q1", "q4"]),
        ("stage:rerank,fuse", ["q1", "q3", "q4"]),
        ("stage:rer", ["q1", "q4"]),
        ("-stage:rerank", ["q6", "q2", "q3", "q5"]),
        ("!stage:rerank outcome:fail", ["q6", "q3", "q5"]),
        ("outcome:fail", ["q6", "q1", "q3", "q4", "q5"]),
        ("outcome:fail stage:undetermined", ["q5"]),
        ("is:failing", ["q6", "q1", "q3", "q4", "q5"]),
        ("is:passing", ["q2"]),
        ("is:undetermined", ["q5"]),
        ("cause:top_n_cut", ["q1", "q3", "q4"]),
        ("cause:top-n-cut stage:rerank", ["q1", "q4"]),
        ("cause:no_such_cause", []),
        ("is:leak", ["q6"]),
        ("-is:leak stage:filter", []),
        ("refund", ["q1", "q3"]),
        ("refund window", ["q1"]),
        ('"refund for"', ["q3"]),
        ("-refund is:failing", ["q6", "q4", "q5"]),
        ("100%", ["q3"]),
        ("f_i", ["q3"]),
        ("Q4", ["q4"]),
        ("'; DROP TABLE queries; --", []),
        ("recall<0.5", ["q1"]),
        ("recall>=0.5", ["q4"]),
        ("-recall<0.5 stage:rerank", ["q4"]),
        ("slice:language=de", ["q3"]),
        ("is:unreviewed stage:rerank", ["q1", "q4"]),
        ("is:reviewed", []),
        ("is:unjudged stage:fuse", ["q3"]),
        ("gap:stale_version", []),
        ("-gap:stale_version stage:fuse", ["q3"]),
    ],
)
def test_pages_and_counts_agree_on_what_a_filter_means(reader, wanted, expected):
    assert ids(reader.page(parse_filter(wanted))) == expected
    assert reader.count(parse_filter(wanted)) == len(expected)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("stge:x", "'stge' is not a key. Use stage, cause, outcome, gap, is, verdict, tag, judge, slice, a metric."),
        ("stage:", "stage: no value. Write stage:rerank."),
        ("stage:re", "'re' is not a stage. Use retrieve, rerank."),
        ("is:happy", "'happy' is not known after `is:`. Use failing,"),
        ("recall<low", "recall<low: not a number. Write, for example, recall<0.5."),
        ("size<3", "'size' is not a metric. Use hit@k,"),
        ("slice:language", "slice:language: no value. Write slice:language=VALUE."),
        ('"open', "not understood"),
    ],
)
def test_a_filter_that_means_nothing_says_what_would(wrong, said):
    with pytest.raises(ConfigError) as error:
        parse_filter(wrong)
    assert said in str(error.value)


def test_marked_queries_are_those_that_are_passed_in(reader):
    assert ids(reader.page(parse_filter("is:marked"), marks={"q4", "q2"})) == ["q2", "q4"]
    assert ids(reader.page(parse_filter("is:marked stage:rerank"), marks={"q4", "q2"})) == ["q4"]
    assert ids(reader.page(parse_filter("-is:marked stage:rerank"), marks={"q4"})) == ["q1"]
    assert reader.count(parse_filter("is:marked")) == 0


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (Sort.TRACES, ["q6", "q1", "q2", "q3", "q4", "q5"]),
        (Sort.STAGE, ["q3", "q6", "q1", "q4", "q2", "q5"]),
        (Sort.CAUSE, ["q3", "q1", "q4", "q6", "q2", "q5"]),
        (Sort.ID, ["q1", "q2", "q3", "q4", "q5", "q6"]),
    ],
)
def test_pages_follow_one_another_in_every_order_and_each_row_knows_its_place(reader, sort, expected):
    seen = []
    while rows := reader.page(sort=sort, offset=len(seen), limit=4):
        seen += ids(rows)
    assert seen == expected
    assert [reader.index_of(query_id, sort=sort) for query_id in seen] == list(range(6))
    fails = parse_filter("is:failing")
    assert [reader.index_of(row.query_id, fails, sort=sort) for row in reader.page(fails, sort=sort)] == list(range(5))
    assert reader.index_of("q2", fails, sort=sort) is None and reader.index_of("no such", sort=sort) is None


def test_results_stream_in_the_order_of_pages_with_or_without_those_that_passed(reader):
    assert [r.diagnosis.query_id for r in reader.iter_results()] == ["q6", "q1", "q2", "q3", "q4", "q5"]
    assert [r.diagnosis.query_id for r in reader.iter_results(passed=False)] == ["q6", "q1", "q3", "q4", "q5"]


def test_a_row_holds_what_a_list_shows(reader):
    row = reader.page(parse_filter("stage:fuse"))[0]
    assert (row.outcome, row.stage, row.causes) == (Outcome.FAIL, Stage.FUSE, ("id_mismatch", "top_n_cut"))
    assert (row.n_gold, row.gap, row.query_text) == (0, None, "REFUND for 100% of_it")


@pytest.mark.parametrize(
    ("wanted", "plan"),
    [
        ("outcome:fail", "SEARCH q USING INDEX queries_outcome (outcome=?)"),
        ("stage:fuse", "SEARCH q USING INDEX queries_stage (stage=?)"),
        ("outcome:fail stage:fuse", "SEARCH q USING INDEX queries_stage_outcome (stage=? AND outcome=?)"),
        ("cause:x", "SEARCH q USING INTEGER PRIMARY KEY (rowid=?)"),
        ("is:leak", "SEARCH q USING INTEGER PRIMARY KEY (rowid<?)"),
    ],
)
def test_pages_go_through_an_index_and_need_no_sort(reader, wanted, plan):
    steps = _plan(reader, wanted)
    assert steps[0] == plan
    assert not [step for step in steps if step.startswith(("SCAN", "USE TEMP B-TREE"))]


@pytest.mark.parametrize("wanted", ["", "is:failing", "is:failing is:unreviewed", "refund", "recall<0.5", "tag:x"])
def test_pages_of_any_other_filter_are_read_in_order_and_need_no_sort(reader, wanted):
    steps = _plan(reader, wanted)
    assert steps[0] == "SCAN q"
    assert not [step for step in steps if step.startswith("USE TEMP B-TREE")]


def _plan(reader, wanted):
    """The steps in which SQLite answers what `page` asks, as `page` asks it."""
    asked = []
    reader._connection.set_trace_callback(asked.append)
    reader.page(parse_filter(wanted), offset=5)
    reader._connection.set_trace_callback(None)
    return [step for *_, step in reader._connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 2, 200])
@pytest.mark.parametrize("wanted", ["", "stage:rerank", "is:passing", "is:marked", "cause:no_such_cause"])
def test_results_match_as_rows_do_and_stand_in_their_order(reader, monkeypatch, wanted, at_once):
    monkeypatch.setattr("ragaudit.store.reader.RESULTS_AT_ONCE", at_once)
    marks = {"q2", "q6"}
    found = [result.diagnosis.query_id for result in reader.iter_results(parse_filter(wanted), marks=marks)]
    assert found == ids(reader.page(parse_filter(wanted), marks=marks))


def test_results_without_those_that_passed(reader):
    found = [result.diagnosis.query_id for result in reader.iter_results(passed=False)]
    assert found == ["q6", "q1", "q3", "q4", "q5"]
    assert [r.diagnosis.query_id for r in reader.iter_results(parse_filter("is:passing"), passed=False)] == []


def test_one_query_can_be_a_filter(reader):
    assert ids(reader.page(exactly("q4"))) == ["q4"]
    assert ids(reader.page(exactly("q%"))) == []


def test_texts_of_a_few_queries_by_id(reader):
    assert reader.query_texts(["q4", "nope", "q1"]) == {"q4": "sso", "q1": "refund window"}
    assert reader.query_texts([]) == {}
