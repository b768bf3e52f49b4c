"""Figures of a report, independent of the medium: SVG, pages and terminals draw the same values."""
