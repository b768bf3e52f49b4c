"""Figures as SVG, for pages, papers and READMEs."""
