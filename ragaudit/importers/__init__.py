"""Traces of other tools -> the files of a bundle. Parses files only: no tool is ever imported, nothing is unpickled."""
