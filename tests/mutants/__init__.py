"""Mutation testing: small mistakes in the source, each of which a test must catch (`make mutants`)."""
