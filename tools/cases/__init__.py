"""Calls for tests/cases: see tools/make_cases.py."""
