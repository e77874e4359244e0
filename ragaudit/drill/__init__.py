"""Breaks a healthy run on purpose and checks that the diagnosis names what was broken, and that the gates fire."""
