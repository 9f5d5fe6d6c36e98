"""Checkpoints: which are kept, which attempt continues from which, and the deletion of expired ones."""
