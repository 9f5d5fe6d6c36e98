"""Messaging: hints that there may be work or news. Delivers messages and stores nothing."""
