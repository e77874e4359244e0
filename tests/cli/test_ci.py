"""CI as users run it: the steps of the action and of docs/ci.md, executed in a folder with what the runner gives."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
LEAKING = ("q-013", "q-056")
DOCS = (ROOT / "docs" / "ci.md").read_text("utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", DOCS, re.DOTALL)


def bundle(folder, *, losing=(), renamed=None):
    """The demo without its leaks; the queries of `losing` no longer get their gold into the prompt."""
    folder.mkdir(parents=True)
    for name in ("chunks.jsonl", "index.json", "ragaudit.toml", "sources.jsonl"):
        shutil.copy(ROOT / "examples" / "demo" / name, folder)
    rows = map(json.loads, (ROOT / "examples" / "demo" / "traces.jsonl").read_text("utf-8").splitlines())
    with (folder / "traces.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            if row["query_id"] in LEAKING:
                continue
            if row["query_id"] in losing:
                for name in ("final_context_ids", "prompt_ids"):
                    row[name] = [i for i in row[name] if i not in row["gold_ids"]]
                row["answer"] = {"text": "No.", "correct": False}
            row["query_id"] = (renamed or {}).get(row["query_id"], row["query_id"])
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """A PATH on which `ragaudit` is this checkout and installing only writes down what was asked for."""
    folder = tmp_path_factory.mktemp("bin")
    run = "from ragaudit.cli.main import run; run()"
    shims = {
        "ragaudit": f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -c "{run}" "$@"',
        "python3": 'printf "%s\\n" "$@" > "$TOLD"',
        "pip": 'printf "%s\\n" "$@" > "$TOLD"',
    }
    for name, line in shims.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, commands):
    """A repository as docs/ci.md makes it: a bundle, gates, a committed baseline."""
    folder = tmp_path_factory.mktemp("repository")
    bundle(folder / "eval" / "bundle")
    (gates,) = blocks("toml")
    (folder / "ragaudit.toml").write_text(gates)
    done = shell(folder, blocks("sh")[0], commands)
    assert done.returncode == 0, done.stderr
    assert "recall@k" in done.stdout
    (folder / "run.audit").unlink()
    return folder


@pytest.fixture
def here(prepared, tmp_path):
    return Path(shutil.copytree(prepared, tmp_path / "workspace"))


def shell(folder, script, commands, **variables):
    environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "LANG": "C.UTF-8",
        "TOLD": str(folder.parent / "told"),
        **variables,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def worse(here, **fields):
    shutil.rmtree(here / "eval" / "bundle")
    bundle(here / "eval" / "bundle", losing=("q-011", "q-018"), **fields)


def heard(output):
    """The commands that the runner carries out: in a trimmed line, unless they were stopped by a token."""
    found, stopped = [], None
    for line in re.split(r"[\r\n]", output):
        said = line.strip()
        if stopped is not None:
            stopped = None if said == f"::{stopped}::" else stopped
            continue
        if said.startswith("::stop-commands::"):
            stopped = said.removeprefix("::stop-commands::")
            assert re.fullmatch("[0-9a-f]{32}", stopped)
        elif said.startswith("::") or "##[" in said:
            found.append(said)
    assert stopped is None
    return found


# --- the action -------------------------------------------------------------------------------------------------------


class Ran:
    """The action's steps, run one after the other until one fails, as the runner does."""

    def __init__(self, here, commands, **inputs):
        self.inputs = {name: given.get("default", "") for name, given in ACTION["inputs"].items()} | inputs
        self.outputs = {}
        self.output, self.code, self.steps = "", 0, []
        self.summary_file = here.parent / "summary.md"
        self.temporary = here.parent / "runner-temp"
        self.temporary.mkdir(exist_ok=True)
        for step in ACTION["runs"]["steps"]:
            if self.code or not self._wanted(step):
                continue
            self._run(here, commands, step)

    def _wanted(self, step):
        condition = step.get("if", "")
        if not condition:
            return True
        assert condition == "${{ inputs.gate == 'true' }}"
        return self.inputs["gate"] == "true"

    def _run(self, here, commands, step):
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        out = here.parent / "github-output"
        out.write_text("")
        self.summary_file.touch()
        given = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        done = shell(
            here,
            step["run"],
            commands,
            RUNNER_TEMP=str(self.temporary),
            GITHUB_OUTPUT=str(out),
            GITHUB_STEP_SUMMARY=str(self.summary_file),
            GITHUB_ACTION_PATH=str(ROOT),
            GITHUB_ACTIONS="true",
            **given,
        )
        self.steps.append(step["name"])
        self.output += done.stdout + done.stderr
        self.code = done.returncode
        self.outputs |= dict(line.split("=", 1) for line in out.read_text().splitlines())

    def _filled(self, value):
        value = re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: self.inputs[found[1]], value)
        return re.sub(r"\$\{\{ steps\.audit\.outputs\.(\w+) \}\}", lambda found: self.outputs[found[1]], value)

    @property
    def junit(self):
        path = self.outputs["junit"]
        xmlschema.XMLSchema(ROOT / "tests" / "data" / "junit.xsd").validate(path)
        return ElementTree.parse(path).getroot()


