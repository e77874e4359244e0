"""`ragaudit judge`: plan, run, agree, calibrate, with a model that reads literally."""

import json
import subprocess
import sys

import pytest
from judged_bundle import Literal, budget, judged_bundle, trace, use

from ragaudit.audit import run as audit_run
from ragaudit.cli.main import execute
from ragaudit.judge import runner
from ragaudit.judge import settings as judge_settings
from ragaudit.judge.limits import Limits
from ragaudit.store import AuditReader
from ragaudit.store.calibration import read_calibration


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(monkeypatch):
    return use(monkeypatch, Literal())


@pytest.fixture
def audited(here, model, capsys):
    """The bundle, judged into run.audit."""
    judged_bundle(here / "b")
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    return here


def told(arguments, capsys, code=0):
    capsys.readouterr()
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# --- plan ----------------------------------------------------------------------------------------------------------


def test_plan_sends_nothing_and_writes_nothing(here, model, capsys):
    bundle = judged_bundle(here / "b", trace("q1", "Free keys expire after 30 days.", ("c1", "c2")))
    before = files(bundle)
    said = told(["judge", "plan", bundle], capsys)
    assert said.out.startswith("1 sample for test/literal (matrix mode)\n")
    assert "price not known for test/literal" in said.out
    assert "bytes of UTF-8 each" in said.out
    assert model.asked == []
    assert (files(bundle), files(here)) == (before, ["b"])


def test_plan_counts_what_is_on_tape(audited, model, capsys):
    asked = len(model.asked)
    plan = json.loads(told(["judge", "plan", "b", "--json"], capsys).out)
    assert (plan["schema"], plan["samples"]) == ("ragaudit.judge_plan/1", 3)
    assert plan["expected"]["calls"] == plan["expected"]["on_tape"] == asked
    assert (plan["expected"]["to_send"], plan["expected"]["input_tokens"], plan["expected"]["usd"]) == (0, 0, None)
    again = json.loads(told(["judge", "plan", "b", "--tape", "all", "--json"], capsys).out)
    assert again["expected"]["to_send"] == again["expected"]["calls"]


def test_plan_with_a_known_price(here, model, capsys):
    plan = json.loads(
        told(["judge", "plan", judged_bundle(here / "b"), "--judge", "gpt-4o-mini", "--json"], capsys).out
    )
    assert plan["model"] == "gpt-4o-mini"
    assert 0 < plan["expected"]["usd"] <= plan["most"]["usd"] < 0.05
    assert "$0.0" in told(["judge", "plan", "b", "--judge", "gpt-4o-mini"], capsys).out


def test_plan_without_a_model_says_how_to_name_one(here, model, capsys):
    bundle = judged_bundle(here / "b")
    (bundle / "ragaudit.toml").unlink()
    said = told(["judge", "plan", bundle], capsys, code=2)
    assert said.err.startswith("ragaudit: judge.model: no model is set.")


def test_plan_loads_neither_a_provider_nor_an_http_client(here):
    judged_bundle(here / "b")
    probe = "import sys\nfrom ragaudit.cli.main import execute\nassert execute(['judge', 'plan', 'b', '-q']) == 0\n"
    probe += "assert {'litellm', 'openai', 'httpx', 'aiohttp'}.isdisjoint(sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], cwd=here, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- run -----------------------------------------------------------------------------------------------------------


def test_run_is_an_audit_with_the_judge_on(audited, capsys):
    with AuditReader.open(audited / "run.audit") as reader:
        judgements = {judgement.query_id: judgement for judgement in reader.iter_judgements()}
    assert {q: j.metrics["faithfulness"] for q, j in judgements.items()} == {"q1": 1.0, "q2": 0.0, "q3": 1.0}
    assert judgements["q3"].found[0].chunk_id == "c1"
    assert files(audited) == ["b", "run.audit"]
    assert "judge.jsonl" in files(audited / "b")


def test_run_replays_what_was_recorded(audited, model, capsys):
    asked = len(model.asked)
    told(["judge", "run", "b", "-o", "again.audit", "--tape", "none", "-q"], capsys)
    assert len(model.asked) == asked


