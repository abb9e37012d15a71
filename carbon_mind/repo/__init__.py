"""Files to facts: what is in a repository, what it defines, and what the rest leans on."""
