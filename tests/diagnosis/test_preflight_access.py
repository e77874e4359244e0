"""What preflight says of ACLs that prove nothing as they stand."""

from typing import Any

from ragaudit.config import AclSettings
from ragaudit.diagnosis.preflight_access import AccessNotes
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.trace import Trace


def said(acl: AclSettings | None = None, users: tuple[Any, ...] = (("a",),), **acls: Any) -> dict[str, str]:
    """Finding -> its message, for one source and one chunk with these ACLs."""
    source, chunk = Source(source_id="s", acl=acls.get("source")), Chunk(chunk_id="c", acl=acls.get("chunk"))
    notes = AccessNotes(Inventory.of({"s": source}, {"c": chunk}, None), acl or AclSettings())
    for user in users:
        notes.watch(Trace(query_id="q", query_text="?", k_final=3, user_acl=user))
    return {finding.check: finding.message for finding in notes.findings(len(users))}


def test_acls_that_say_who_may_read_need_no_word() -> None:
    assert said(source=("a", "b"), chunk=("a",)) == {}
    assert said(source=None, chunk=()) == {}


def test_principals_that_differ_in_case_or_spaces_are_counted_by_query() -> None:
    users = (("A",), ("a",), (" a ", "b"), None, ("c",))
    assert said(source=("a",), users=users) == {
        "acl_spelling": "2 of 5 queries hold a principal that ACLs name in another case or spacing: such a pair proves "
        "neither access nor a leak"
    }


def test_entries_that_deny_are_not_evaluated() -> None:
    assert said(source=("a", "!user:bob"), chunk=("-x",)) == {
        "acl_denies": "2 ACLs hold entries that deny (!x, -x, deny:x): they are not evaluated"
    }


def test_a_public_entry_asks_for_the_setting_that_says_what_it_means() -> None:
    assert said(source=("Public",), chunk=("*",), users=(("a",), ("Public", "*"), None)) == {
        "acl_everyone": "ACLs name *, public, 1 of 3 queries do not log it in user_acl, and [acl] everyone is not set: "
        "whom it admits is not known"
    }
    assert said(source=("public",), users=(("public", "a"),)) == {}
    assert said(AclSettings(everyone=("public",)), source=("public",)) == {}
