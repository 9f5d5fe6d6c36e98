"""Agents and sites: the yard's side of the agent protocol, leases and permits, nodes."""
