"""Benchmarks that a user can run on any repository, without trusting ours: each measures what it prints, and keeps the raw numbers."""
