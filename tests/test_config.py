import re
from pathlib import Path
from typing import Any

import pytest

from ragaudit.config import AclSettings, Settings, fingerprint, load_settings, starter_toml
from ragaudit.errors import ConfigError
from ragaudit.model.pipeline import Pipeline
from ragaudit.toml_lines import line_of


def load(folder: Path, text: str | bytes, **over: Any) -> Settings:
    path = folder / "ragaudit.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_settings(path, env=over.get("env", {}), flags=over.get("flags", {}))


def refusal(folder: Path, text: str | bytes, **over: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **over)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_without_a_file_everything_is_default_and_tables_are_absent() -> None:
    settings = load_settings(None, env={}, flags={})
    assert (settings.audit.scope, settings.audit.seed, settings.audit.resamples) == ("answer", 0, 10_000)
    assert (settings.audit.gain, settings.audit.min_queries) == ("linear", 30)
    assert settings.pipeline == Pipeline()
    assert (settings.gates, settings.judge, settings.slices, settings.acl, settings.experiment) == (None,) * 5
    assert settings.origin["audit.seed"] == "default"


def test_a_table_that_is_there_is_not_absent(tmp_path: Path) -> None:
    settings = load(tmp_path, "[gates]\n[acl]\n[experiment]\n[slices]\n[judge]\n")
    assert settings.gates == {}
    assert settings.acl == AclSettings(rule="any", everyone=())
    assert settings.experiment is not None and settings.experiment.index_write is None
    assert settings.slices is None
    assert settings.judge is not None and (settings.judge.cuts.context_recall, settings.judge.cuts.faithfulness) == (
        0.5,
        0.7,
    )


def test_every_table_is_read(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        """
        name = "october"
        [pipeline]
        arms = ["dense", "bm25"]
        k_final = 8
        [pipeline.fusion]
        method = "rrf"
        [[pipeline.thresholds]]
        value = 0.3
        on = "dense"
        [gates]
        "recall@k" = 0.8
        [slices]
        dimensions = ["language"]
        [acl]
        rule = "all"
        everyone = ["public"]
        [experiment]
        index_write = "test"
        [audit]
        scope = "retrieval"
        [judge]
        model = "m"
        max_cost = 5
        [judge.cuts]
        faithfulness = 0.8
        """,
    )
    assert settings.name == "october"
    assert settings.pipeline.arms == ("dense", "bm25")
    assert settings.pipeline.thresholds[0].on == "dense"
    assert settings.gates == {"recall@k": 0.8}
    assert settings.slices == ("language",)
    assert settings.acl == AclSettings(rule="all", everyone=("public",))
    assert settings.experiment is not None and settings.experiment.index_write == "test"
    assert settings.audit.scope == "retrieval"
    assert settings.judge is not None and settings.judge.max_cost == 5.0
    assert settings.judge.cuts.faithfulness == 0.8


def test_unknown_keys_under_pipeline_are_kept(tmp_path: Path) -> None:
    settings = load(tmp_path, '[pipeline]\nrouter = "v2"\n[pipeline.fusion]\nnormaliser = "z"\n')
    assert settings.pipeline.model_extra == {"router": "v2"}
    assert settings.pipeline.fusion.model_extra == {"normaliser": "z"}


def test_a_plain_value_beside_the_arms_of_search_is_kept_and_fingerprinted(tmp_path: Path) -> None:
    settings = load(tmp_path, "[pipeline.search]\nhybrid_alpha = 0.5\n[pipeline.search.dense]\nfetch_k = 50\n")
    assert list(settings.pipeline.search) == ["dense"]
    assert settings.pipeline.model_extra == {"search.hybrid_alpha": 0.5}
    assert settings.origin["pipeline.search.hybrid_alpha"] == "ragaudit.toml"
    other = load(tmp_path, "[pipeline.search]\nhybrid_alpha = 0.6\n[pipeline.search.dense]\nfetch_k = 50\n")
    assert fingerprint(other.pipeline, 8, None) != fingerprint(settings.pipeline, 8, None)


