"""From a spec to an end: submitting, waiting for other runs, cancelling and retrying, settling what agents report."""
