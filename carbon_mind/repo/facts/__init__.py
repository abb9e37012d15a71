"""What manifests, build files and tool settings say about a project; `project` has the table of who reads what."""
