"""Walks a JSON value: what each string is by the name of its field, and what becomes of it."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ragaudit.model.texts import content_hash
from ragaudit.readers.lines import LineError
from ragaudit.redact.credentials import SECRET_FIELD, is_random
from ragaudit.redact.pseudonyms import PSEUDONYM, Kind
from ragaudit.redact.shadow import Form, shadow
from ragaudit.redact.text import Redactor


class TextMode(StrEnum):
    """What becomes of texts."""

    KEEP = "keep-redacted"
    DROP = "drop"


_TEXTS = frozenset(
    [
        "query_text",
        "query_rewrite",
        "previous_query",
        "text",
        "extracted_text",
        "span",
        "reference",
        "notes",
        "note",
        "error",
        "context_texts",
        "answer",
        "answer_text",
        "probe_value",
    ]
)
_STAY = frozenset(["query_text", "query_rewrite", "previous_query", "answer", "answer_text", "probe_value"])
"""Texts that must be there, or whose being there means something: dropped, they become a pseudonym, not null."""
_IDS = frozenset(
    [
        "id",
        "query_id",
        "chunk_id",
        "source_id",
        "parent_id",
        "gold_id",
        "gold_ids",
        "gold_groups",
        "final_context_ids",
        "prompt_ids",
        "aliases",
        "superseded_by",
        "session_id",
        "supported_by",
        "previous_context_ids",
        "id_map",
        "index_revision",
        "revision",
        "chunk_ids",
    ]
)
_WHOLE = frozenset(["context_texts", "query_rewrite", "id_map", "user_acl", "acl", "config", "probes", "score"])
"""What stands in these is what they are, whatever the keys in them."""
_AS_THEY_ARE = frozenset(
    [
        "user_acl",
        "acl",
        "config",
        "probes",
        "score",
        "namespace",
        "embedding_model",
        "model",
        "index_revision",
        "revision",
        "arm",
        "sources",
    ]
)
"""Principals, configuration, measurements, names: redacted, and not dropped, since they are compared with keys."""
_HASH = re.compile(r"(?:.*[_-])?(?:hash|digest|checksum|md5|sha\d*|etag)", re.IGNORECASE)
_WEAK_SECRET = re.compile(r"(?:.*[_-])?(?:token|key|sig|signature)", re.IGNORECASE)
_CODE = re.compile(r"[\x21-\x7e]{0,80}|\d{4}-\d\d-\d\d \d\d:[\d:.+ Z-]{2,24}")
"""Looks like a code, a date or an id, not like text: what `--text drop` leaves in free-form fields."""
_NAME = re.compile(r"[A-Za-z_][\w-]{0,40}", re.ASCII)
MAX_FIELDS = 500


@dataclass
class Tally:
    """How many values of each kind were replaced in each field. Never a value."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(file, field, kind) -> how many."""

    def add(self, file: str, place: str, kinds: Mapping[Any, int]) -> None:
        """Count; places beyond the first `MAX_FIELDS` are counted together."""
        for kind, n in kinds.items():
            key = (file, place, str(kind))
            if key not in self.counts and len(self.counts) >= MAX_FIELDS:
                key = (file, "(other fields)", str(kind))
            self.counts[key] += n


