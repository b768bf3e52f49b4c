"""Other trace tools on the captures of the proving ground, scored by its rules; see docs/other-tools.md."""
