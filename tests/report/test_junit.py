"""JUnit XML: valid whatever an id holds, and red only for what falls short of something."""

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from report_builders import CAUSES, HOSTILE, RESULTS, failing, leaking, result, summary, undecided

from ragaudit.compare.bar import NOTHING, bar
from ragaudit.compare.gates import rules
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.report import junit
from tests.compare.compare_builders import query as frozen
from tests.compare.compare_builders import run as frozen_run

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")


def text(results=RESULTS, against=NOTHING, run=None, **options):
    out = io.StringIO()
    junit.write(out, run or summary(), lambda: iter(results), CAUSES, against, **options)
    return out.getvalue()


def tree(*arguments, **options):
    """The document, checked against the schema, with the counts that it says checked against its cases."""
    written = text(*arguments, **options)
    SCHEMA.validate(written)
    root = ElementTree.fromstring(written)
    for suite in [root, *root.findall("testsuite")]:
        assert int(suite.get("tests")) == len(suite.findall(".//testcase"))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(count)) == len(suite.findall(f".//testcase/{tag}")), count
    return root


def states(root):
    """Case name -> (what it is, its message)."""
    found = {}
    for case in root.iter("testcase"):
        told = next((case.find(tag) for tag in ("failure", "error", "skipped") if case.find(tag) is not None), None)
        found[case.get("name")] = ("passed", None) if told is None else (told.tag, told.get("message"))
    return found


def case(root, name):
    (found,) = [each for each in root.iter("testcase") if each.get("name") == name]
    return found


def held(now, before=None, gates=None):
    return bar(
        frozen_run(now, name="now"),
        rules(gates or {}, "ragaudit.toml"),
        None if before is None else frozen_run(before, name="main"),
    )


# --- what is red ------------------------------------------------------------------------------------------------------


def test_a_failing_query_that_nothing_holds_is_skipped_and_says_why():
    root = tree((failing(), result("q5", Outcome.PASS, Stage.NONE)))
    assert states(root) == {
        "q1": ("skipped", "FAIL at Rerank/pack; held against nothing: write [gates], or pass --baseline"),
        "q5": ("passed", None),
    }
    assert case(root, "q1").find("system-out").text == (
        "c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8\n"
        "top n cut: The chunk was ranked below top_n. Change one thing: Raise pipeline.rerank.top_n; "
        "keep everything else."
    )


def test_a_leak_is_red_even_when_nothing_else_is_held():
    failure = case(tree((leaking(),)), "q0").find("failure")
    assert failure.get("type") == "leak"
    assert failure.get("message") == (
        "LEAK: the user may not read what stood in the context: hr#9. Restore the access filter first."
    )


def test_what_has_no_verdict_is_skipped_with_its_reason():
    delivered = result("q3", Outcome.UNDETERMINED, Stage.NONE, delivered=True)
    unlabelled = result("q6", Outcome.NOT_APPLICABLE, Stage.NONE).model_copy(
        update={"undefined": {"recall@k": "no_eligible_gold"}}
    )
    doubted = result("q4", Outcome.LABEL_ISSUE, Stage.NONE, evidence=("c9: its span is not in its source",))
    assert states(tree((delivered, unlabelled, doubted))) == {
        "q3": ("skipped", "UNDETERMINED: the evidence was delivered and nobody judged the answer"),
        "q6": ("skipped", "NOT APPLICABLE: no eligible gold"),
        "q4": ("skipped", "LABEL ISSUE: c9: its span is not in its source"),
    }


def test_against_a_baseline_only_what_newly_fails_is_red():
    before = [frozen("q1"), frozen("q2", recall=0.0, stage=Stage.FUSE), frozen("gone")]
    now = [
        frozen("q1", recall=0.0, stage=Stage.RERANK),
        frozen("q2", recall=0.0, stage=Stage.RERANK),
        frozen("q3", recall=0.0, stage=Stage.RERANK),
    ]
    root = tree((failing("q1"), failing("q2"), failing("q3")), held(now, before))
    assert states(root) == {
        "q1": ("failure", "FAIL at Rerank/pack; pass in the baseline"),
        "q2": ("skipped", "FAIL at Rerank/pack; Fuse/threshold in the baseline"),
        "q3": ("skipped", "FAIL at Rerank/pack; not in the baseline"),
        "gone": ("error", "in the baseline and not in this run: audit the same queries, or freeze a new baseline"),
    }
    assert case(root, "q1").find("failure").get("type") == "newly_failing"


def test_a_gate_that_fires_is_red_and_so_are_the_queries_that_make_it():
    now = [frozen("q1", recall=0.0, stage=Stage.RERANK), frozen("q5"), frozen("q2", recall=None, stage=Stage.FUSE)]
    gates = {"recall@k": 0.8, "leaks": 0, "mrr@k": 0.5, "ndcg@k": {"max_drop": 0.1}}
    root = tree((failing("q1"), result("q5", Outcome.PASS, Stage.NONE), undecided("q2")), held(now, gates=gates))
    assert states(root) == {
        "recall@k.min": ("failure", "recall@k.min: mean at least 0.8; it is 0.500 (2 queries, 1 undefined)"),
        "leaks": ("passed", None),
        "mrr@k.min": ("failure", "mrr@k.min: mean at least 0.5; it is undefined for every query (not measured)"),
        "ndcg@k.max_drop": ("skipped", "is measured against a baseline: pass --baseline"),
        "q1": (
            "failure",
            "FAIL at Rerank/pack; makes a gate fire: recall@k.min: mean at least 0.8; it is 0.500 "
            "(2 queries, 1 undefined)",
        ),
        "q5": ("passed", None),
        "q2": ("skipped", "FAIL, stage not decided; no gate that fired counts it"),
    }
    assert case(root, "recall@k.min").find("failure").text == "queries: q1"
    assert [suite.get("name") for suite in root] == ["gates", "queries"]
    assert case(root, "q1").get("classname") == "support-kb"
    assert case(root, "leaks").get("classname") == "support-kb.gates"


