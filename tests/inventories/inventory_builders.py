"""Runs `ragaudit inventory` and reads what it wrote; the shared corpus of the store tests."""

import hashlib
import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ragaudit.cli.main import execute

CORPUS = [
    ("kb-1#0", "kb-1", "Reset your password in Settings.", ["role:support", "role:public"]),
    ("kb-1#1", "kb-1", "Links expire after 30 minutes.", ["role:support"]),
    ("kb-2#0", "kb-2", "Error E4042: the card token was rejected.", ["role:support"]),
]
VECTORS = [[1.0, 2.0, 2.0, 0.0], [0.0, 3.0, 4.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
LENGTHS = [3.0, 5.0, 1.0]


def needs(module, extra):
    """A mark: skip where the client of a store is not installed."""
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed (extra {extra})")


@dataclass
class Outcome:
    code: int
    account: dict
    out: Path
    err: str
    files: dict = field(default_factory=dict)

    @property
    def chunks(self):
        return {row["chunk_id"]: row for row in self.rows("chunks.jsonl")}

    @property
    def sources(self):
        return {row["source_id"]: row for row in self.rows("sources.jsonl")}

    @property
    def index(self):
        return json.loads((self.out / "index.json").read_text("utf-8"))

    def rows(self, name):
        return [json.loads(line) for line in (self.out / name).read_text("utf-8").splitlines()]


class Exporter:
    """Runs the command into one folder."""

    def __init__(self, out, capsys):
        self.out = out
        self._capsys = capsys

    def __call__(self, *arguments):
        self._capsys.readouterr()
        code = execute(["inventory", *map(str, arguments), "-o", str(self.out), "--json"])
        said = self._capsys.readouterr()
        return Outcome(code, json.loads(said.out) if said.out else {}, self.out, said.err)


def digests(folder):
    """Every file of a folder with the digest of its bytes."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
