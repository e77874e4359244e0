"""`ragaudit tape`: what is on the shelves, what is wrong with it, what may go, what may be committed."""

import json
import re

import pytest
from judged_bundle import Literal, judged_bundle, trace, use
from msgspec.structs import replace

from ragaudit.audit.judging import samples
from ragaudit.cli.bundle_options import find, opened
from ragaudit.cli.main import execute
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.runner import run
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import Reply, Request


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(arguments, capsys, code=0):
    capsys.readouterr()
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def recorded(folder, *traces, cassette="judge.jsonl", cache=None, model="test/literal"):
    """A bundle whose judging stands on a cassette, and in a cache if one is named."""
    judged_bundle(folder, *traces, cache=cache or "")
    bundle = opened(find(folder, {}), {})
    places = {"cassette": folder / cassette if cassette else None, "cache": folder / cache if cache else None}
    with Tape.open(TapeMode.NEW, **places) as tape:
        how = HowToJudge(model=model)
        list(run(samples(bundle), prompts=PromptSet.load(None), how=how, tape=tape, client=Literal()))
    return folder


def old(prompt="claims", version=99):
    """A reply to a prompt of another version."""
    asked = Request(model="m", messages=({"role": "user", "content": "?"},), prompt=prompt, version=version)
    return asked, Reply(text="{}", finish_reason="stop", input_tokens=7, output_tokens=3, usd=0.5)


def keep(folder, request, reply, cassette=None, cache=None):
    places = {"cassette": cassette and folder / cassette, "cache": cache and folder / cache}
    with Tape.open(TapeMode.NEW, **places) as tape:
        tape.record(request, reply)


ONE = trace("q1", "Free keys expire after 30 days.", ("c1", "c2"))


# --- stats ---------------------------------------------------------------------------------------------------------


def test_stats_count_replies_by_prompt_and_model(here, capsys):
    recorded(here / "b", ONE)
    keep(here / "b", *old(), cassette="judge.jsonl")
    said = told(["tape", "stats", "b"], capsys)
    assert re.match(
        r"cassette \S+judge\.jsonl\n  3 replies, [\d,]+ bytes, 27 tokens in, 13 out, \$0\.5000 and 2", said.out
    )
    assert "  prompts  claims@1 1   claims@99 1   matrix@1 1\n" in said.out
    assert "  models   m 1   test/literal 2\n" in said.out
    (row,) = json.loads(told(["tape", "stats", "b", "--json"], capsys).out)["places"]
    assert (row["kind"], row["replies"], row["input_tokens"], row["unpriced"]) == ("cassette", 3, 27, 2)


def test_stats_of_named_places_and_of_none(here, capsys):
    recorded(here / "b", ONE, cache="cache")
    rows = json.loads(
        told(["tape", "stats", "--cassette", "b/judge.jsonl", "--cache", "b/cache", "--json"], capsys).out
    )["places"]
    assert [(row["kind"], row["replies"]) for row in rows] == [("cassette", 2), ("cache", 2)]
    said = told(["tape", "stats"], capsys)
    assert said.out == "cache .ragaudit/judge\n  nothing recorded\n"
    assert not (here / ".ragaudit").exists()


def test_a_place_that_is_not_there_is_refused(here, capsys):
    said = told(["tape", "stats", "--cassette", "no.jsonl"], capsys, code=2)
    assert said.err == "ragaudit: no.jsonl: no such file. Check what was passed as --cassette.\n"
    assert "no: no such folder" in told(["tape", "verify", "--cache", "no"], capsys, code=2).err


# --- verify --------------------------------------------------------------------------------------------------------


def test_verify_finds_nothing_wrong_with_what_was_recorded(here, capsys):
    recorded(here / "b", ONE, cache="cache")
    assert told(["tape", "verify", "b"], capsys).out == "2 places checked, 0 problems\n"


def test_verify_names_an_edited_question_and_exits_with_3(here, capsys):
    cassette = recorded(here / "b", ONE) / "judge.jsonl"
    cassette.write_text(cassette.read_text().replace("30 days", "90 days", 1))
    said = told(["tape", "verify", "b"], capsys, code=3)
    assert "the question was edited after it was recorded" in said.out
    assert said.out.endswith("1 place checked, 1 problem\n")
    found = json.loads(told(["tape", "verify", "b", "--json"], capsys, code=3).out)
    assert (found["schema"], len(found["problems"])) == ("ragaudit.tape_verify/1", 1)


def test_verify_of_a_file_that_is_no_cassette(here, capsys):
    (here / "x.jsonl").write_text('{"a": 1}\n')
    assert told(["tape", "verify", "--cassette", "x.jsonl"], capsys, code=3).err.startswith("ragaudit: x.jsonl")


# --- prune ---------------------------------------------------------------------------------------------------------


