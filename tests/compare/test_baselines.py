import json

import pytest
from compare_builders import JUDGE, numbered, query, run

from ragaudit.compare.baselines import (
    baseline_text,
    load_side,
    name_from,
    place_of,
    read_baseline,
    stored,
    write_baseline,
)
from ragaudit.compare.freeze import freeze, gold_digest, gold_version
from ragaudit.errors import ConfigError, InputError
from ragaudit.model.diagnosis import Diagnosis, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.result import AclNote, Canary, Estimate, InputFile, JudgeNote, QueryResult, RunInfo, Summary
from ragaudit.model.trace import Gold, GoldMode, Trace
from ragaudit.store import AuditReader, AuditWriter


def labelled(query_id="q1", **fields):
    return Trace(query_id=query_id, query_text="secret words", k_final=8, **({"gold": (Gold(id="c9"),)} | fields))


def frozen(tmp_path, trace=None, judge=None, **result):
    given = {
        "diagnosis": Diagnosis(query_id="q1", outcome=Outcome.PASS, delivered=True),
        "query_text": "secret words",
        "k_final": 8,
        "metrics": {"recall@k": 0.5, "mrr@k": None, "faithfulness": None},
        "undefined": {"mrr@k": "unlabelled", "faithfulness": "judge off"},
    }
    info = RunInfo(
        name="support kb",
        traces=1,
        k_final=8,
        fingerprint="b2:1",
        pipeline={"rerank": {"top_n": 8}},
        inputs={"traces.jsonl": InputFile(sha256="sha256:ab", rows=1)},
        ragaudit="0.1.0",
        acl_rule="all",
        acl_everyone=("z", "public"),
    )
    summary = Summary(
        run=info,
        preflight=(),
        metrics={
            "recall@k": Estimate(mean=0.5, low=0.5, high=0.5, n=1),
            "faithfulness": Estimate(mean=None, low=None, high=None, n=0),
        },
        at={},
        slices=(),
        outcomes={"pass": 1},
        stages={},
        undetermined={},
        delivered_unjudged=0,
        patterns=(),
        acl=AclNote(),
        not_retrieval=(),
        canary=Canary(),
        judge=judge,
    )
    path = tmp_path / "run.audit"
    with AuditWriter(path, key="k") as writer:
        writer.add([(QueryResult(**(given | result)), trace or labelled())])
        writer.finish(summary)
    with AuditReader.open(path) as reader:
        return freeze(reader, "kb")


def test_a_frozen_run_holds_what_a_comparison_needs_and_no_text(tmp_path):
    baseline = frozen(tmp_path, labelled(config={"rerank": {"top_n": 3}}))
    assert (baseline.name, baseline.run, baseline.fingerprint, baseline.k_final) == ("kb", "support kb", "b2:1", 8)
    assert (baseline.acl.rule, baseline.acl.everyone) == ("all", ("public", "z"))
    assert baseline.judge is None
    assert list(baseline.metrics) == ["recall@k"]
    (only,) = baseline.queries
    assert (only.state, only.metrics) == ("pass", {"recall@k": 0.5})
    assert only.config == {"pipeline.rerank.top_n": 3}
    assert baseline.why_undefined(only, "mrr@k") == "unlabelled"
    assert baseline.why_undefined(only, "faithfulness") == "judge off"
    assert "secret" not in baseline_text(baseline)


def test_the_judge_and_its_prompts_are_frozen(tmp_path):
    note = JudgeNote(model="m1", mode="two_calls", prompts={"claims": 1, "matrix": 2})
    assert frozen(tmp_path, judge=note).judge == JUDGE


def test_leaks_and_the_stage_are_frozen(tmp_path):
    diagnosis = Diagnosis(
        query_id="q1", outcome=Outcome.FAIL, stage=Stage.FILTER, severity=Severity.LEAK, leaks=("c7",)
    )
    (only,) = frozen(tmp_path, diagnosis=diagnosis).queries
    assert (only.state, only.leaks) == ("filter", ("c7",))


def test_access_names_who_asked_and_what_gold_they_may_not_read(tmp_path):
    def access(trace, eligible):
        gold = (GoldDiagnosis(id="c9", eligible=eligible, outcome=Outcome.PASS),)
        diagnosis = Diagnosis(query_id="q1", outcome=Outcome.PASS, gold=gold)
        return frozen(tmp_path, trace, diagnosis=diagnosis).queries[0].access

    same = access(labelled(user_acl=("a", "b")), True)
    assert access(labelled(user_acl=("b", "a")), True) == same
    assert access(labelled(user_acl=("a",)), True) != same
    assert access(labelled(user_acl=("a", "b")), False) != same


@pytest.mark.parametrize(
    "other",
    [
        {"gold": (Gold(id="c8"),)},
        {"gold": (Gold(id="c9", grade=2),)},
        {"gold": (Gold(id="c9", suspect=True),)},
        {"gold_mode": GoldMode.ANY},
        {"gold_groups": (("c9",),)},
        {"answerable": False},
    ],
)
def test_other_labels_have_another_digest(other):
    assert gold_digest(labelled(**other)) != gold_digest(labelled())


