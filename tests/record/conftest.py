"""Haystack asks nobody's permission to report: off before it is imported."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