def test_evidence_in_a_source_that_was_never_indexed_is_a_lost_source_and_no_wrong_label(here, monkeypatch, capsys):
    class Loose(Literal):
        """Reads past markup, and quotes without it."""

        def reply(self, prompt, texts):
            return super().reply(prompt, {name: text.replace("*", "") for name, text in texts.items()})

    use(monkeypatch, Loose())
    claim = "Trial keys expire after 9 days."
    bundle = judged_bundle(here / "b", trace("q1", "I do not know.", ("c1", "c2"), reference=claim))
    source = {"source_id": "s2", "registered": True, "status": "failed", "text": "Trial **keys** expire after 9 days."}
    (bundle / "sources.jsonl").write_text(json.dumps({"source_id": "s", "status": "ok"}) + "\n" + json.dumps(source))
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    with AuditReader.open(here / "run.audit") as reader:
        (found,) = reader.judgement("q1").found
        (result,) = reader.iter_results()
    assert (found.chunk_id, found.quote) == ("source:s2#0", claim)
    assert (result.diagnosis.outcome, result.diagnosis.stage, result.diagnosis.gap) == ("fail", "ingestion", None)


def test_a_reply_that_is_not_on_tape_exits_with_4(here, model, capsys):
    said = told(["judge", "run", judged_bundle(here / "b"), "-o", "run.audit", "--tape", "none"], capsys, code=4)
    assert "no reply for claims@1" in said.err
    assert not (here / "run.audit").exists()


def test_run_without_a_model_is_refused(here, model, capsys):
    bundle = judged_bundle(here / "b")
    (bundle / "ragaudit.toml").unlink()
    said = told(["judge", "run", bundle], capsys, code=2)
    assert "no model is set" in said.err
    told(["judge", "run", bundle, "--judge", "test/other", "-q"], capsys)
    assert "claims" in model.asked


# --- limits --------------------------------------------------------------------------------------------------------


class Priced(Literal):
    """Ten cents a call."""

    async def complete(self, request):
        return (await super().complete(request)).model_copy(update={"usd": 0.1})


def six_queries(folder):
    return judged_bundle(folder, *(trace(f"q{n}", f"Free keys expire after {n} days.", ("c1", "c2")) for n in range(6)))


def test_a_budget_holds_for_all_batches_together_and_exits_with_4_when_it_is_spent(here, monkeypatch, capsys):
    monkeypatch.setattr(audit_run, "JUDGED_BATCH", 2)
    model = use(monkeypatch, Priced())
    six_queries(here / "b")
    said = told(["judge", "run", "b", "-o", "run.audit", "--max-cost", "0.55"], capsys, code=4)
    assert len(model.asked) == 5
    assert (
        "ragaudit: judge: the budget did not reach 4 calls. Raise max_cost or overall_timeout, and run the" in said.err
    )
    with AuditReader.open(here / "run.audit") as reader:
        summary = reader.summary()
        judgements = list(reader.iter_judgements())
    assert (summary.cost.usd, summary.judge.failures) == (pytest.approx(0.5), {"not asked": 4})
    assert len(judgements) == 6
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    assert len(model.asked) == 12


def test_a_time_limit_holds_for_all_batches_together(here, monkeypatch, capsys):
    class Clock:
        time = 0.0

        def monotonic(self):
            return self.time

    class Slow(Literal):
        async def complete(self, request):
            clock.time += 10
            return await super().complete(request)

    clock = Clock()
    monkeypatch.setattr(audit_run, "JUDGED_BATCH", 1)
    monkeypatch.setattr(runner, "SystemClock", lambda: clock)
    model = use(monkeypatch, Slow())
    judged_bundle(
        here / "b", *(trace(f"q{n}", f"{n} days.", ("c1",)) for n in range(4)), config="overall_timeout = 35\n"
    )
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys, code=4)
    assert len(model.asked) == 4


def test_limits_on_the_command_line_win_over_the_file(here, monkeypatch, capsys):
    seen = []
    use(monkeypatch, Literal())
    monkeypatch.setattr(judge_settings, "limits", lambda settings: seen.append(settings) or Limits())
    judged_bundle(here / "b", config="max_cost = 9.0\nrpm = 5\n")
    for command in (["judge", "run"], ["audit"]):
        told([*command, "b", "-o", "x.audit", "--max-cost", "0", "--tpm", "1000", "-q"], capsys)
    assert [(each.max_cost, each.rpm, each.tpm) for each in seen] == [(0.0, 5.0, 1000.0)] * 2