def test_a_query_may_depart_from_a_plain_value_beside_the_arms_of_search() -> None:
    run = Pipeline.model_validate({"search": {"hybrid_alpha": 0.5, "dense": {"fetch_k": 50}}})
    departed = run.with_overrides({"search": {"hybrid_alpha": 0.7}, "rerank": None})
    assert departed.model_extra == {"search.hybrid_alpha": 0.7}
    assert departed.search["dense"].fetch_k == 50


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    text = '[audit]\nseed = 1\nresamples = 100\ngain = "exp"\n'
    env = {"RAGAUDIT_SEED": "2", "RAGAUDIT_RESAMPLES": "200", "RAGAUDIT_JUDGE": "m", "HOME": "x"}
    settings = load(tmp_path, text, env=env, flags={"seed": 3, "min_queries": 5, "scope": None})
    assert (settings.audit.seed, settings.audit.resamples, settings.audit.gain) == (3, 200, "exp")
    assert settings.judge is not None and settings.judge.model == "m"
    origin = {key: settings.origin[key] for key in sorted(settings.origin) if not key.startswith("acl.")}
    assert origin == {
        "audit.gain": "ragaudit.toml",
        "audit.min_queries": "flag --min-queries",
        "audit.resamples": "environment RAGAUDIT_RESAMPLES",
        "audit.scope": "default",
        "audit.seed": "flag --seed",
        "judge.model": "environment RAGAUDIT_JUDGE",
    }


def test_an_unknown_table_names_the_nearest_one(tmp_path: Path) -> None:
    assert refusal(tmp_path, "[gate]\n") == ("ragaudit.toml:1: unknown table or key 'gate'. Did you mean 'gates'?")


def test_an_unknown_key_of_a_closed_table_names_the_nearest_one(tmp_path: Path) -> None:
    assert refusal(tmp_path, "[audit]\nsead = 1\n") == (
        "ragaudit.toml:2: unknown key 'audit.sead'. Did you mean 'audit.seed'?"
    )
    # A limit that nobody reads would be no limit.
    assert refusal(tmp_path, "[judge]\nmax_costs = 5\n") == (
        "ragaudit.toml:2: unknown key 'judge.max_costs'. Did you mean 'judge.max_cost'?"
    )
    assert refusal(tmp_path, "[judge.cuts]\nzzz = 1\n") == (
        "ragaudit.toml:2: unknown key 'judge.cuts.zzz'. Known here: context_recall, faithfulness."
    )


def test_a_syntax_error_names_the_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[audit]\nseed = 1\nscope = \n")
    assert message == f"{tmp_path / 'ragaudit.toml'}:3: not valid TOML: Invalid value. Correct the line."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[audit]\nseed = '1'\n", "2: audit.seed: must be a whole number, not '1'. Correct the value."),
        ("[audit]\nseed = true\n", "2: audit.seed: must be a whole number, not true. Correct the value."),
        ("[audit]\nseed = -1\n", "2: audit.seed: must be 0 or more, not -1. Correct the value."),
        ("[audit]\nscope = 'all'\n", "2: audit.scope: must be 'answer' or 'retrieval', not 'all'."),
        ("[acl]\nrule = 'some'\n", "2: acl.rule: must be 'any' or 'all', not 'some'."),
        ("[pipeline]\nk_final = 'eight'\n", "2: pipeline.k_final: must be a whole number, not 'eight'."),
        ("[pipeline]\nk_final = 0\n", "2: pipeline.k_final: must be a number from 1."),
        ("[pipeline]\narms = 'dense'\n", "2: pipeline.arms: must be a list, not 'dense'."),
        ("[pipeline.fusion]\nk = 'x'\n", "2: pipeline.fusion.k: must be a number, not 'x'."),
        ("[slices]\ndimensions = [1]\n", "2: slices.dimensions.0: must be a text, not 1."),
        (
            "[judge.cuts]\nfaithfulness = 2\n",
            "2: judge.cuts.faithfulness: must be 1 or less, not 2.",
        ),
        ("[pipeline]\nk_final = '8'\n", "2: pipeline.k_final: must be a whole number, not '8'."),
        ("[pipeline]\nk_final = true\n", "2: pipeline.k_final: must be a whole number, not true."),
        ("[pipeline.rerank]\ntop_n = '8'\n", "2: pipeline.rerank.top_n: must be a whole number, not '8'."),
        ("[pipeline]\nk_final = 8\nrerank = 5\n", "3: pipeline.rerank: must be a table, not 5."),
        ("pipeline = 3\n", "1: pipeline is a value. Write it as a table: [pipeline]."),
    ],
)
def test_a_wrong_value_names_the_dotted_key(tmp_path: Path, text: str, expected: str) -> None:
    assert refusal(tmp_path, text).startswith(f"ragaudit.toml:{expected}")


