"""Guards at the door: files without links, credentials out, hostile text made harmless."""