def test_the_cache_stands_beside_the_settings_wherever_the_command_runs(here, model, monkeypatch, capsys):
    bundle = judged_bundle(here / "b", trace("q1", "After 30 days.", ("c1",)), cache="remembered")
    (bundle / "ragaudit.toml").write_text('[judge]\nmodel = "test/literal"\ncache = "remembered"\n')
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    asked = len(model.asked)
    assert (bundle / "remembered" / "cache.db").exists()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    plan = json.loads(told(["judge", "plan", bundle, "--json"], capsys).out)
    assert plan["expected"]["on_tape"] == plan["expected"]["calls"] == asked
    told(["judge", "run", bundle, "-o", "again.audit", "--tape", "none", "-q"], capsys)
    (row,) = json.loads(told(["tape", "stats", bundle, "--json"], capsys).out)["places"]
    assert row["replies"] == asked and files(here / "elsewhere") == ["again.audit"]


# --- agree ---------------------------------------------------------------------------------------------------------


def test_agree_lists_chunks_that_labels_and_judge_see_differently(audited, capsys):
    said = told(["judge", "agree", "run.audit"], capsys)
    assert said.out.startswith("2 queries with labelled gold and a judgement\n")
    assert "-- Packed chunk is evidence against gold ids (n 4, yes from 0.5) ---" in said.out
    assert "-- For review (2) ---" in said.out
    assert "q2             c2: gold in the context, supports no claim says the judge" in " ".join(said.out.split("\n"))


def test_agree_as_json_has_every_figure_and_difference(audited, capsys):
    found = json.loads(told(["judge", "agree", "run.audit", "--json"], capsys).out)
    assert (found["schema"], found["against"], found["model"]) == (
        "ragaudit.judge_agreement/1",
        "gold ids",
        "test/literal",
    )
    chunks, recall = found["agreements"]
    # c1: gold and supported (q1), supported and no gold (q2); c2: neither (q1), gold and not supported (q2).
    assert (chunks["kappa"]["value"], chunks["n"], chunks["left_out"]) == (0.0, 4, {"no labelled gold": 1})
    assert recall["n"] == 2
    assert [(d["query_id"], d["kind"], d["chunk_id"]) for d in found["differences"]] == [
        ("q2", "judge_only", "c1"),
        ("q2", "gold_unsupported", "c2"),
    ]


def test_agree_needs_a_judged_audit(here, model, capsys):
    told(["audit", judged_bundle(here / "b"), "-o", "run.audit", "--judge", "off", "-q"], capsys)
    said = told(["judge", "agree", "run.audit"], capsys, code=3)
    assert said.err == "ragaudit: run.audit: no query was judged. Run `ragaudit judge run BUNDLE -o run.audit`.\n"


def test_modes_are_compared_on_the_queries_that_the_audit_judged(audited, monkeypatch, capsys):
    lenient = use(monkeypatch, Literal(lenient=("c2",)))
    found = json.loads(told(["judge", "agree", "run.audit", "--modes", "b", "--json"], capsys).out)
    assert (found["against"], found["queries"]) == ("matrix mode", 3)
    verdicts = found["agreements"][0]
    assert verdicts["about"] == "verdict"
    assert verdicts["n"] > 0
    differences = {
        (d["query_id"], d["claim"], d["chunk_id"], d["matrix"], d["per_claim"]) for d in found["differences"]
    }
    assert ("q1", "Free keys expire after 30 days.", "c2", "missing", "supported") in differences
    assert all(row[3:] == ("missing", "supported") for row in differences)
    assert "matrix" not in lenient.asked  # the matrix was on tape
    said = told(["judge", "agree", "run.audit", "--modes", "b", "--tape", "none"], capsys)
    assert said.out.startswith("3 queries judged in both modes: matrix, and one claim at a time\n")
    assert "matrix missing, per claim supported" in said.out


def test_modes_off_tape_exit_with_4(audited, capsys):
    said = told(["judge", "agree", "run.audit", "--modes", "b", "--tape", "none"], capsys, code=4)
    assert "no reply for" in said.err


def test_modes_that_the_budget_did_not_reach_exit_with_4_after_what_there_is(audited, monkeypatch, capsys):
    use(monkeypatch, Literal(failing=budget()))
    said = told(["judge", "agree", "run.audit", "--modes", "b", "-q"], capsys, code=4)
    assert said.out.startswith("3 queries judged in both modes")
    assert "the budget did not reach 3 queries" in said.err
    said = told(["judge", "agree", "run.audit", "--replicates", "b", "-q"], capsys, code=4)
    assert "the budget did not reach 3 queries" in said.err


