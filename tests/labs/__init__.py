"""Real things for the tests to talk to: a PostgreSQL server, a running yard, and what this machine has of the rest."""
