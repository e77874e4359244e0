"""Source documents: Markdown files with a small front matter."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """One document as its owner published it."""

    source_id: str
    title: str
    text: str
    acl: tuple[str, ...]
    language: str
    family: str
    updated: str
    superseded_by: str | None = None
    metadata: dict[str, str | int] = field(default_factory=dict)


def load_corpus(folder: Path) -> dict[str, Source]:
    """Read every Markdown file of a folder, sorted by name."""
    sources = (_read(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.md")))
    return {source.source_id: source for source in sources}


def former_version(source: Source, changes: tuple[tuple[str, str], ...], updated: str) -> Source:
    """The document as it was before the given replacements were made."""
    text = source.text
    for now, before in changes:
        if now not in text:
            raise ValueError(f"{source.source_id}: {now!r} is not in the text")
        text = text.replace(now, before)
    return replace(source, text=text, updated=updated)


def content_hash(text: str) -> str:
    """Hash of the text after NFC normalisation and with whitespace collapsed."""
    return "sha256:" + hashlib.sha256(normalise(text).encode("utf-8")).hexdigest()


def normalise(text: str) -> str:
    """NFC, whitespace collapsed."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


def _read(raw: str) -> Source:
    _, head, body = raw.split("---\n", 2)
    entries = dict(line.split(": ", 1) for line in head.strip().splitlines())
    metadata: dict[str, str | int] = {
        "family": entries["family"],
        "language": entries["language"],
        "updated": entries["updated"],
    }
    for key in ("region", "tenant"):
        if key in entries:
            metadata[key] = entries[key]
    if "api_version" in entries:
        metadata["api_version"] = int(entries["api_version"])
    return Source(
        source_id=entries["id"],
        title=entries["title"],
        text=body.strip() + "\n",
        acl=tuple(entries["acl"].strip("[]").split(", ")),
        language=entries["language"],
        family=entries["family"],
        updated=entries["updated"],
        superseded_by=entries.get("superseded_by"),
        metadata=metadata,
    )
