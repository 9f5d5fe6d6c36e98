"""Where commands run and files move."""