def test_a_query_that_passes_but_is_under_a_gate_is_red():
    now = [frozen("q5", metrics={"mrr@k": 0.25})]
    run = frozen_run(now)
    found = bar(run, rules({"mrr@k": {"coverage": 1.0}, "outcomes": {"pass": 0}}, "ragaudit.toml"))
    root = tree((result("q5", Outcome.PASS, Stage.NONE),), found)
    assert states(root)["q5"] == (
        "failure",
        "PASS; makes a gate fire: outcomes.pass: at most 0; it is 1 queries at pass",
    )


def test_the_state_of_a_query_is_in_its_properties():
    failed = failing().model_copy(update={"slices": {"language": "de"}})
    named = {each.get("name"): each.get("value") for each in case(tree((failed,)), "q1").iter("property")}
    assert named == {"outcome": "fail", "stage": "rerank", "causes": "top_n_cut", "slice.language": "de"}


def test_a_run_without_queries_is_an_empty_suite():
    root = tree(())
    assert (root.get("tests"), len(root.findall("testsuite"))) == ("0", 1)


# --- outside text -----------------------------------------------------------------------------------------------------


def test_no_query_text_unless_it_is_asked_for():
    shown = (failing(), result("q5", Outcome.PASS, Stage.NONE, text="who pays?"), leaking())
    assert "refund window?" not in text(shown) and "who pays?" not in text(shown)
    root = tree(shown, with_text=True)
    assert case(root, "q1").find("system-out").text.startswith("query: refund window?\n")
    assert case(root, "q5").find("system-out").text == "query: who pays?"


@pytest.mark.parametrize("written", [HOSTILE, "\x00", "\ud800", "\ufffe", "\uffff", "]]>", "&#0;", "<!ENTITY x>", " "])
def test_any_id_gives_valid_xml(written):
    hostile = failing(written, evidence=(written,), causes=(written,), text=written).model_copy(
        update={"slices": {written: written}}
    )
    run = summary(run=summary().run.model_copy(update={"name": f"r{written}", "fingerprint": written}))
    for with_text in (False, True):
        out = text((hostile, leaking(f"q{written}", written)), run=run, with_text=with_text)
        out.encode("ascii")
        ElementTree.fromstring(out)
        assert "<script" not in out and "\x1b" not in out


@settings(max_examples=60)
@given(st.text(min_size=1), st.text())
def test_every_text_gives_xml_that_reads_back(query_id, evidence):
    root = ElementTree.fromstring(text((failing(query_id, evidence=(evidence,)),)))
    assert len(list(root.iter("testcase"))) == 1


def test_an_empty_id_still_has_a_name():
    assert states(tree((failing(" "),))).keys() == {"(empty)"}


def test_an_id_shows_as_written_and_a_control_character_by_its_code():
    assert set(states(tree((failing("a<b>&\"'\x1b\u202e返"),)))) == {"a<b>&\"'<U+001B><U+202E>返"}


def test_long_texts_are_cut_with_a_count():
    failure = case(tree((leaking(chunk_id="x" * 9_000),)), "q0").find("failure")
    assert failure.get("message").endswith(" more characters)") and len(failure.get("message")) < 450
    assert len(failure.text) < 4_100
    assert len(case(tree((failing("n" * 3_000),)), "n" * 3_000).get("name")) == 3_000


# --- in bounded memory ------------------------------------------------------------------------------------------------


def test_results_are_read_twice_and_never_held():
    alive = 0
    most = 0
    readings = 0

    def results():
        nonlocal readings
        readings += 1
        for n in range(500):
            yield Watched.of(n)

    class Watched(type(failing())):
        @classmethod
        def of(cls, n):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return cls.model_construct(**dict(failing(f"q{n}")))

        def __del__(self):
            nonlocal alive
            alive -= 1

    out = io.StringIO()
    junit.write(out, summary(), results, CAUSES)
    assert readings == 2
    assert most <= 3
    assert out.getvalue().count("<testcase ") == 500


def test_the_report_is_the_golden_one_byte_for_byte():
    now = [frozen("q1", recall=0.0, stage=Stage.RERANK), frozen("q0", stage=Stage.FILTER, leaks=("hr#9",))]
    against = held(now, [frozen("q1"), frozen("q0"), frozen("q9")], {"recall@k": 0.8, "leaks": 0})
    golden = Path(__file__).with_name("golden_junit.xml")
    assert text((*RESULTS, result("q5", Outcome.PASS, Stage.NONE)), against) == golden.read_text("utf-8")
