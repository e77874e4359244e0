"""A copy of the demo bundle in which texts, ids, principals and configuration hold personal data and secrets."""

import json
from pathlib import Path
from typing import Any

from ragaudit.cli.main import execute
from ragaudit.model.texts import content_hash
from ragaudit.redact.fields import Tally, TextMode, Walker
from ragaudit.redact.pseudonyms import Pseudonyms
from ragaudit.redact.text import Redactor

KEY = b"0123456789abcdef"
PUT = {
    "role:staff": "user:Ana.Adams@example.com",
    "hb-remote": "mail/bo@example.org/remote",
    "lang:": "lang:",
    " days": " days (call +49 170 1234567)",
    "The ": "The IBAN DE89 3704 0044 0532 0130 00 of ana.adams@example.com, ",
    "handbook": "carol@example.net",
    "q-00": "q-dan@example.com-00",
}
VALUES = ("Ana.Adams@", "ana.adams@", "bo@example", "1234567", "DE89", "carol@", "dan@")


def walker(mode: TextMode = TextMode.KEEP, key: bytes = KEY) -> Walker:
    return Walker(Redactor(Pseudonyms(key)), mode, Tally())


def personal_bundle(demo: Path, folder: Path) -> Path:
    """The demo with what `PUT` says in every file; content hashes follow the texts where they did before."""
    folder.mkdir()
    for path in demo.iterdir():
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            text = "".join(json.dumps(_with_data(row), ensure_ascii=False) + "\n" for row in rows)
        elif path.suffix in (".json", ".toml"):
            text = _put(path.read_text("utf-8"))
        else:
            continue
        (folder / path.name).write_text(text, "utf-8")
    return folder


def audited(folder: Path, out: Path) -> dict[str, Any]:
    """What the audit of a bundle says, as JSON."""
    assert execute(["-q", "audit", str(folder), "-o", str(out), "--judge", "off"]) == 0
    report = out.with_suffix(".json")
    assert execute(["-q", "report", str(out), "--format", "json", "-o", str(report)]) == 0
    document: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return document


def _with_data(row: dict[str, Any]) -> dict[str, Any]:
    was = row.get("content_hash") is not None and row["content_hash"] == content_hash(row.get("text") or "")
    made: dict[str, Any] = json.loads(_put(json.dumps(row, ensure_ascii=False)))
    if was:
        made["content_hash"] = content_hash(made["text"])
    return made


def _put(text: str) -> str:
    for old, new in PUT.items():
        text = text.replace(old, new)
    return text
