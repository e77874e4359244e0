"""Turns evidence into a verdict: preflight over the run, causes per gold id, the procedure, patterns."""