def test_the_order_of_labels_has_no_part_in_the_gold_version():
    two = (Gold(id="a"), Gold(id="b"))
    assert gold_digest(labelled(gold=two)) == gold_digest(labelled(gold=two[::-1]))
    queries = numbered([1.0, 0.0])
    assert gold_version(queries) == gold_version(queries[::-1])
    assert gold_version(queries) != gold_version([query("q01"), query("q02", gold="b2:other")])


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_baseline_file_reads_back_as_it_was(tmp_path):
    baseline = run([query("q\u202e1", leaks=("c1",)), query("é", config={"a": [1, None]})], judge=JUDGE)
    write_baseline(baseline, tmp_path / "b.json")
    assert read_baseline(tmp_path / "b.json") == baseline
    assert load_side(str(tmp_path / "b.json")) == (baseline, True)


def test_a_baseline_file_has_sorted_keys_and_a_query_a_line(tmp_path):
    text = baseline_text(run(numbered([1.0, 0.5])))
    assert list(json.loads(text)) == sorted(json.loads(text))
    rows = [line for line in text.splitlines() if '"query_id"' in line]
    assert len(rows) == 2
    assert '"recall@k": 0.5' in rows[1] and '"query_id": "q02"' in rows[1]
    changed = baseline_text(run(numbered([1.0, 0.25]))).splitlines()
    assert [line for line in changed if line not in text.splitlines() and "query_id" in line] == [
        rows[1].replace("0.5", "0.25")
    ]


def test_nothing_can_hide_in_a_baseline_file():
    text = baseline_text(run([query("q\u202e\x1b[2J\u2028é返")]))
    assert "q\\u202e\\u001b[2J\\u2028é返" in text


def test_a_baseline_is_not_replaced_by_accident(tmp_path):
    path = tmp_path / "deep" / "b.json"
    write_baseline(run(), path)
    with pytest.raises(ConfigError, match=r"exists. Pass --replace"):
        write_baseline(run(name="other"), path)
    write_baseline(run(name="other"), path, replace=True)
    assert read_baseline(path).name == "other"
    assert sorted(each.name for each in path.parent.iterdir()) == ["b.json"]


def test_a_file_that_is_no_baseline_is_never_replaced(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text('{"mine": 1}')
    with pytest.raises(ConfigError, match="exists and is not a baseline"):
        write_baseline(run(), path, replace=True)
    assert path.read_text() == '{"mine": 1}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "not a baseline file"),
        ('{"schema": "ragaudit.baseline/9"}', "its schema is 'ragaudit.baseline/9', this ragaudit reads"),
        ('{"schema": "ragaudit.baseline/1", "name": 3}', "name: Input should be a valid string"),
    ],
)
def test_a_damaged_baseline_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_baseline(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)


def test_a_query_that_stands_there_twice_is_refused(tmp_path):
    path = tmp_path / "b.json"
    path.write_text(baseline_text(run([query("q1"), query("q1")])))
    with pytest.raises(InputError, match="query 'q1' stands there twice"):
        read_baseline(path)


def test_a_side_is_found_by_the_name_of_a_baseline(tmp_path):
    write_baseline(run(), place_of("main", tmp_path))
    assert load_side("main", tmp_path)[0].name == "base"
    assert [path.name for path in stored(tmp_path)] == ["main.json"]
    with pytest.raises(
        InputError, match=r"nope: no such audit file and no baseline of that name. Baselines here: main"
    ):
        load_side("nope", tmp_path)


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a b"])
def test_a_name_that_leaves_the_folder_is_refused(name):
    with pytest.raises(ConfigError, match="is no file name"):
        place_of(name)


@pytest.mark.parametrize(
    ("said", "name"), [("support kb, October", "support-kb-October"), ("返金", "run"), ("..", "run")]
)
def test_a_name_is_made_from_the_name_of_the_run(said, name):
    assert name_from(said) == name
    assert place_of(name)


def test_a_query_line_begins_with_what_a_review_looks_for():
    frozen = run([query("q1", stage=Stage.RERANK, recall=1 / 3, leaks=("hr#9",)), query("q2")])
    lines = [line.strip() for line in baseline_text(frozen).splitlines() if '"query_id"' in line]
    assert lines == [
        '{"query_id": "q1", "outcome": "fail", "stage": "rerank", "leaks": ["hr#9"], "access": "b2:access", '
        '"gold": "b2:gold", "k": 8, "metrics": {"recall@k": 0.3333333333333333}},',
        '{"query_id": "q2", "outcome": "pass", "access": "b2:access", "gold": "b2:gold", "k": 8, '
        '"metrics": {"recall@k": 1.0}}',
    ]


def test_the_last_bits_of_a_value_are_not_frozen(tmp_path):
    assert frozen(tmp_path, metrics={"recall@k": 1 / 3}).queries[0].metrics == {"recall@k": 0.3333333333}