@dataclass(frozen=True)
class Walker:
    """Redacts JSON values of one run."""

    redactor: Redactor
    mode: TextMode
    tally: Tally

    def row(self, value: Any, file: str) -> Any:
        """The value without what is sensitive. Numbers, booleans, null and the shape stay as they are.

        With texts dropped, texts become null or a pseudonym, and a chunk gets the hash of its text under the key.

        Raises:
            LineError: Two keys of an object became one, or it is nested too deeply.
        """
        try:
            return self._value(value, "", (), file)
        except RecursionError:
            raise LineError("is nested too deeply to read. Write flat records.") from None

    def line(self, text: str, file: str) -> str:
        """One value of a table without field names, such as an id in qrels."""
        return str(self._string(text, "id", "id", file))

    def text(self, text: str, file: str, form: Form) -> str:
        """A part of a report, or of ragaudit.toml, whose values are compared as they stand."""
        counts: Counter[Kind] = Counter()
        shown = self.redactor.redact(text, counts, exact=form is Form.PLAIN, form=form)
        self.tally.add(file, "(text)", counts)
        return shown

    def _value(self, value: Any, name: str, path: tuple[str, ...], file: str) -> Any:
        if isinstance(value, str):
            return self._string(value, name, ".".join(path), file)
        if isinstance(value, list):
            return [self._value(item, name, path, file) for item in value]
        if isinstance(value, dict):
            return self._object(value, name, path, file)
        return value

    def _object(self, value: dict[str, Any], name: str, path: tuple[str, ...], file: str) -> Any:
        drop = self.mode is TextMode.DROP
        if drop and name == "context_texts":
            return None
        made: dict[str, Any] = {}
        text, stored = value.get("text"), value.get("content_hash")
        whole = isinstance(text, str) and stored == content_hash(text)
        for key, item in value.items():
            shown = self._key(key, name, path, file)
            if shown in made:
                raise LineError("two keys of an object got the same pseudonym. Give each key one spelling.")
            place = (
                *path,
                key if shown == key and _NAME.fullmatch(key) and name not in ("context_texts", "id_map") else "*",
            )
            own = key == "content_hash" and whole and not drop  # follows its text, below
            made[shown] = item if own else self._value(item, _role(key, name), place, file)
        if drop and isinstance(text, str) and "chunk_id" in value:
            digest = stored if isinstance(stored, str) and stored else content_hash(text)
            made["content_hash"] = self.redactor.pseudonyms.of(Kind.HASH, digest, digest)
        elif whole and not drop:
            made["content_hash"] = content_hash(made["text"])
        return made

    def _key(self, key: str, name: str, path: tuple[str, ...], file: str) -> str:
        if self.mode is TextMode.DROP and name == "id_map":
            return str(self._string(key, "id", ".".join((*path, "*")), file))
        counts: Counter[Kind] = Counter()
        shown = self.redactor.redact(key, counts, exact=True, is_id=name in ("context_texts", "id_map"))
        if counts:
            self.tally.add(file, ".".join((*path, "*")), counts)
        return shown

    def _string(self, text: str, name: str, place: str, file: str) -> Any:
        counts: Counter[Kind] = Counter()
        made = self._made(text, name, counts)
        self.tally.add(file, place, counts)
        return made

    def _made(self, text: str, name: str, counts: Counter[Kind]) -> str | None:
        pseudonyms = self.redactor.pseudonyms
        if not text or PSEUDONYM.fullmatch(shadow(text).text):
            return text
        if _HASH.fullmatch(name):
            counts[Kind.HASH] += 1
            return pseudonyms.of(Kind.HASH, text, text)
        if (SECRET_FIELD.fullmatch(name) and len(text) >= 4) or (_WEAK_SECRET.fullmatch(name) and is_random(text)):
            counts[Kind.SECRET] += 1
            return pseudonyms.of(Kind.SECRET, text, text, exact=True)
        is_text = name in _TEXTS
        if self.mode is TextMode.DROP and name not in _AS_THEY_ARE:
            if is_text and name not in _STAY:
                counts[Kind.TEXT] += 1
                return None
            if is_text or not _CODE.fullmatch(text):
                counts[Kind.TEXT] += 1
                return pseudonyms.of(Kind.TEXT, content_hash(text) if is_text else text, "", exact=False)
        return self.redactor.redact(text, counts, exact=not is_text, is_id=name in _IDS)


def _role(key: str, name: str) -> str:
    """What a field's strings are: by its own name, or by that of the object it stands in."""
    if name == "probes" and key in ("value", *_IDS):
        return "probe_value" if key == "value" else key
    return name if name in _WHOLE or (name == "answer" and key == "text") else key
