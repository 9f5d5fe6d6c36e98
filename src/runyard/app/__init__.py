"""Composition of processes: the yard as a daemon, one tick of it, an agent, and the parts of each."""
