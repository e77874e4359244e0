"""What the package promises before any command runs: layers, imports without effect, a wheel that works."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ragaudit import __version__

HEAVY = ("numpy", "pydantic", "jinja2", "litellm", "textual", "click", "diskcache", "msgspec")


def _loaded_after(code: str) -> set[str]:
    probe = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_imports_point_down_the_layers(repository: Path) -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=repository, capture_output=True, text=True)
    assert "3 kept, 0 broken" in done.stdout, done.stdout + done.stderr


def test_importing_ragaudit_loads_nothing_else() -> None:
    assert _loaded_after("import ragaudit").isdisjoint(HEAVY)


def test_the_recorder_brings_nothing_into_the_application() -> None:
    assert _loaded_after("import ragaudit.record").isdisjoint((*HEAVY, "asyncio", "opentelemetry", "yaml"))


@pytest.mark.parametrize("module", ["ragaudit.audit.run", "ragaudit.report.markdown", "ragaudit.store.reader"])
def test_the_core_loads_neither_litellm_nor_textual_nor_click(module: str) -> None:
    assert _loaded_after(f"import {module}").isdisjoint({"litellm", "textual", "click", "rich", "pyarrow"})


def test_importing_writes_nothing_and_sets_no_variable(tmp_path: Path) -> None:
    code = "import os; was = dict(os.environ); import ragaudit.cli.main, ragaudit.audit.run; assert was == os.environ"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


def test_broad_catches_stand_only_in_the_entry_point_and_in_the_guard_of_the_recorder(repository: Path) -> None:
    """The recorder runs inside an application that must answer whatever happens to it; one function stands for that."""
    broad = re.compile(r"except\s*(Exception|BaseException)?\s*:|except \(?(Base)?Exception\b")
    texts = {
        p.relative_to(repository).as_posix(): p.read_text("utf-8") for p in (repository / "ragaudit").rglob("*.py")
    }
    found = {name: len(broad.findall(text)) for name, text in texts.items() if broad.search(text)}
    assert found == {"ragaudit/cli/main.py": 1, "ragaudit/record/guard.py": 1}


def test_nothing_unpickles_or_evaluates(repository: Path) -> None:
    forbidden = re.compile(r"\bimport pickle\b|\bpickle\.|(?<![\w.])eval\(|(?<![\w.])exec\(")
    found = [p.name for p in (repository / "ragaudit").rglob("*.py") if forbidden.search(p.read_text("utf-8"))]
    assert found == []


def test_the_license_is_the_text_of_apache_2_and_goes_into_the_source_package(repository: Path, tmp_path: Path) -> None:
    text = (repository / "LICENSE").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    with tarfile.open(tmp_path / f"ragaudit-{__version__}.tar.gz") as archive:
        held = archive.extractfile(f"ragaudit-{__version__}/LICENSE")
        assert held is not None and held.read() == text
        project = archive.extractfile(f"ragaudit-{__version__}/PKG-INFO")
        assert project is not None and b"License-Expression: Apache-2.0\nLicense-File: LICENSE\n" in project.read()


def _pins(lock: Path) -> dict[str, list[str]]:
    """Name and version -> hashes. Markers are left out: what only Windows runs on, tests may need everywhere."""
    rows = re.findall(r"^([\w.-]+==\S+)(.*?)(?=^\S|\Z)", lock.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return {pin: re.findall(r"sha256:\w+", rest) for pin, rest in rows}


def test_what_runs_ragaudit_is_locked_apart_and_is_part_of_what_tests_it(repository: Path) -> None:
    """The same versions and hashes in both, and nothing in the smaller one that only a developer needs."""
    core, dev = _pins(repository / "requirements.lock"), _pins(repository / "requirements-dev.lock")
    assert core and core == {pin: dev.get(pin) for pin in core}
    named = {pin.partition("==")[0] for pin in core}
    assert {"click", "numpy", "pydantic", "textual", "litellm"} <= named
    assert named.isdisjoint({"pytest", "mypy", "pyarrow", "chromadb", "langchain-core", "mcp", "uv"})


def test_the_built_wheel_holds_the_demo_and_runs_it(repository: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(site)
    assert {"ragaudit/examples/demo/traces.jsonl", "ragaudit/report/templates/report.md.jinja"} <= names
    assert [name for name in names if name.endswith("/LICENSE")] == [
        f"ragaudit-{__version__}.dist-info/licenses/LICENSE"
    ]
    assert not any(name.startswith(("tests/", "benchmarks/", "examples/")) for name in names)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    probe = "import ragaudit; from ragaudit.cli.main import execute; print(ragaudit.__file__); exit(execute(['demo']))"
    done = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, _, said = done.stdout.partition("\n")
    assert Path(first).is_relative_to(site)
    assert "55 of 90 queries fail" in said
    assert "Lost at" in said
