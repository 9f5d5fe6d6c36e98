"""Runs handed in as files: without a yard, without a token, through a folder or by SFTP. See `runyard.model.bundle`."""

from runyard.client.via.box import DropBox, open_box

__all__ = ["DropBox", "open_box"]
