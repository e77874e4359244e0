"""Where the judge's recorded replies are: what settings and options name, as paths."""

from pathlib import Path

from ragaudit.config import JudgeSettings
from ragaudit.readers.bundle import BundlePaths


def folder_of(paths: BundlePaths) -> Path:
    """What relative paths of the settings are relative to: the folder of ragaudit.toml, or of the traces."""
    return (paths.config or paths.traces).resolve().parent


def tape_paths(settings: JudgeSettings, folder: Path) -> tuple[Path | None, Path | None]:
    """(cassette, cache folder)."""
    return (
        folder / settings.cassette if settings.cassette else None,
        folder / settings.cache if settings.cache else None,
    )
