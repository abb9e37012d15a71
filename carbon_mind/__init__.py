"""carbon-mind: an agent's knowledge of a repository, distilled once and restored in milliseconds."""

__version__ = "0.1.0"
