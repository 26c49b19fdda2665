"""What a file that cannot be loaded raises."""

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A file that is no model file, or is damaged, or was written by a newer version."""
