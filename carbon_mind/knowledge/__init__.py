"""Words about a repository that are fetched on demand: one note per directory, symbols, search, and a small model's claims."""
