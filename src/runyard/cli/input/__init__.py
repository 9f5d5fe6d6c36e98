"""What users type: options, `name=value` words, files, and selections of runs."""
