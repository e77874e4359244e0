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
        acls = [row.acl for row in (inventory.sources or {}).values()]
        acls += [row.acl for row in (inventory.chunks or {}).values()]
        self._named: set[str] = set()
        self._denying = self._almost = self._without_public = 0
        for listed in acls:
            self._named.update(listed or ())
            self._denying += bool(denials(listed or ()))
        self._public = {e for e in self._named if folded(e) in PUBLIC} if not acl.everyone else set()
        self._folded = {folded(entry) for entry in self._named}

    def watch(self, trace: Trace) -> None:
        """Count a query whose principals meet an ACL but for case or spacing, or lack an entry that means everyone."""
        held = trace.user_acl or ()
        self._almost += any(p not in self._named and folded(p) in self._folded for p in held)
        self._without_public += trace.user_acl is not None and not self._public.issubset(held)

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
        if self._without_public:
            names = ", ".join(sorted({folded(entry) for entry in self._public}))
            yield noted(
                "acl_everyone",
                Level.WARN,
                f"ACLs name {names}, {self._without_public} of {n} queries do not log it in user_acl, and [acl] "
                "everyone is not set: whom it admits is not known",
                "Write the principals that every user holds as [acl] everyone in ragaudit.toml.",
            )
