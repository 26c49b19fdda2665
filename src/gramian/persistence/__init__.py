"""Fitted models in one file that cannot execute anything: safetensors with JSON."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.persistence.container import ModelFileError
    from gramian.persistence.file import inspect, load, save
    from gramian.persistence.summary import ModelFile
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ModelFile", "ModelFileError", "inspect", "load", "save"]
