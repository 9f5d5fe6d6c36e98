"""What the yard sends to others: replies, events, links to files, and the mirror of results."""
