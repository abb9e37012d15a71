"""Snapshots on disk: the file format, the folder, and the explanation of every miss."""
