"""What is absent in an input stays absent, and what access or a filter says is read as it was logged, or not at all."""

import pytest

from ragaudit.importers.cells import ids_in, joined_texts, listing
from ragaudit.importers.predicates import clauses_of


@pytest.mark.parametrize("read", [listing, ids_in, joined_texts])
@pytest.mark.parametrize("cell", ["", "  ", None])
def test_an_empty_cell_is_absent_and_not_an_empty_list(read, cell):
    assert read(cell) is None


@pytest.mark.parametrize("read", [listing, ids_in, joined_texts])
def test_a_written_empty_list_is_one(read):
    assert read("[]") == []


def test_principals_written_as_json_are_several():
    assert ids_in('["g:a", "g:b"]') == ["g:a", "g:b"]


def test_two_bounds_of_one_side_are_not_made_one_of_them():
    both = [{"field": "y", "operator": ">=", "value": n} for n in (5, 1)]
    assert clauses_of({"operator": "AND", "conditions": both}) is None


def test_equality_with_a_list_is_not_any_of():
    assert clauses_of({"field": "y", "operator": "==", "value": ["a", "b"]}) is None
