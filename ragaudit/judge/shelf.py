"""What stands on the tapes of this machine and of a repository: counted, verified, pruned, exported. Asks nobody."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ragaudit.errors import InputError
from ragaudit.judge.asking import unusable
from ragaudit.judge.cache import ReplyCache
from ragaudit.judge.cassette import Cassette, keep_only, part_of, problems
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.recording import key_of_asked, request_key
from ragaudit.judge.runner import run
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import JudgeSample, Reply, Request


@dataclass(frozen=True)
class Shelf:
    """One place where replies are kept: a cassette file, or the cache folder."""

    path: Path
    is_cassette: bool

    @property
    def kind(self) -> str:
        """`cassette` or `cache`."""
        return "cassette" if self.is_cassette else "cache"


@dataclass(frozen=True)
class Stats:
    """What one place holds. `usd` is what the replies cost when they were asked for, as far as prices are known."""

    replies: int
    bytes: int
    prompts: dict[str, int] = field(default_factory=dict)
    """`name@version` -> replies."""
    models: dict[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    unusable: int = 0
    """Replies that were cut off or refused, or say that the request was too long: replayed, and never verdicts."""


def entries(shelf: Shelf) -> Iterator[tuple[str, dict[str, Any], Reply]]:
    """(key, what was asked, reply) of everything that may be replayed. Nothing is written."""
    if not shelf.is_cassette:
        cache = ReplyCache.open(shelf.path, records=False)
        try:
            yield from cache.entries()
        finally:
            cache.release()
        return
    cassette = Cassette.open(shelf.path, records=False)
    for question in cassette.questions():
        key = key_of_asked(question)
        reply = cassette.find(key)
        if reply is not None:
            yield key, question, reply


def stats(shelf: Shelf) -> Stats:
    """Count what is there. A place that does not exist holds nothing."""
    prompts: Counter[str] = Counter()
    models: Counter[str] = Counter()
    n_in = n_out = unpriced = without_verdict = 0
    usd = 0.0
    for _, question, reply in entries(shelf):
        prompts[_prompt(question)] += 1
        models[str(question.get("model"))] += 1
        n_in += reply.input_tokens
        n_out += reply.output_tokens
        usd += reply.usd or 0.0
        unpriced += reply.usd is None
        without_verdict += unusable(reply) is not None
    return Stats(
        prompts.total(),
        _size(shelf),
        dict(sorted(prompts.items())),
        dict(sorted(models.items())),
        n_in,
        n_out,
        usd,
        unpriced,
        without_verdict,
    )


def verify(shelf: Shelf) -> tuple[str, ...]:
    """What is wrong with a place, one line each: edited, damaged or unfinished recordings.

    Raises:
        InputError: It does not exist, or cannot be read at all.
    """
    if not shelf.path.exists():
        raise InputError(f"{shelf.path}: no such {shelf.kind}. Check the path.")
    if shelf.is_cassette:
        left = part_of(shelf.path)
        interrupted = (f"{left}: a recording was interrupted. Record again to take it up.",) if left.exists() else ()
        return (*problems(shelf.path), *interrupted)
    cache = ReplyCache.open(shelf.path, records=False)
    try:
        found = [
            f"{shelf.path}: {key[:19]}: stands under the key of another question. Prune it."
            for key, question, _ in cache.entries()
            if key_of_asked(question) != key
        ]
        if cache.damaged:
            found.append(f"{shelf.path}: {cache.damaged} damaged rows. They are asked again when they are needed.")
    finally:
        cache.release()
    return tuple(found)


def current(shelf: Shelf, prompts: PromptSet) -> frozenset[str]:
    """The keys that can still be asked: those of the present version of a known prompt."""
    known = {f"{name}@{version}" for name, version in prompts.versions().items()}
    return frozenset(key for key, question, _ in entries(shelf) if _prompt(question) in known)


def answered(shelf: Shelf) -> frozenset[str]:
    """The keys whose replies were neither cut off nor refused, and whose requests were not too long."""
    return frozenset(key for key, _, reply in entries(shelf) if unusable(reply) is None)


def used(
    samples: Iterable[JudgeSample], shelves: Collection[Shelf], *, prompts: PromptSet, how: HowToJudge
) -> frozenset[str]:
    """The keys that judging these samples asks for, found by replaying all of it.

    Raises:
        TapeMissError: Not everything is recorded, so that what is unused cannot be told.
    """
    cassette = next((shelf.path for shelf in shelves if shelf.is_cassette), None)
    cache = next((shelf.path for shelf in shelves if not shelf.is_cassette), None)
    with _Noting.open(TapeMode.NONE, cassette=cassette, cache=cache) as tape:
        assert isinstance(tape, _Noting)
        for _ in run(samples, prompts=prompts, how=how, tape=tape, client=None):
            pass
        return frozenset(tape.seen)


def droppable(shelf: Shelf, keep: Collection[str]) -> int:
    """How many replies `prune` would drop. Damaged rows, which it drops too, are not counted."""
    return sum(key not in keep for key, _, _ in entries(shelf))


def prune(shelf: Shelf, keep: Collection[str]) -> int:
    """Drop everything else from a place; returns how many replies were dropped."""
    if shelf.is_cassette:
        return keep_only(shelf.path, keep)
    cache = ReplyCache.open(shelf.path, records=True)
    try:
        return cache.keep_only(keep)
    finally:
        cache.release()


def export(shelves: Iterable[Shelf], out: Path, keep: Collection[str] | None = None) -> int:
    """Write replies into one cassette, beside those that are there; returns how many were added.

    Args:
        shelves: Where they come from; of two replies under one key the first is taken.
        out: The cassette.
        keep: Only these keys; None = all.
    """
    cassette = Cassette.open(out, records=True)
    added = 0
    for shelf in shelves:
        for key, question, reply in entries(shelf):
            if key not in cassette and (keep is None or key in keep):
                cassette.record(msgspec.convert(question, Request), reply, key=key)
                added += 1
    cassette.close()
    return added


class _Noting(Tape):
    """A tape that remembers what it was asked for."""

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.seen: set[str] = set()

    def find(self, request: Request, *, key: str | None = None, about: JudgeSample | None = None) -> Reply | None:
        """As any tape, and note the key."""
        key = key or request_key(request)
        reply = super().find(request, key=key, about=about)
        self.seen.add(key)
        return reply


def _prompt(question: dict[str, Any]) -> str:
    return f"{question.get('prompt')}@{question.get('version')}"


def _size(shelf: Shelf) -> int:
    if shelf.path.is_file():
        return shelf.path.stat().st_size
    return sum(file.stat().st_size for file in shelf.path.glob("*") if file.is_file()) if shelf.path.is_dir() else 0
