import pytest
from inventory_builders import Exporter


@pytest.fixture
def export(tmp_path, capsys, monkeypatch):
    """`export(STORE, PATH, ...)` runs the command; `.out` is the folder that it writes."""
    for name in ("RAGAUDIT_STORE_URL", "RAGAUDIT_STORE_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Exporter(tmp_path / "out", capsys)