def test_the_action_passes_a_run_that_holds_and_reports_it(here, commands):
    ran = Ran(here, commands, bundle="eval/bundle", baseline="eval/baseline.json")
    assert (ran.code, ran.steps) == (0, ["Install", "Audit", "Report", "Gate"])
    assert (here.parent / "told").read_text().splitlines()[:2] == ["-m", "pip"]
    assert (here.parent / "told").read_text().splitlines()[-1] == str(ROOT)
    assert (ran.junit.get("tests"), ran.junit.get("failures"), ran.junit.get("errors")) == ("90", "0", "0")
    summary = ran.summary_file.read_text()
    assert summary.startswith("## RAG audit: bundle\n")
    assert "0 of 2 gates fired, against the baseline bundle: 0 queries fall short." in summary
    assert heard(ran.output) == []
    assert "all 2 gates hold" in ran.output


def test_the_action_fails_a_run_that_is_worse_after_it_reported(here, commands):
    worse(here)
    ran = Ran(here, commands, bundle="eval/bundle", baseline="eval/baseline.json")
    assert (ran.code, ran.steps[-1]) == (1, "Gate")
    assert (ran.junit.get("failures"), ran.junit.get("errors")) == ("3", "0")
    failures = {case.get("name"): case.find("failure") for case in ran.junit.iter("testcase")}
    assert {name: failure.get("type") for name, failure in failures.items() if failure is not None} == {
        "recall@k.max_drop": "gate",
        "q-011": "newly_failing",
        "q-018": "newly_failing",
    }
    assert [told.split("::")[1].split(" ", 1)[1] for told in heard(ran.output)] == [
        "title=Gate recall@k.max_drop",
        "title=q-011",
        "title=q-018",
    ]
    assert "### Queries that fall short, the worst first" in ran.summary_file.read_text()


def test_the_action_only_reports_when_it_is_told_to(here, commands):
    worse(here)
    ran = Ran(here, commands, bundle="eval/bundle", baseline="eval/baseline.json", gate="false")
    assert (ran.code, ran.steps) == (0, ["Install", "Audit", "Report"])
    assert ran.junit.get("failures") == "3"


def test_the_action_stops_where_there_are_no_gates_and_says_how_to_choose_them(here, commands):
    (here / "ragaudit.toml").unlink()
    ran = Ran(here, commands, bundle="eval/bundle")
    assert (ran.code, ran.steps[-1]) == (2, "Gate")
    assert "ragaudit.toml: no [gates]. Thresholds are yours to choose" in ran.output
    assert ran.junit.get("failures") == "0"


def test_the_action_takes_gates_from_another_file_and_a_released_version(here, commands):
    (here / "ragaudit.toml").rename(here / "eval" / "gates.toml")
    ran = Ran(
        here, commands, bundle="eval/bundle", baseline="eval/baseline.json", config="eval/gates.toml", version="9.8.7"
    )
    assert ran.code == 0
    assert (here.parent / "told").read_text().splitlines()[-1] == "ragaudit==9.8.7"


def test_the_action_stops_at_a_bundle_that_is_not_there_and_at_a_judge_that_it_does_not_ask(here, commands):
    gone = Ran(here, commands, bundle="no/such")
    assert (gone.code, gone.steps[-1]) == (3, "Audit")
    asked = Ran(here, commands, bundle="eval/bundle", judge="some-model")
    assert (asked.code, heard(asked.output)) == (2, ["::error title=ragaudit::judge must be off or auto"])


def test_inputs_are_never_part_of_a_script(here, commands):
    ran = Ran(here, commands, bundle="$(touch owned); `touch owned`", baseline='"; touch owned; "')
    assert ran.code != 0
    assert not (here / "owned").exists()


def test_ids_of_a_trace_give_the_runner_no_command(here, commands):
    evil = "q\n::set-output name=x::y ##[set-output name=z;]w ::stop-commands::mine"
    worse(here, renamed={"q-011": evil, "q-001": f"::error::{evil}"})
    ran = Ran(here, commands, bundle="eval/bundle", baseline="eval/baseline.json")
    assert ran.code == 1
    told = heard(ran.output)
    assert [line.split(" ")[0] for line in told] == ["::error"] * len(told[:-1]) + ["::warning"]
    assert not any(line.startswith(("::set-output", "::error::")) for line in told)


