"""A run with tied scores and graded qrels, imported and audited, gives trec_eval's values."""

import json
import random

import pytest
import pytrec_eval
from import_helpers import write

from ragaudit.cli.main import execute

K = 10
"""More than any query has relevant documents: with fewer an audit calls recall undefined."""
NAMES = {
    "hit@k": f"success_{K}",
    "recall@k": f"recall_{K}",
    "precision@k": f"P_{K}",
    "ndcg@k": f"ndcg_cut_{K}",
    "ap@k": f"map_cut_{K}",
}


def test_an_imported_run_has_the_values_of_trec_eval(tmp_path, monkeypatch, capsys):
    dice = random.Random(7)
    run, qrels = {}, {}
    for n in range(40):
        ids = dice.sample(range(60), 20)
        run[f"q{n}"] = {f"d{key}": float(dice.randrange(6)) for key in ids}
        qrels[f"q{n}"] = {f"d{key}": dice.randrange(4) for key in dice.sample(range(60), 8)}
        qrels[f"q{n}"][f"d{ids[0]}"] = 2
    lines = [
        f"{query} Q0 {key} {rank} {score} bm25"
        for query, scores in run.items()
        for rank, (key, score) in enumerate(scores.items(), start=1)
    ]
    judged = [f"{query} 0 {key} {grade}" for query, grades in qrels.items() for key, grade in grades.items()]
    write(tmp_path / "a.run", "\n".join(lines) + "\n")
    write(tmp_path / "qrels.txt", "\n".join(judged) + "\n")
    monkeypatch.chdir(tmp_path)
    assert execute(["import", "auto", "a.run", "qrels.txt", "-o", "b", "--k", str(K), "-q"]) == 0
    capsys.readouterr()
    assert execute(["audit", "b", "-o", "b.audit", "--json", "-q"]) == 0
    found = {query["query_id"]: query["metrics"] for query in json.loads(capsys.readouterr().out)["queries"]}
    measures = {name.rpartition("_")[0] + f".{K}" for name in NAMES.values()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert sorted(found) == sorted(theirs)
    for query, values in theirs.items():
        assert {name: found[query][name] for name in NAMES} == pytest.approx(
            {name: values[their] for name, their in NAMES.items()}
        )
