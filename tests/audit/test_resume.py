"""An audit that was interrupted and resumed says what one says that was not."""

import io
from pathlib import Path

import pytest

from ragaudit.audit import run
from ragaudit.config import AuditSettings, Settings, load_settings
from ragaudit.readers.bundle import Bundle, locate, open_bundle
from ragaudit.report import as_json
from ragaudit.store import AuditReader


def opened(folder: Path) -> Bundle:
    paths = locate(folder)
    settings: Settings = load_settings(paths.config, env={}, flags={})
    return open_bundle(paths, settings.model_copy(update={"audit": AuditSettings(resamples=200)}))


def document(path: Path) -> str:
    out = io.StringIO()
    with AuditReader.open(path) as reader:
        as_json.write(out, reader.summary(), reader.iter_results())
    return out.getvalue()


@pytest.mark.parametrize("stopped_at", [20, 60])
def test_a_resumed_audit_is_the_same_to_the_last_digit(
    stopped_at: int, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo has leaks, whose rows stand first in the file: a sum in that order has other last digits."""
    monkeypatch.setattr(run, "BATCH", 20)
    demo = repository / "examples" / "demo"

    def stop(done: int) -> None:
        if done == stopped_at:
            raise KeyboardInterrupt

    whole, resumed = tmp_path / "whole.audit", tmp_path / "resumed.audit"
    run.audit(opened(demo), whole)
    with pytest.raises(KeyboardInterrupt):
        run.audit(opened(demo), resumed, progress=stop)
    told: list[int] = []
    run.audit(opened(demo), resumed, progress=told.append)
    assert told[0] == stopped_at
    with AuditReader.open(whole) as reader:
        assert reader.summary().acl.leaks
    assert document(resumed) == document(whole)


def test_an_audit_of_another_bundle_says_where_the_unfinished_one_went(repository: Path, tmp_path: Path) -> None:
    demo, out = repository / "examples" / "demo", tmp_path / "run.audit"

    def stop(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.audit(opened(demo), out, limit=10, progress=stop)
    said: list[str] = []
    run.audit(opened(demo), out, limit=11, saying=said.append)
    assert said == [
        f"{out}.partial was an unfinished audit of other files, settings or version. It is kept as {out}.partial.1: "
        "to finish it, give it its name back and run its command again."
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.audit", "run.audit.partial.1"]
