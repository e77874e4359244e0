"""A stand-in for a judge model on loopback: it compares words, so that this example can be recorded anywhere.

It speaks just enough of the OpenAI protocol for ragaudit's real client. It is no judge: put a model into ragaudit.toml.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Texts = dict[str, str]


def reply(question: str) -> dict[str, Any]:
    """What the judge says to one of ragaudit's questions, whose texts stand between <name:key> and </name:key>."""
    texts: Texts = {name: text for name, _, text in re.findall(r"<(\w+):(\w+)>\n(.*?)\n</\1:\2>", question, re.DOTALL)}
    if "claims" not in texts:
        return split(texts)
    claims = dict(line.split(": ", 1) for line in texts.pop("claims").splitlines())
    return {"verdicts": [{"id": name} | row(claim, texts) for name, claim in claims.items()]}


def split(texts: Texts) -> dict[str, Any]:
    """Every sentence is a claim."""
    sides = {side: re.findall(r"[^.]+\.?", texts[side]) for side in ("reference", "answer") if side in texts}
    said: dict[str, Any] = {
        side: [{"quote": part.strip(), "claim": part.strip()} for part in parts] for side, parts in sides.items()
    }
    if "answer" in texts:
        said["abstained"] = "does not say" in texts["answer"]
        said["answer"] = [] if said["abstained"] else said["answer"]
    return said


def row(claim: str, texts: Texts) -> dict[str, Any]:
    """Supported by a sentence with the same words; contradicted by one that differs in a number only."""
    found: dict[str, list[dict[str, str]]] = {"supported": [], "contradicted": []}
    for name, text in texts.items():
        for sentence in re.findall(r"[^.]+\.?", text):
            if words(claim) <= words(sentence):
                same = numbers(claim) <= numbers(sentence)
                found["supported" if same else "contradicted"].append({"text": name, "quote": sentence.strip()})
                break
    return found


def words(text: str) -> set[str]:
    """The longer words of a text."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


def numbers(text: str) -> set[str]:
    """The numbers of a text."""
    return set(re.findall(r"\d+", text))


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    def do_POST(self) -> None:
        """Answer one call."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps(reply(asked["messages"][-1]["content"]))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body = json.dumps(about | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8092), Handler).serve_forever()
