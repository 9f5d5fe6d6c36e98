"""The checks of `runyard doctor`: each gives a verdict, a sentence and a fix."""
