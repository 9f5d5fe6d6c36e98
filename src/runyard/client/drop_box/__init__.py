"""Runs submitted as files: without a yard or a token, through a folder or by SFTP. See `runyard.model.bundle`."""

from runyard.client.drop_box.box import DropBox, open_box

__all__ = ["DropBox", "open_box"]
