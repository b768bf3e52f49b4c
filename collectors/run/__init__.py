"""One recorded run: what is to record, its folder, its manifest, and the recording itself."""
