"""Audits of the bundled example: as it is, and as it would be had the packer less room."""

import json
import shutil
from pathlib import Path

from ragaudit.audit.run import audit
from ragaudit.cli.commands.demo import example_folder
from ragaudit.config import load_settings
from ragaudit.readers.bundle import locate, open_bundle

BEFORE, AFTER = "token_budget = 900", "token_budget = 200"


def demo_audit(folder: Path) -> Path:
    """The example."""
    return _audited(folder / "demo", folder / "demo.audit")


def smaller_budget(folder: Path) -> Path:
    """The example with a smaller budget: one variable, and only the first chunk of each query is packed."""
    bundle = folder / "demo"
    audit_file = folder / "smaller.audit"
    _audited(bundle, None)
    settings = bundle / "ragaudit.toml"
    said = settings.read_text()
    assert said.count(BEFORE) == 1
    settings.write_text(said.replace(BEFORE, AFTER))
    lines = []
    for line in (bundle / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        for name in ("final_context_ids", "prompt_ids"):
            if trace.get(name):
                trace[name] = trace[name][:1]
        lines.append(json.dumps(trace))
    (bundle / "traces.jsonl").write_text("\n".join(lines) + "\n")
    return _written(bundle, audit_file)


def _audited(bundle: Path, out: Path | None) -> Path:
    shutil.copytree(example_folder(), bundle)
    return bundle if out is None else _written(bundle, out)


def _written(bundle: Path, out: Path) -> Path:
    audit(open_bundle(locate(bundle), load_settings(bundle / "ragaudit.toml", env={}, flags={})), out)
    return out
