"""Scores of findings, places, comparisons and numbers of a report; tables of many scores; failures as files."""
