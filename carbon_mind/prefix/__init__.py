"""Text to exact tokens: the chat template, the layers of the system message, and the boundary before the question."""