def test_the_action_has_an_input_for_each_row_of_the_manual_and_uploads_nothing():
    rows = re.findall(r"^\| `(\w+)` \|", DOCS.split("| input |")[1].split("\n\n")[0], re.MULTILINE)
    assert rows == list(ACTION["inputs"])
    assert all("uses" not in step for step in ACTION["runs"]["steps"])
    assert ACTION["inputs"]["judge"]["default"] == "off"


# --- the manual -------------------------------------------------------------------------------------------------------


def test_the_commands_of_the_manual_run_in_its_order(here, commands):
    summary = here.parent / "summary.md"
    summary.write_text("what another tool wrote\n")
    codes = [shell(here, block, commands, GITHUB_STEP_SUMMARY=str(summary)).returncode for block in blocks("sh")[1:]]
    assert codes == [0] * 4
    assert summary.read_text().startswith("what another tool wrote\n## RAG audit: bundle\n")
    root = ElementTree.parse(here / "ragaudit.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("90", "0")


def test_the_gate_between_two_tokens_still_decides_the_build(here, commands):
    worse(here)
    assert shell(here, blocks("sh")[1], commands).returncode == 1
    guarded = next(block for block in blocks("sh") if "stop-commands" in block)
    done = shell(here, guarded, commands)
    assert (done.returncode, heard(done.stdout)) == (1, [])
    assert "1 of 2 gates fired" in done.stdout


def test_the_gitlab_job_runs_and_fails_when_a_gate_fires(here, commands):
    (job,) = [block["rag"] for block in map(yaml.safe_load, blocks("yaml")) if "rag" in block]
    script = "\n".join(job["script"])
    assert shell(here, script, commands).returncode == 0
    assert (here.parent / "told").read_text().splitlines() == ["install", "--quiet", "ragaudit"]
    report = here / job["artifacts"]["reports"]["junit"]
    assert job["artifacts"]["when"] == "always"
    worse(here)
    report.unlink()
    assert shell(here, script, commands).returncode == 1
    assert ElementTree.parse(report).getroot().get("failures") == "3"


def test_the_workflow_of_the_manual_gives_only_inputs_that_the_action_has():
    (workflow,) = [block for block in map(yaml.safe_load, blocks("yaml")) if "jobs" in block]
    (step,) = [step for step in workflow["jobs"]["rag"]["steps"] if "ragaudit" in step["uses"]]
    assert set(step["with"]) <= set(ACTION["inputs"])


def test_the_pre_commit_hook_of_the_manual_holds_back_a_commit_that_is_worse(here, commands):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    local, _ = [block for block in blocks("yaml") if "hooks:" in block]
    (here / ".pre-commit-config.yaml").write_text(local)
    (here / ".gitignore").write_text("run.audit\n")
    tool = Path(sys.executable).with_name("pre-commit")
    run = f'git init -q . && git add -A && "{tool}" run rag-gates'
    settings = {"PRE_COMMIT_HOME": str(here.parent / "pre-commit"), "GIT_CONFIG_NOSYSTEM": "1"}
    done = shell(here, run, commands, **settings)
    assert (done.returncode, "Passed" in done.stdout) == (0, True), done.stdout + done.stderr
    worse(here)
    done = shell(here, run, commands, **settings)
    assert done.returncode == 1
    assert "1 of 2 gates fired" in done.stdout


def test_the_hooks_of_this_repository_run_with_the_arguments_of_the_manual(here, commands):
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
    _, remote = [yaml.safe_load(block) for block in blocks("yaml") if "hooks:" in block]
    used = remote["repos"][0]["hooks"]
    assert [hook["id"] for hook in used] == list(hooks)
    assert shell(here, blocks("sh")[1], commands).returncode == 0
    for hook in used:
        assert hooks[hook["id"]]["pass_filenames"] is False
        done = shell(here, " ".join([hooks[hook["id"]]["entry"], *hook["args"]]), commands)
        assert done.returncode == 0, done.stderr
    assert re.search(hooks["ragaudit-check"]["files"], "eval/bundle/traces.jsonl")
    assert re.search(hooks["ragaudit-gate"]["files"], "ragaudit.toml")


def test_the_kinds_of_failure_in_the_manual_are_the_ones_that_are_written():
    assert re.findall(r"^\| (?:failure|error) `(\w+)`", DOCS, re.MULTILINE) == [
        "leak",
        "newly_failing",
        "gate",
        "missing",
    ]
