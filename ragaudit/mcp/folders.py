"""Which paths an agent may name: inside the folders that the user gave at start, and nothing there is replaced."""

from dataclasses import dataclass, field, fields
from pathlib import Path

from ragaudit.compare.baselines import NAME, name_from
from ragaudit.errors import ConfigError
from ragaudit.readers.bundle import BundlePaths, locate

SESSION = "session:"
"""What the handle of an audit starts with that is kept for this session only."""


@dataclass(frozen=True)
class Folders:
    """The folders of one session, as real paths."""

    named: tuple[Path, ...]
    """What the user named; `audits` is among them when it is the user's."""
    audits: Path
    """Where audit files are written."""
    keeps: bool = False
    """Whether `audits` is a folder that the user gave with --write; else it goes when the session ends."""
    made: dict[Path, Path] = field(default_factory=dict)
    """Audit files of this session -> the bundle that each was made from."""

    @classmethod
    def of(cls, named: tuple[Path, ...], *, write: Path | None, scratch: Path) -> "Folders":
        """Check what the user named.

        Raises:
            ConfigError: One is no folder.
        """
        for folder in (*named, *([] if write is None else [write])):
            if not folder.is_dir():
                raise ConfigError(f"{folder}: no such folder. Name folders that hold bundles and audit files.")
        real = tuple(dict.fromkeys(folder.resolve() for folder in (*named, *([] if write is None else [write]))))
        return cls(real, (write or scratch).resolve(), keeps=write is not None)

    def inside(self, given: str) -> Path:
        """The real path that is meant: absolute, in a named folder, or beginning with the name of one.

        Raises:
            ConfigError: It is not inside a named folder, symbolic links followed.
        """
        try:
            paths = [(start / given).resolve() for folder in self.named for start in (folder, folder.parent)]
            allowed = [path for path in paths if any(path.is_relative_to(folder) for folder in self.named)]
            there = next((path for path in allowed if path.exists()), None)
        except (OSError, ValueError, RuntimeError):  # a NUL, a name that is too long, links in a circle
            raise ConfigError(f"{given!r}: no path. Name a file or a folder in {self._listed()}.") from None
        if not allowed:
            raise ConfigError(
                f"{given}: not inside what the user named at start ({self._listed()}). Nothing there is read. "
                "Ask the user, who may start `ragaudit mcp` with that folder too."
            )
        return there or allowed[0]

    def bundle(self, given: str) -> BundlePaths:
        """The files of a bundle, each inside the named folders.

        Raises:
            ConfigError: The folder, or what a link in it leads to, is outside.
            InputError: It is no bundle.
        """
        paths = locate(self.inside(given))
        for one in fields(paths):
            path = getattr(paths, one.name)
            if path is not None:
                self.inside(str(path))
        return paths

    def audit(self, given: str) -> Path:
        """An audit file: a path inside the named folders, or the handle of one made in this session.

        Raises:
            ConfigError: It is outside, or there is no audit of that handle.
        """
        if not given.startswith(SESSION):
            return self.inside(given)
        path = self.audits / f"{given.removeprefix(SESSION)}.audit"
        if self.keeps or path not in self.made:
            known = ", ".join(map(self.handle, self.made)) or "none yet"
            raise ConfigError(f"{given}: no audit of this session. Call `audit` first; there are: {known}.")
        return path

    def handle(self, path: Path) -> str:
        """What an agent calls an audit file."""
        return f"{SESSION}{path.stem}" if path in self.made and not self.keeps else str(path)

    def place_for(self, bundle: Path, name: str | None) -> Path:
        """Where the audit of a bundle goes: its own earlier audit is made anew, nothing else is replaced.

        Raises:
            ConfigError: The name is no file name, or something else of that name is there.
        """
        name = name or name_from(bundle.name)
        if not NAME.fullmatch(name):
            raise ConfigError(f"name {name!r}: is no file name. Use letters, digits, '.', '_' and '-'.")
        path = self.audits / f"{name}.audit"
        partial = path.with_name(f"{path.name}.partial")
        taken = self.made.get(path, bundle) != bundle or (path not in self.made and path.exists())
        if taken or path.is_symlink() or partial.is_symlink():
            raise ConfigError(f"{self.handle(path)}: is there already, and not from this bundle. Pass another name.")
        self.made[path] = bundle
        return path

    def _listed(self) -> str:
        return ", ".join(map(str, self.named))
