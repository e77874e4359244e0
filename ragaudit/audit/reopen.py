"""A finished audit together with the bundle that it was made from, proven to be that bundle."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ragaudit import __version__
from ragaudit.audit.batch import Surroundings
from ragaudit.audit.judging import wants_judge
from ragaudit.audit.summing import audit_settings
from ragaudit.config import AclSettings, Settings, fingerprint
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.errors import InputError
from ragaudit.evidence.candidates import Searchable, searchable
from ragaudit.evidence.feedback import UserFeedback
from ragaudit.evidence.identity import Identities
from ragaudit.model.result import RunInfo, Summary
from ragaudit.readers.bundle import Bundle, read_traces
from ragaudit.readers.lines import sha256_of

COMPUTED = ("zero_result", "acl_excluded_gold", "filter_excluded_gold", "lexical_only_top_k", "feedback")
"""Slices that are worked out and not logged."""

_EVERY = 1_000


@dataclass(frozen=True)
class Audited:
    """An audit that can go on: everything that the queries of the run were looked at with."""

    path: Path
    run: RunInfo
    bundle: Bundle
    around: Surroundings
    search: Searchable
    wanting: frozenset[str]
    """Ids of the queries that leave something open which only a judge can tell."""


def reopen(path: Path, summary: Summary, bundle: Bundle, progress: Callable[[int], None] | None = None) -> Audited:
    """Take up an audit with its bundle. Reads the traces once.

    Args:
        path: The audit file.
        summary: What it says of its run.
        bundle: The open bundle.
        progress: Told now and then how many traces were read.

    Raises:
        InputError: A file of the bundle is not the one that was audited, or another ragaudit wrote the audit.
    """
    prove(path, summary.run, bundle)
    bundle = replace(bundle, settings=_as_audited(bundle.settings, summary))
    identities = Identities.of(bundle.inventory)
    preflight = Preflight(identities, bundle.settings)
    wanting = set()
    for trace in read_traces(bundle, limit=summary.run.traces):
        preflight.watch(trace)
        if wants_judge(trace):
            wanting.add(trace.query_id)
        if progress is not None and preflight.n % _EVERY == 0:
            progress(preflight.n)
    said = UserFeedback.of(bundle.feedback)
    around = Surroundings(bundle.settings, identities, bundle.settings.acl or AclSettings(), preflight.facts(), said)
    return Audited(path, summary.run, bundle, around, searchable(bundle.inventory), frozenset(wanting))


def prove(path: Path, run: RunInfo, bundle: Bundle) -> None:
    """Refuse a bundle that is not the audited one.

    Of ragaudit.toml only what the audit depends on must be as it was: [pipeline] and [acl]. A [judge] table may come
    later.

    Raises:
        InputError: It is another bundle, or another ragaudit wrote the audit.
    """
    if run.ragaudit != __version__:
        raise InputError(
            f"{path}: ragaudit {run.ragaudit} wrote it, this is {__version__}: two versions may conclude differently. "
            "Run `ragaudit audit BUNDLE` again."
        )
    names = bundle.paths.names()
    folder = bundle.paths.traces.parent
    free = {names[bundle.paths.config]} if bundle.paths.config is not None else set()
    free |= {name for name in run.inputs if name.endswith(".toml")}
    here = {name: digest for name, digest in bundle.digests.items() if name not in free}
    then = {name: file.sha256 for name, file in run.inputs.items() if name not in free}
    wrong = [f"{name} is not the file that was audited" for name in then if name in here and here[name] != then[name]]
    wrong += [f"{name} is missing" for name in then if name not in here]
    wrong += [f"{name} was not there when it was audited" for name in here if name not in then]
    if not wrong and fingerprint(bundle.settings.pipeline, run.k_final, bundle.settings.acl) != run.fingerprint:
        config = names[bundle.paths.config] if bundle.paths.config is not None else "ragaudit.toml"
        wrong = [f"[pipeline] or [acl] in {config} is not as it was audited"]
    if wrong:
        raise InputError(
            f"{folder}: {'; '.join(wrong)}. Name the bundle of {path.name} with --bundle, or audit this one anew."
        )


def refuse_if_changed(audited: Audited) -> None:
    """Look again whether the traces, which are read anew each time, are still the audited ones.

    Raises:
        InputError: They were changed since they were opened.
    """
    traces = audited.bundle.paths.traces
    name = audited.bundle.paths.names()[traces]
    if sha256_of(traces) != audited.bundle.digests[name]:
        raise InputError(f"{traces}: was changed since it was audited. Audit the bundle anew.")


def _as_audited(settings: Settings, summary: Summary) -> Settings:
    """The settings with what the audit was told, by flags or by the file as it was then."""
    logged = tuple(dict.fromkeys(part.slice for part in summary.slices if part.slice not in COMPUTED))
    counted = audit_settings(summary.run).model_copy(update={"min_queries": settings.audit.min_queries})
    return settings.model_copy(update={"audit": counted, "slices": logged})
