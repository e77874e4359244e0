"""Spans of OpenTelemetry -> traces: decoding, what a span means in each dialect, which stage it is, the row."""
