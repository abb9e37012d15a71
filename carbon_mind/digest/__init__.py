"""Facts to text: what enters the digest, in which order, and at what cost."""
