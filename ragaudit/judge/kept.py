"""Judgements kept beside the replies they were made from: a rerun that would judge the same again reads them back.

A judgement follows from its sample, the prompts, how it is asked, the code that judges, and the replies. The first four
are its key. The replies cannot be, for what is asked second depends on the first reply: their checksums are kept with
the judgement, and those on the tape must still be the same. Whatever differs, the query is judged from its replies.
"""

import hashlib
import sys
from functools import cache
from pathlib import Path

import msgspec

from ragaudit.judge.cache import ReplyCache
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.tape import Tape
from ragaudit.model.judgement import Judgement, JudgeSample


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    marks: list[str]
    """The checksum of each call's reply, in order."""
    judgement: Judgement


_ROW = msgspec.json.Decoder(_Row)


class KeptJudgements:
    """What was judged before with the same prompts, settings and code."""

    def __init__(self, rows: ReplyCache, prompts: PromptSet, how: HowToJudge, *, records: bool) -> None:
        self._rows = rows
        self._records = records
        texts = {name: prompt.text for name, prompt in prompts.prompts.items()}
        ground = [code(), texts, how.model_dump(mode="json")]
        self._ground = hashlib.sha256(msgspec.json.encode(ground, order="deterministic"))

    @classmethod
    def of(cls, tape: Tape, prompts: PromptSet, how: HowToJudge) -> "KeptJudgements | None":
        """Those of the tape's cache. None = a cassette is replayed, or everything is asked again: nothing is kept."""
        return None if tape.only_cache is None else cls(tape.only_cache, prompts, how, records=tape.records)

    def find(self, sample: JudgeSample) -> Judgement | None:
        """The judgement that the replies on the tape would give again; None = it has to be made from them."""
        key = self._key(sample)
        text = None if key is None else self._rows.kept(key)
        if text is None:
            return None
        try:
            row = _ROW.decode(text)
        except msgspec.DecodeError:
            return None
        return row.judgement if row.marks and row.marks == self._marks(row.judgement) else None

    def keep(self, sample: JudgeSample, judgement: Judgement) -> None:
        """Keep a judgement all of whose replies are on the tape; one with a failed or unsent call is made again."""
        key = self._key(sample)
        marks = self._marks(judgement)
        if key is None or not self._records or not marks or None in marks:
            return
        calls = tuple(msgspec.structs.replace(call, from_tape=True) for call in judgement.calls)
        row = {"marks": marks, "judgement": msgspec.structs.replace(judgement, calls=calls)}
        self._rows.keep(key, msgspec.json.encode(row).decode())

    def _key(self, sample: JudgeSample) -> str | None:
        """None = a text that no file can hold."""
        try:
            text = sample.model_dump_json()
        except ValueError:
            return None
        digest = self._ground.copy()
        digest.update(text.encode())
        return digest.hexdigest()

    def _marks(self, judgement: Judgement) -> list[str | None]:
        return [self._rows.mark(call.key) for call in judgement.calls]


@cache
def code() -> str:
    """A digest of the code that makes judgements, and of the Python that runs it."""
    here = Path(__file__).parent
    digest = hashlib.sha256(sys.version.encode())
    for file in [*sorted(here.glob("*.py")), here.parent / "model" / "judgement.py"]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
