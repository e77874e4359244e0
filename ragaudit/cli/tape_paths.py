"""Where the judge's recorded replies are: what settings and options name, as paths."""

from pathlib import Path

from ragaudit.config import JudgeSettings
from ragaudit.readers.bundle import BundlePaths


def tape_paths(settings: JudgeSettings, paths: BundlePaths) -> tuple[Path | None, Path | None]:
    """(cassette, cache folder) of a bundle; relative ones stand beside its ragaudit.toml, or its traces."""
    folder = (paths.config or paths.traces).resolve().parent
    return under(folder, settings.cassette), under(folder, settings.cache)


def under(folder: Path, text: str | None) -> Path | None:
    """A path from the settings, None for none."""
    return folder / text if text else None
