"""One recorded run: its plan, its folder, its manifest, and the recording itself."""