def test_a_wrong_value_names_the_source_that_set_it(tmp_path: Path) -> None:
    assert refusal(tmp_path, "", env={"RAGAUDIT_SEED": "abc"}).startswith(
        "environment RAGAUDIT_SEED: audit.seed: must be a whole number, not 'abc'."
    )
    assert refusal(tmp_path, "", flags={"gain": "log"}).startswith("flag --gain: audit.gain: must be 'linear' or")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read \(No such file or directory\)\. Check the path"):
        load_settings(tmp_path / "none.toml", env={}, flags={})
    assert refusal(tmp_path, b'name = "caf\xe9"\n').endswith("byte 11 is not UTF-8. Save the file as UTF-8.")


def test_a_byte_order_mark_and_crlf_are_read(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf[audit]\r\nseed = 4\r\n").audit.seed == 4


def test_the_line_of_a_key_is_found_under_headers_and_in_arrays_of_tables() -> None:
    text = """
name = "x"          # a comment
[[pipeline.thresholds]]
value = 0.3
[[pipeline.thresholds]]
on = "dense"
value = "high"
[pipeline . 'search'.dense]
fetch_k = 1
[judge]
cuts = { faithfulness = 2 }
"""
    assert line_of(text, ("name",)) == 2
    assert line_of(text, ("pipeline", "thresholds", 1, "value")) == 7
    assert line_of(text, ("pipeline", "search", "dense", "fetch_k")) == 9
    assert line_of(text, ("judge", "cuts", "faithfulness")) == 11
    assert line_of(text, ("pipeline", "search")) == 8
    assert line_of(text, ("audit", "seed")) is None


# --- the starter file -----------------------------------------------------------------------------------------


def test_the_starter_file_is_read_as_it_stands_and_says_nothing_about_the_pipeline(tmp_path: Path) -> None:
    settings = load(tmp_path, starter_toml())
    assert settings.pipeline.k_final is None
    assert fingerprint(settings.pipeline, None, None) == fingerprint(Pipeline(), None, None)
    assert settings.acl == AclSettings()
    assert (settings.gates, settings.experiment, settings.judge) == (None, None, None)


def test_every_example_in_the_starter_file_is_valid_when_it_is_uncommented(tmp_path: Path) -> None:
    text = re.sub(r'^# (\[|"?[\w@]+"? = )', r"\1", starter_toml(), flags=re.M)
    settings = load(tmp_path, text)
    assert settings.pipeline.arms == ("dense", "bm25")
    assert settings.pipeline.model_extra == {}
    assert settings.gates is not None and settings.experiment is not None
    assert settings.judge is not None and settings.judge.max_cost == 5.0
    assert settings.slices == ("language", "family")
    assert set(Pipeline.model_fields) <= {key.split(".")[1] for key in settings.origin if key.startswith("pipeline.")}


# --- the fingerprint ------------------------------------------------------------------------------------------


def test_a_fingerprint_is_short_and_stable() -> None:
    found = fingerprint(Pipeline(), 8, None)
    assert re.fullmatch(r"b2:[0-9a-f]{16}", found)
    assert found == fingerprint(Pipeline(), 8, AclSettings())


def test_order_of_keys_empty_tables_and_number_form_do_not_change_a_fingerprint() -> None:
    one = Pipeline.model_validate(
        {"a": 1, "fusion": {"k": 60, "x": {"p": 1, "q": 2.0}}, "parser": {}, "thresholds": []}
    )
    two = Pipeline.model_validate({"fusion": {"x": {"q": 2, "p": 1, "r": None}, "k": 60.0}, "a": 1})
    assert fingerprint(one, 8, None) == fingerprint(two, 8, None)


@pytest.mark.parametrize(
    "over", [{"k_final": 9}, {"router": "v2"}, {"fusion": {"k": 61}}, {"embedding": {"query": {"prefix": ""}}}]
)
def test_anything_said_about_the_pipeline_changes_the_fingerprint(over: dict[str, Any]) -> None:
    assert fingerprint(Pipeline.model_validate(over), 8, None) != fingerprint(Pipeline(), 8, None)


def test_k_and_the_acl_rule_change_the_fingerprint() -> None:
    base = fingerprint(Pipeline(), 8, None)
    assert fingerprint(Pipeline(), 9, None) != base
    assert fingerprint(Pipeline(), 8, AclSettings(rule="all")) != base
    assert fingerprint(Pipeline(), 8, AclSettings(everyone=("public",))) != base
