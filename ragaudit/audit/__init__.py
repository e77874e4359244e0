"""Runs one audit from a bundle to an audit file."""
