"""Does a row meet the filter that was sent, by what the index stores of it."""

import pytest

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.filtering import meets_filter
from ragaudit.evidence.identity import Identities
from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace

ROW = Chunk(chunk_id="c", language="en", metadata={"tenant": "t1", "year": 2024}, acl=("staff",))


def access(query, row):
    held = Identities.of(Inventory.of(None, {"c": row}, None))
    return Access(query, held, AclSettings(), Pipeline())


def meets(sent, row=ROW, user=("staff",)):
    query = Trace(query_id="q", query_text="?", k_final=3, filters_applied=sent, user_acl=user)
    return meets_filter("c", access(query, row))


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({}, True),
        ({"tenant": "t1"}, True),
        ({"tenant": "t2"}, False),
        ({"tenant": "T1"}, False),
        ({"year": "2024"}, False),
        ({"year": {"gte": 2020}, "language": "en"}, True),
        ({"region": "eu"}, None),
        ({"region": "eu", "tenant": "t2"}, False),
        ({"acl": ["staff"]}, True),
        (None, None),
    ],
)
def test_a_row_is_kept_when_every_clause_holds_and_unknown_when_one_cannot_be_checked(sent, kept):
    assert meets(sent) is kept


def test_the_stored_acl_decides_where_an_access_clause_was_sent():
    closed = ROW.model_copy(update={"acl": ("board",)})
    assert meets({"acl": ["staff"]}, closed) is False
    assert meets({"acl": ["staff"]}, ROW.model_copy(update={"acl": None})) is None
    assert meets({"acl": True}, user=None) is None
    assert meets({"acl": ["staff"]}, user=None) is True
    assert meets({"acl": ["staff"]}, ROW.model_copy(update={"acl": ("ops",)}), user=("staff", "ops")) is False
    assert meets({"tenant": "t1"}, closed) is True


def test_a_row_that_the_chunk_table_does_not_hold_is_unknown():
    query = Trace(query_id="q", query_text="?", k_final=3, filters_applied={})
    assert meets_filter("other", access(query, ROW)) is None
