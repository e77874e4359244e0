"""Settings: what ragaudit.toml, the environment and the command line say, and which of them set what."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, ValidationError, field_validator

from ragaudit.errors import ConfigError
from ragaudit.model.faults import first_fault
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.record import Concluded
from ragaudit.toml_lines import line_of

_Int = Annotated[int, Strict()]
_Share = Annotated[float, Field(ge=0, le=1)]


class AclSettings(Concluded):
    """How a user's principals match a chunk's ACL: any in common, or every principal of the ACL held."""

    rule: Literal["any", "all"] = "any"
    everyone: tuple[str, ...] = ()
    """Principals that every user holds without their being logged."""


class AuditSettings(Concluded):
    """How the numbers are computed."""

    scope: Literal["answer", "retrieval"] = "answer"
    """`retrieval`: evidence that reached the prompt is a pass even when nobody judged the answer."""
    seed: Annotated[_Int, Field(ge=0)] = 0
    resamples: Annotated[_Int, Field(ge=1)] = 10_000
    gain: Literal["linear", "exp"] = "linear"
    min_queries: Annotated[_Int, Field(ge=1)] = 30


class ExperimentSettings(Concluded):
    """Where changes are authorised: the index that an experiment may write to ("test"), None = nowhere."""

    index_write: str | None = None


class QuadrantSettings(Concluded):
    """Where the 2x2 of context recall and faithfulness is cut."""

    context_recall: _Share = 0.5
    faithfulness: _Share = 0.7


class JudgeSettings(Concluded):
    """The judge: who is asked, how, within which limits, and where replies are kept."""

    model: str | None = None
    """As LiteLLM names it: provider/name."""
    api_base: str | None = None
    """Endpoint, when it is not the provider's own. Keys come from the environment."""
    mode: Literal["matrix", "per_claim"] = "matrix"
    """`per_claim` for small models: one claim a call."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Sent with each request; temperature 0 and a limit on the reply's tokens unless said here."""
    structured: Annotated[bool, Strict()] | None = None
    """Send the JSON schema of the reply: always, never, or None = where the model offers it."""
    max_texts: Annotated[_Int, Field(ge=1)] | None = None
    """Texts in one call of mode `per_claim`; 1 = each claim against each text alone, for very small models."""
    p_cut: Annotated[float, Field(gt=0, lt=1)] | None = None
    """A verdict counts as supported from this P(supported) on; fitted by `ragaudit judge calibrate`."""
    logprobs: Annotated[bool, Strict()] = False
    """Ask for token probabilities, from which P(supported) is read in mode `per_claim`."""
    concurrency: Annotated[_Int, Field(ge=1, le=64)] = 16
    """Calls in flight at most."""
    rpm: Annotated[float, Field(gt=0)] | None = None
    """Requests a minute."""
    tpm: Annotated[float, Field(gt=0)] | None = None
    """Tokens a minute, in and out."""
    max_cost: Annotated[float, Field(ge=0)] | None = None
    """US dollars for a run."""
    call_timeout: Annotated[float, Field(gt=0)] = 120.0
    """Seconds for one try of one call."""
    overall_timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds for a run."""
    attempts: Annotated[_Int, Field(ge=1, le=20)] = 5
    """Tries of a call whose failure may pass."""
    cassette: str | None = None
    """File of recorded replies, to be committed; relative to ragaudit.toml."""
    cache: str | None = ".ragaudit/judge"
    """Folder of the replies that this machine remembers, relative to ragaudit.toml; "" = none."""
    prompts: str | None = None
    """Folder with prompts that replace the shipped ones of the same name, relative to ragaudit.toml."""
    cuts: QuadrantSettings = QuadrantSettings()


class TuiSettings(Concluded):
    """How `ragaudit review` looks, and which keys it listens to. Names are checked by the app, which knows them."""

    theme: str | None = None
    keymap: dict[str, str] = Field(default_factory=dict)
    """Id of a key, as `review.agree` -> the keys that take its place, by comma."""

    @field_validator("keymap", mode="before")
    @classmethod
    def _dotted(cls, given: object) -> object:
        """`review.agree = "A"` without quotes is a table in a table to TOML; it is meant as the id."""
        return dict(_leaves(given)) if isinstance(given, dict) else given


class Settings(Concluded):
    """Everything a run was told. A table is None when it was missing from the file."""

    name: str | None = None
    pipeline: Pipeline = Pipeline()
    gates: dict[str, Any] | None = None
    judge: JudgeSettings | None = None
    slices: tuple[str, ...] | None = None
    """Names of `Trace.slices` to slice by; None = all of them."""
    acl: AclSettings | None = None
    experiment: ExperimentSettings | None = None
    audit: AuditSettings = AuditSettings()
    tui: TuiSettings = TuiSettings()
    origin: dict[str, str] = Field(default_factory=dict)
    """Dotted setting -> what set it: the file, "environment RAGAUDIT_X", "flag --x" or "default"."""


_TABLES = ("pipeline", "gates", "judge", "slices", "acl", "experiment", "audit", "tui")
_CLOSED: Mapping[str, tuple[str, ...]] = {
    "slices": ("dimensions",),
    "acl": tuple(AclSettings.model_fields),
    "experiment": tuple(ExperimentSettings.model_fields),
    "audit": tuple(AuditSettings.model_fields),
    "tui": tuple(TuiSettings.model_fields),
    "judge": tuple(JudgeSettings.model_fields),
    "judge.cuts": tuple(QuadrantSettings.model_fields),
}
_OPTIONS: Mapping[str, str] = {
    "name": "name",
    "judge": "judge.model",
    **{key: f"judge.{key}" for key in ("max_cost", "rpm", "tpm")},
    **{key: f"audit.{key}" for key in AuditSettings.model_fields},
}
"""What the environment (RAGAUDIT_SEED) and the command line (--seed) may set besides the file."""


def load_settings(path: Path | None, *, env: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    """Read the settings: a flag wins over the environment, the environment over the file.

    Args:
        path: ragaudit.toml, or None when there is none.
        env: The environment; only RAGAUDIT_<OPTION> is read.
        flags: Options of the command line by name (`seed`, `min_queries`, `judge`); None = not given.

    Raises:
        ConfigError: The file cannot be read, or a key or value in it, in the environment or in a flag is wrong.
    """
    place = path.name if path else "ragaudit.toml"
    text = _text(path) if path else ""
    tables = _parse(text, path) if path else {}
    try:
        _check_keys(tables)
        return _settled(tables, place, env, flags)
    except _Wrong as wrong:
        line = line_of(text, wrong.path) if wrong.source in ("", place) else None
        raise ConfigError(f"{wrong.source or place}{f':{line}' if line else ''}: {wrong}") from None


class _Wrong(ValueError):
    """What is wrong with a setting and what to do; where it stands; and what set it, "" = the file."""

    def __init__(self, message: str, path: tuple[str | int, ...], source: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.source = source


def _settled(tables: dict[str, Any], place: str, env: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    origin = {dotted: place for dotted, _ in _leaves(tables)}
    for source, dotted, value in _overrides(env, flags):
        *parents, key = dotted.split(".")
        table = tables
        for parent in parents:
            table = table.setdefault(parent, {})
        table[key] = value
        origin[dotted] = source
    for table_name, record in (("audit", AuditSettings), ("acl", AclSettings)):
        for key in record.model_fields:
            origin.setdefault(f"{table_name}.{key}", "default")
    return _validated(tables, origin)


def fingerprint(pipeline: Pipeline, k_final: int | None, acl: AclSettings | None) -> str:
    """Name a configuration: equal exactly when nothing that was said about the pipeline, K or the ACL rule differs.

    Unknown keys count. An absent table, an empty one and a null are the same: nothing was said.
    """
    said = {
        "pipeline": pipeline.model_dump(by_alias=True),
        "k_final": k_final,
        "acl": (acl or AclSettings()).model_dump(),
    }
    text = json.dumps(_canonical(said), sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return "b2:" + hashlib.blake2b(text.encode()).hexdigest()[:16]


def starter_toml() -> str:
    """The commented ragaudit.toml that `ragaudit init` writes."""
    return Path(__file__).with_name("starter.toml").read_text(encoding="utf-8")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply to read. Write flat tables.") from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        place = f"{path}:{found[1]}" if found else str(path)
        what = str(error)[: found.start()] if found else str(error)
        raise ConfigError(f"{place}: not valid TOML: {what}. Correct the line.") from None


def _check_keys(tables: Mapping[str, Any]) -> None:
    _refuse_unknown(tables, ("name", *_TABLES), ())
    for name in _TABLES:
        if name in tables and not isinstance(tables[name], dict):
            raise _Wrong(f"{name} is a value. Write it as a table: [{name}].", (name,))
    for dotted, known in _CLOSED.items():
        table: Any = tables
        for part in dotted.split("."):
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            _refuse_unknown(table, known, tuple(dotted.split(".")))


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], path: tuple[str, ...]) -> None:
    prefix = "".join(f"{part}." for part in path)
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"Did you mean '{prefix}{near[0]}'?" if near else f"Known here: {', '.join(known)}."
            raise _Wrong(f"unknown {'key' if prefix else 'table or key'} '{prefix}{key}'. {hint}", (*path, key))


def _overrides(env: Mapping[str, str], flags: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """(what set it, dotted setting, value), the weaker source first."""
    for option, dotted in _OPTIONS.items():
        variable = f"RAGAUDIT_{option.upper()}"
        if text := env.get(variable):
            is_whole = dotted.startswith("audit.") and re.fullmatch(r"-?\d{1,18}", text)
            yield f"environment {variable}", dotted, int(text) if is_whole else text
    for option, value in flags.items():
        if value is not None:
            yield f"flag --{option.replace('_', '-')}", _OPTIONS[option], value


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _validated(tables: dict[str, Any], origin: dict[str, str]) -> Settings:
    given = {**tables, "origin": origin}
    if "slices" in tables:
        given["slices"] = tables["slices"].get("dimensions")
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        fault = first_fault(error)
        path = ("slices", "dimensions", *fault.path[1:]) if fault.path[0] == "slices" else fault.path
        dotted = ".".join(map(str, path))
        source = next((name for key, name in origin.items() if dotted == key or dotted.startswith(f"{key}.")), "")
        wanted = fault.wanted.replace("an object", "a table") or "given"
        what = f"{dotted}: must be {wanted}, not {_short(fault.found)}. Correct the value."
        raise _Wrong(what, path, source) from None
    k_final = settings.pipeline.k_final
    if k_final is not None and k_final < 1:
        what = "pipeline.k_final: must be a number from 1. Write the K that reaches the prompt."
        raise _Wrong(what, ("pipeline", "k_final"))
    return settings


def _short(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        pairs = {str(key): _canonical(item) for key, item in value.items()}
        return {key: item for key, item in pairs.items() if item not in (None, {}, [])}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
