"""Fitted models in one file that cannot execute anything: safetensors with JSON."""

from gramian.persistence.container import ModelFileError
from gramian.persistence.file import inspect, load, save
from gramian.persistence.summary import ModelFile

__all__ = ["ModelFile", "ModelFileError", "inspect", "load", "save"]