# --- calibrate -----------------------------------------------------------------------------------------------------


def labels(folder, *rows):
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


FAITHFUL = (
    {"query_id": "q1", "metric": "faithfulness", "label": True},
    {"query_id": "q2", "metric": "faithfulness", "label": False},
)


def test_calibrate_prints_agreement_cuts_and_means_and_writes_nothing(audited, capsys):
    before = (audited / "run.audit").read_bytes()
    said = told(["judge", "calibrate", "run.audit", labels(audited, *FAITHFUL)], capsys)
    assert said.out.startswith("2 labels by people not named (labels.jsonl) against test/literal\n")
    assert "-- Faithfulness against people (n 2, yes from 0.7) ---" in said.out
    assert "judge.cuts.faithfulness = 0.5 (now 0.7)" in said.out
    assert "corrected" in said.out
    assert "[judge.cuts]\nfaithfulness = 0.5\n" in said.err
    assert "Nothing was written. To keep it: ragaudit judge calibrate run.audit" in said.err
    assert (audited / "run.audit").read_bytes() == before


def test_calibrate_write_keeps_it_in_the_audit_file(audited, capsys):
    path = labels(audited, *FAITHFUL)
    assert read_calibration(audited / "run.audit") is None
    said = told(["judge", "calibrate", "run.audit", path, "--write"], capsys)
    assert said.err.endswith("Wrote it into run.audit. Next: ragaudit report run.audit\n")
    kept = read_calibration(audited / "run.audit")
    assert (kept.model, kept.n_labels, kept.prompts) == ("test/literal", 2, ("claims@1", "matrix@1"))
    with AuditReader.open(audited / "run.audit") as reader:
        assert reader.summary().judge.calibration == (
            "agreement with people on 2 labels in labels.jsonl (balanced accuracy, kappa): "
            "Faithfulness 1.00 [0.44, 1.00], 1.00 [1.00, 1.00] (n 2)"
        )
        assert len(list(reader.iter_results())) == 3


def test_calibrate_as_json_is_the_record(audited, capsys):
    rows = [*FAITHFUL, {"query_id": "q1", "claim": "r1", "chunk_id": "c1", "label": "supported"}]
    found = json.loads(told(["judge", "calibrate", "run.audit", labels(audited, *rows), "--json"], capsys).out)
    assert found["schema"] == "ragaudit.calibration/1"
    assert [each["about"] for each in found["agreements"]] == ["faithfulness", "verdict"]
    assert found["cuts"][0]["setting"] == "judge.cuts.faithfulness"
    assert found["means"][0]["raw"]["n"] == 3


def test_calibrate_uses_the_cuts_that_were_in_force(here, model, capsys):
    judged_bundle(here / "b", config="[judge.cuts]\nfaithfulness = 0.2\n")
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    found = json.loads(told(["judge", "calibrate", "run.audit", labels(here, *FAITHFUL), "--json"], capsys).out)
    assert (found["agreements"][0]["cut"], found["cuts"][0]["before"]) == (0.2, 0.2)


def test_labels_that_do_not_fit_are_refused(audited, capsys):
    said = told(["judge", "calibrate", "run.audit", labels(audited, {"query_id": "q1", "label": 1})], capsys, code=3)
    assert said.err.startswith("ragaudit: labels.jsonl:1: needs either metric or claim.")
    other = labels(audited, {"query_id": "q9", "metric": "faithfulness", "label": 1})
    said = told(["judge", "calibrate", "run.audit", other], capsys, code=3)
    assert "Are these the labels of another run?" in said.err


def test_hostile_ids_and_reasons_are_shown_as_text(here, model, capsys):
    bad = "q\x1b[2J\u202e"
    judged_bundle(here / "b", trace(bad, "Paid keys never expire.", ("c1", "c2"), gold_ids=["c2"]))
    told(["judge", "run", "b", "-o", "run.audit", "-q"], capsys)
    said = told(["judge", "agree", "run.audit"], capsys)
    assert "\x1b" not in said.out and "\u202e" not in said.out
    assert "q<U+001B>" in said.out