def test_prune_drops_prompt_versions_that_are_no_longer_current(here, capsys):
    recorded(here / "b", ONE, cache="cache")
    keep(here / "b", *old(), cassette="judge.jsonl", cache="cache")
    dry = told(["tape", "prune", "b", "--dry-run"], capsys).out.splitlines()
    assert [line.rpartition(": ")[2] for line in dry] == ["1 would be dropped, 2 kept"] * 2
    done = told(["tape", "prune", "b"], capsys).out.splitlines()
    assert [line.rpartition(": ")[2] for line in done] == ["1 dropped, 2 kept"] * 2
    rows = json.loads(told(["tape", "prune", "b", "--json"], capsys).out)["places"]
    assert [(row["kind"], row["dropped"], row["kept"]) for row in rows] == [("cassette", 0, 2), ("cache", 0, 2)]
    assert told(["tape", "verify", "b"], capsys).out == "2 places checked, 0 problems\n"


def test_prune_unused_keeps_what_the_bundle_asks_for_and_leaves_the_cache(here, monkeypatch, capsys):
    two = trace("q2", "Paid keys never expire.", ("c1", "c3"))
    recorded(here / "b", ONE, two, cache="cache")
    judged_bundle(here / "b", ONE, cache="cache")
    rows = json.loads(told(["tape", "prune", "b", "--unused", "--json"], capsys).out)["places"]
    assert [(row["kind"], row["dropped"]) for row in rows] == [("cassette", 2), ("cache", 0)]
    use(monkeypatch, Literal(failing=AssertionError))
    told(["judge", "run", "b", "--tape", "none", "-o", "x.audit", "-q"], capsys)


def test_prune_unused_drops_nothing_when_the_bundle_asks_for_more_than_there_is(here, capsys):
    cassette = recorded(here / "b", ONE) / "judge.jsonl"
    before = cassette.read_bytes()
    judged_bundle(here / "b", ONE, trace("q2", "Paid keys never expire.", ("c1", "c3")))
    said = told(["tape", "prune", "b", "--unused"], capsys, code=4)
    assert "no reply for claims@1" in said.err
    assert cassette.read_bytes() == before


def test_replies_without_a_verdict_are_counted_and_can_be_dropped_to_be_asked_for_again(here, capsys):
    cassette = recorded(here / "b", ONE) / "judge.jsonl"
    cassette.write_text(cassette.read_text().replace('"finish_reason": "stop"', '"finish_reason": "length"', 1))
    assert "1 of them cut off, refused or too long to ask" in told(["tape", "stats", "b"], capsys).out
    assert told(["tape", "verify", "b"], capsys).out == "1 place checked, 0 problems\n"
    for arguments, dropped in (((), 0), (("--unusable",), 1), (("--unusable",), 0)):
        (row,) = json.loads(told(["tape", "prune", "b", *arguments, "--json"], capsys).out)["places"]
        assert row["dropped"] == dropped
    assert "cut off" not in told(["tape", "stats", "b"], capsys).out


def test_prune_unused_needs_a_bundle(here, capsys):
    recorded(here / "b", ONE)
    assert (
        "--unused needs a BUNDLE"
        in told(["tape", "prune", "--cassette", "b/judge.jsonl", "--unused"], capsys, code=2).err
    )


# --- export --------------------------------------------------------------------------------------------------------


def test_export_writes_what_a_bundle_asks_for_into_a_cassette(here, capsys):
    recorded(here / "b", ONE, cassette=None, cache="cache")
    keep(here / "b", *old(), cache="cache")
    said = told(["tape", "export", "b", "-o", "out.jsonl"], capsys)
    assert said.out == "out.jsonl: 2 replies added\n"
    (row,) = json.loads(told(["tape", "stats", "--cassette", "out.jsonl", "--json"], capsys).out)["places"]
    assert row["prompts"] == {"claims@1": 1, "matrix@1": 1}
    assert told(["tape", "verify", "--cassette", "out.jsonl"], capsys).out == "1 place checked, 0 problems\n"


def test_export_adds_and_replaces_nothing(here, capsys):
    recorded(here / "b", ONE, cassette=None, cache="cache")
    keep(here, *old(), cassette="out.jsonl")
    first = told(["tape", "export", "--cache", "b/cache", "-o", "out.jsonl", "--json"], capsys)
    assert json.loads(first.out) == {"schema": "ragaudit.tape_export/1", "path": "out.jsonl", "added": 2}
    assert (
        told(["tape", "export", "--cache", "b/cache", "-o", "out.jsonl"], capsys).out == "out.jsonl: 0 replies added\n"
    )
    (row,) = json.loads(told(["tape", "stats", "--cassette", "out.jsonl", "--json"], capsys).out)["places"]
    assert row["replies"] == 3


def test_exporting_what_was_not_recorded_exits_with_4(here, capsys):
    judged_bundle(here / "b", ONE)
    told(["tape", "export", "b", "-o", "out.jsonl"], capsys, code=4)
    assert not (here / "out.jsonl").exists()


def test_hostile_names_on_a_tape_are_shown_as_text(here, capsys):
    asked, reply = old()
    keep(here, replace(asked, model="m\x1b[2J"), reply, cassette="x.jsonl")
    assert "\x1b" not in told(["tape", "stats", "--cassette", "x.jsonl"], capsys).out
