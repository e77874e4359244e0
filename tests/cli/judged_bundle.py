"""A bundle whose queries need a judge, and a model that reads literally: a text supports the claims it contains."""

import json
import re

from ragaudit.judge import settings as judge_settings
from ragaudit.model.judgement import Failure, Reply

MARKS = re.compile(r"<(\w+):([0-9a-f]{8})>\n(.*?)\n</\1:\2>", re.DOTALL)

CHUNKS = {
    "c1": "Free keys expire after 30 days. Paid keys never expire.",
    "c2": "The limit is 100 calls a minute.",
    "c3": "Support answers within two hours.",
}


class Literal:
    """Splits at full stops. `lenient` = labels it calls `supported` in per-claim mode whatever they say."""

    def __init__(self, lenient=(), failing=None):
        self.asked = []
        self.lenient = lenient
        self.failing = failing

    async def complete(self, request):
        self.asked.append(request.prompt)
        if self.failing is not None:
            return self.failing
        texts = {name: text for name, _, text in MARKS.findall(request.messages[-1]["content"])}
        return Reply(
            text=json.dumps(self.reply(request.prompt, texts)), finish_reason="stop", input_tokens=10, output_tokens=5
        )

    def reply(self, prompt, texts):
        if prompt == "claims":
            said = {
                side: [{"quote": part, "claim": part} for part in re.findall(r"[^.]+\.", texts[side])]
                for side in ("reference", "answer")
                if side in texts
            }
            return said | ({"abstained": False} if "answer" in texts else {})
        if prompt == "matrix":
            rows = dict(line.split(": ", 1) for line in texts.pop("claims").splitlines())
            return {
                "verdicts": [
                    {
                        "id": claim_id,
                        "supported": [
                            {"text": n, "quote": claim} for n, text in texts.items() if claim.strip() in text
                        ],
                        "contradicted": [],
                    }
                    for claim_id, claim in rows.items()
                ]
            }
        claim = texts.pop("claim").strip()
        words = {n: "supported" if claim in text or n in self.lenient else "missing" for n, text in texts.items()}
        return {"verdicts": words, "quotes": [{"text": n, "quote": claim} for n in words]}


def use(monkeypatch, model):
    """Ask this model in place of the real one."""
    monkeypatch.setattr(judge_settings, "litellm_client", lambda settings: model)
    return model


def budget():
    return Failure(kind="budget", message="not sent: $1.0000 of max_cost $1 is spent")


def trace(query_id, answer, context, reference="Free keys expire after 30 days.", **more):
    return {
        "query_id": query_id,
        "query_text": "When do free keys expire?",
        "k_final": 2,
        "final_context_ids": list(context),
        "context_texts": {chunk_id: CHUNKS[chunk_id] for chunk_id in context},
        "reference": reference,
        "answer": {"text": answer},
    } | more


def judged_bundle(folder, *traces, cache="", config=""):
    """Three queries unless others are given: right and faithful, unfaithful, and lost evidence."""
    rows = traces or (
        trace("q1", "Free keys expire after 30 days.", ("c1", "c2"), gold_ids=["c1"]),
        trace("q2", "Free keys expire after 90 days.", ("c1", "c2"), gold_ids=["c2"]),
        trace("q3", "The limit is 100 calls a minute.", ("c2", "c3")),
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chunks = ({"chunk_id": chunk_id, "source_id": "s", "text": text} for chunk_id, text in CHUNKS.items())
    (folder / "chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chunks))
    (folder / "ragaudit.toml").write_text(
        f'[judge]\nmodel = "test/literal"\ncassette = "judge.jsonl"\ncache = "{cache}"\n{config}'
    )
    return folder
