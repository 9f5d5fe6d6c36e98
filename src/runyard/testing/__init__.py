"""Contract suites and fakes, for the tests of runyard and of its plug-ins. They need pytest."""
