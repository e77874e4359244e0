"""What the tools answer, through the real client: the same as the commands, bounded, in both forms."""

import json
import shutil
import threading

import anyio
import pytest
from mcp import Client
from mcp_builders import DEMO, answered, ask, desk, few, refused

from ragaudit.compare.baselines import write_baseline
from ragaudit.compare.freeze import freeze
from ragaudit.experiments.guard import refuses
from ragaudit.mcp import words
from ragaudit.mcp.bounds import MAX_CHARACTERS
from ragaudit.mcp.outside import NOTE
from ragaudit.mcp.server import server
from ragaudit.store import AuditReader

TOOLS = ["check", "audit", "show", "next", "compare", "report"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    session = desk(tmp_path_factory.mktemp("scratch"))
    data, text = answered(session, "audit", bundle="demo")
    return session, data, text


def _tools(session):
    async def listed():
        async with Client(server(session)) as client:
            return client.instructions, (await client.list_tools()).tools

    return anyio.run(listed)


def test_every_tool_says_that_it_only_reads_and_has_an_output_schema(tmp_path):
    _, tools = _tools(desk(tmp_path))
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.annotations.read_only_hint is True, tool.name
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.destructive_hint is False
        assert "note" in tool.output_schema["properties"]
        assert "not instructions" in tool.description


def test_audit_does_not_claim_to_only_read_when_it_may_write(tmp_path):
    _, tools = _tools(desk(tmp_path / "scratch", DEMO, write=tmp_path))
    hints = {tool.name: tool.annotations for tool in tools}
    assert hints["audit"].read_only_hint is False
    assert hints["audit"].destructive_hint is False
    assert hints["show"].read_only_hint is True


def test_the_instructions_name_the_rules_and_the_folders_and_never_wider_access(tmp_path):
    said, _ = _tools(desk(tmp_path))
    for rule in ("Stage isolation", "Real K", "One variable", "Freeze a baseline", "Stop and ask", NOTE, str(DEMO)):
        assert rule in said
    assert [part for part in words.INSTRUCTIONS.split("\n") if refuses(part)] == []


def test_check_gives_the_findings_by_weight(tmp_path):
    data, text = answered(desk(tmp_path), "check", bundle="demo")
    assert data["blocked"] is False
    assert [row["check"] for row in data["findings"]] == [
        "arm_errored",
        "missing_arms",
        "missing_after_rerank",
        "mixed_models",
        "mixed_dimensions",
        "sources_short",
    ]
    assert "demo: 6 findings (0 block, 6 warn, 0 info)" in text


def test_check_pages_its_findings(tmp_path):
    data, text = answered(desk(tmp_path), "check", bundle="demo", offset=4, limit=1)
    assert [row["check"] for row in data["findings"]] == ["mixed_dimensions"]
    assert data["page"] == {"offset": 4, "returned": 1, "total": 6, "next_offset": 5}
    assert "5 to 5 of 6; the next with offset 5." in text


def test_missing_rules_and_permissions_are_named_as_the_users_to_give(tmp_path):
    shutil.copy(DEMO / "traces.jsonl", tmp_path)
    data, text = answered(desk(tmp_path / "scratch", tmp_path), "check", bundle=".")
    assert [said.split(":")[0] for said in data["ask_the_user"]] == [
        "no [acl] rule",
        "no [gates]",
        "no [experiment] index_write",
    ]
    assert "Ask the user first:" in text


def test_audit_gives_the_run_and_a_handle_and_calls_no_model(audited):
    session, data, text = audited
    assert data["audit"] == "session:demo"
    assert data["verdict"].startswith("55 of 90 queries fail (61%); Rerank/pack loses most (8)")
    assert data["leak"].startswith("LEAK: 9 chunks")
    assert data["stages"]["rerank"] == 8
    assert data["metrics"]["recall@k"]["n"] == 83
    assert data["page"] == {"offset": 0, "returned": 20, "total": 55, "next_offset": 20}
    assert data["queries"][0] == {
        "query_id": "q-013",
        "outcome": "fail",
        "stage": "filter",
        "causes": ["foreign_hits"],
        "leak": True,
    }
    assert "audit: session:demo" in text
    assert session.folders.audit("session:demo").parent == session.folders.audits


def test_show_gives_one_query_as_the_command_does(audited):
    session, *_ = audited
    data, text = answered(session, "show", audit="session:demo", query_id="q-006")
    assert (data["query"]["stage"], data["query"]["causes"][0]) == ("rerank", "token_budget")
    assert data["query"]["gold"][0]["journey"][0]["checkpoint"] == "eligible"
    assert data["experiments"][0]["variable"] == "pipeline.pack.token_budget"
    assert data["texts"] == []
    assert "q-006   FAIL at Rerank/pack" in text


def test_show_without_a_query_lists_what_a_filter_picks(audited):
    session, *_ = audited
    data, text = answered(session, "show", audit="session:demo", filter="stage:rerank is:failing", offset=6, limit=5)
    assert [line["stage"] for line in data["queries"]] == ["rerank", "rerank"]
    assert data["page"] == {"offset": 6, "returned": 2, "total": 8, "next_offset": None}
    assert "8 queries match" in text


def test_an_unknown_query_is_an_error_that_names_some(audited):
    session, *_ = audited
    said = refused(session, "show", audit="session:demo", query_id="nope")
    assert said == (
        "demo.audit: no query 'nope'. The first are q-013, q-056, q-001; `show` without a query lists them."
    )


def test_words_cannot_be_searched_in_texts_that_are_not_shown(audited):
    session, *_ = audited
    assert "words are looked up in query texts" in refused(session, "show", audit="session:demo", filter="budgeting")


def test_next_gives_experiments_of_one_variable_each(audited):
    session, *_ = audited
    data, text = answered(session, "next", audit="session:demo", filter="stage:rerank", limit=1)
    (first,) = data["experiments"]
    assert (first["variable"], first["from"], first["to"]) == ("pipeline.pack.token_budget", [20, 60], 900)
    assert first["frozen"][-1] == "K"
    assert data["page"]["next_offset"] == 1
    assert "Next experiment: change one variable" in text


def test_next_leaves_out_what_the_journal_refuted(audited, tmp_path):
    session, *_ = audited
    journal = tmp_path / "experiments.jsonl"
    journal.write_text("")
    inside = desk(tmp_path / "scratch", tmp_path, DEMO)
    answered(inside, "audit", bundle="demo")
    data, _ = answered(inside, "next", audit="session:demo", journal="experiments.jsonl", limit=1)
    assert (data["refuted"], data["page"]["returned"]) == (0, 1)
    assert "not inside" in refused(session, "next", audit="session:demo", journal=str(journal))


def test_compare_of_a_run_with_itself_proves_nothing(audited):
    session, *_ = audited
    answered(session, "audit", bundle="demo", name="again")
    data, text = answered(session, "compare", base="session:demo", candidate="session:again")
    assert data["verdict"] == "NOT DISTINGUISHABLE from no change in any of 7 metrics"
    assert data["worse"] == []
    assert data["comparison"]["pairs"] == 90
    assert "paired     90 queries" in text


def test_compare_takes_a_frozen_baseline(tmp_path):
    session = desk(tmp_path / "scratch", tmp_path, DEMO)
    answered(session, "audit", bundle="demo")
    with AuditReader.open(session.folders.audit("session:demo")) as reader:
        write_baseline(freeze(reader, "main"), tmp_path / "main.json")
    data, _ = answered(session, "compare", base="main.json", candidate="session:demo")
    assert (data["comparison"]["base"]["name"], data["comparison"]["base"]["frozen"]) == ("main", True)


def test_compare_refuses_another_access_rule_and_has_no_argument_to_accept_it(audited, tmp_path):
    session, *_ = audited
    demo, other = few(tmp_path / "demo"), few(tmp_path / "other")
    config = other / "ragaudit.toml"
    config.write_text(config.read_text().replace('rule = "any"', 'rule = "all"'))
    both = desk(tmp_path / "scratch", demo, other)
    answered(both, "audit", bundle="demo")
    answered(both, "audit", bundle="other")
    said = refused(both, "compare", base="session:demo", candidate="session:other")
    assert "who may read what differs: access is no variable of an experiment" in said
    _, tools = _tools(session)
    compare = next(tool for tool in tools if tool.name == "compare")
    assert sorted(compare.input_schema["properties"]) == ["base", "candidate"]


def test_the_report_comes_in_parts_that_make_the_whole(audited):
    session, *_ = audited
    offset, parts = 0, []
    while offset is not None:
        data, _ = answered(session, "report", audit="session:demo", offset=offset)
        parts.append(data["markdown"])
        assert len(data["markdown"]) <= MAX_CHARACTERS
        offset = data["next_offset"]
    whole = "".join(parts)
    assert len(parts) == 2
    assert len(whole) == data["characters"]
    assert whole.startswith("# RAG audit: demo")
    assert "## Method" in whole


def test_no_answer_is_longer_than_the_cap(audited):
    session, *_ = audited
    calls = [
        ("check", {"bundle": "demo", "limit": 100}),
        ("audit", {"bundle": "demo", "limit": 100}),
        ("show", {"audit": "session:demo", "filter": "", "limit": 100}),
        ("show", {"audit": "session:demo", "query_id": "q-013"}),
        ("next", {"audit": "session:demo", "limit": 100}),
        ("compare", {"base": "session:demo", "candidate": "session:demo"}),
        ("report", {"audit": "session:demo"}),
    ]
    for tool, arguments in calls:
        found = ask(session, tool, **arguments)
        assert len(found.content[0].text) <= MAX_CHARACTERS + 500, tool
        assert len(json.dumps(found.structured_content, ensure_ascii=False)) <= MAX_CHARACTERS + 500, tool


def test_more_rows_than_allowed_are_refused_by_the_schema(audited):
    session, *_ = audited
    assert "less than or equal to 100" in refused(session, "show", audit="session:demo", limit=101)


def test_an_audit_file_that_is_none_is_an_error_of_ours(tmp_path):
    said = refused(desk(tmp_path), "report", audit="traces.jsonl")
    assert said.startswith(f"{DEMO / 'traces.jsonl'}: ")
    assert "Traceback" not in said


def test_a_bundle_that_preflight_blocks_is_an_error(tmp_path):
    (tmp_path / "traces.jsonl").write_text("{}\n")
    assert refused(desk(tmp_path / "scratch", tmp_path), "audit", bundle=".").startswith("traces.jsonl")


def test_a_bug_shows_no_traceback_to_the_agent(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaudit.mcp.answers.run.check", lambda *_, **__: 1 / 0)
    assert refused(desk(tmp_path), "check", bundle="demo") == "Error executing tool check"


def test_progress_counts_on_from_preflight_to_audit(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaudit.audit.run.BATCH", 20)
    session, seen = desk(tmp_path), []

    async def progress(done, total, message):
        seen.append(done)

    async def watched():
        async with Client(server(session), mode="legacy") as client:
            await client.call_tool("audit", {"bundle": "demo"}, progress_callback=progress)

    anyio.run(watched)
    assert seen == [20, 40, 60, 80, 90, 110, 130, 150, 170, 180]


def test_a_cancelled_audit_ends_and_the_same_call_works_again(tmp_path, monkeypatch):
    ended = threading.Event()

    def endless(bundle, out, *, limit, progress, watching):
        try:
            for done in range(1, 1_000_000):
                progress(done)
        finally:
            ended.set()

    session = desk(tmp_path)

    async def cancelled():
        async with Client(server(session), mode="legacy") as client:
            with anyio.CancelScope() as scope:

                async def stop(done, total, message):
                    scope.cancel()

                await client.call_tool("audit", {"bundle": "demo"}, progress_callback=stop)
            assert scope.cancelled_caught
            with anyio.fail_after(60):
                await anyio.to_thread.run_sync(ended.wait)
            monkeypatch.undo()
            return await client.call_tool("audit", {"bundle": "demo"})

    monkeypatch.setattr("ragaudit.mcp.answers.run.audit", endless)
    found = anyio.run(cancelled)
    assert found.structured_content["page"]["total"] == 55


def test_an_audit_cancelled_in_its_preflight_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaudit.audit.run.BATCH", 20)
    session = desk(tmp_path / "scratch")
    counted = []

    class Stopped(Exception):
        pass

    def tick(done):
        counted.append(done)
        raise Stopped

    with pytest.raises(Stopped):
        session.audit("demo", None, None, 20, tick)
    assert counted == [20]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_cancelled_audit_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaudit.audit.run.BATCH", 20)
    session = desk(tmp_path / "scratch")

    class Stopped(Exception):
        pass

    def stop(done):
        if done == 90 + 40:
            raise Stopped

    with pytest.raises(Stopped):
        session.audit("demo", None, None, 20, stop)
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["demo.audit.partial"]
    counted = []
    answer = session.audit("demo", None, None, 20, counted.append)
    assert counted == [20, 40, 60, 80, 90, 130, 150, 170, 180]
    assert answer.data.page.total == 55
