"""Plots as inline SVG: pure functions from records to `Html`. Widths are shares, so that text keeps its size."""
