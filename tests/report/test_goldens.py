"""The bytes are the contract. To change it: `python -m tests.report.goldens`, and read what changed."""

import pytest
from demo_audits import demo_audit, smaller_budget
from goldens import AGAINST, HERE, PLAIN, report


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    return demo_audit(tmp_path_factory.mktemp("demo")), smaller_budget(tmp_path_factory.mktemp("smaller"))


@pytest.mark.parametrize("name", [*PLAIN, *AGAINST])
def test_the_report_is_the_golden_one_byte_for_byte(audits, name):
    assert report(name, *audits).encode() == (HERE / name).read_bytes()
