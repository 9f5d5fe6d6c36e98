"""Other people's contracts: what their users write, turned into runs."""
