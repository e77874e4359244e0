"""Preflight rules on ACLs: entries that prove nothing as they stand, and principals that almost meet."""

from collections.abc import Iterable

from ragaudit.config import AclSettings
from ragaudit.diagnosis.preflight_rules import noted
from ragaudit.evidence.principals import PUBLIC, denials, folded
from ragaudit.model.inventory import Inventory
from ragaudit.model.result import Finding, Level
from ragaudit.model.trace import Trace


class AccessNotes:
    """Counts what keeps an ACL from proving who may read: over the inventory at once, then query by query."""

    def __init__(self, inventory: Inventory, acl: AclSettings) -> None:
        rows = [*(inventory.sources or {}).values(), *(inventory.chunks or {}).values()]
        self._everyone = acl.everyone
        self._named: set[str] = set()
        self._denying = self._public = self._almost = 0
        for row in rows:
            if row.acl:
                self._named.update(row.acl)
                self._denying += bool(denials(row.acl))
                self._public += any(folded(entry) in PUBLIC for entry in row.acl)
        self._folded = {folded(entry) for entry in self._named}

    def watch(self, trace: Trace) -> None:
        """Count a query whose user holds a principal that an ACL names with another case or spacing only."""
        self._almost += any(p not in self._named and folded(p) in self._folded for p in trace.user_acl or ())

    def findings(self, n: int) -> Iterable[Finding]:
        """What was counted over n queries."""
        if self._almost:
            yield noted(
                "acl_spelling",
                Level.WARN,
                f"{self._almost} of {n} queries hold a principal that ACLs name in another case or spacing: "
                "such a pair proves neither access nor a leak",
                "Log user_acl and the ACLs in one spelling.",
            )
        if self._denying:
            yield noted(
                "acl_denies",
                Level.WARN,
                f"{self._denying} ACLs hold entries that deny (!x, -x, deny:x): they are not evaluated",
                "Export ACLs as the lists of who may read; access that a denial may take away stays unknown.",
            )
        if self._public and not self._everyone:
            yield noted(
                "acl_everyone",
                Level.WARN,
                f"{self._public} ACLs name {', '.join(sorted(PUBLIC))} or the like, and [acl] everyone is not set: "
                "whom they admit is not known",
                "Write the principals that every user holds as [acl] everyone in ragaudit.toml.",
            )
