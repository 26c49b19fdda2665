"""Why something cannot be saved, and what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramian.kernels import Callable as FunctionKernel
from gramian.likelihood.families import Custom
from gramian.persistence._registry import ESTIMATORS

__all__ = ["refuse_model", "unstorable"]

EXECUTE = "a model file holds nothing that can execute"


def refuse_model(model: Any) -> None:
    """Refuse what is none of our estimators, and what is not fitted."""
    kind = type(model).__name__
    if type(model) not in ESTIMATORS.values():
        raise ValueError(f"{kind} cannot be saved: {_why_not(model)}")
    check_is_fitted(model, msg=f"This {kind} is not fitted: a model file holds a fitted model. Call fit first.")


def _why_not(model: Any) -> str:
    known = f"Gramian saves {', '.join(sorted(ESTIMATORS))}"
    parents = [cls.__name__ for cls in ESTIMATORS.values() if isinstance(model, cls)]
    if parents:
        return f"it is a class derived from {parents[0]}, whose code would not be in the file. Save a {parents[0]}."
    if hasattr(model, "steps") or hasattr(model, "transformers") or hasattr(model, "best_estimator_"):
        return f"save its parts, each in a file of its own (model[-1], best_estimator_, …). {known}."
    if isinstance(model, BaseEstimator):
        return f"it is no estimator of Gramian. {known}; see skops or ONNX for others."
    return f"it is no estimator. {known}."


def unstorable(value: Any, where: str) -> ValueError:
    """The error for a value that a file cannot hold."""
    kind = type(value).__name__
    if isinstance(value, FunctionKernel):
        return unstorable(value.function, where)
    if isinstance(value, Custom):
        return ValueError(f"{where} is a family given by Python functions: {EXECUTE}. Use a family that has a name.")
    if isinstance(value, (np.random.RandomState, np.random.Generator, np.random.BitGenerator)):
        return ValueError(
            f"{where} is a {kind}, whose state is no seed. Give a whole number before saving, which predictions do "
            "not depend on: model.set_params(random_state=0)."
        )
    if (type(value).__module__, kind) == ("torch", "device"):
        return ValueError(
            f"{where} is {value!r}: a model file holds the names of devices. Give one before saving: "
            f"model.set_params(device={str(value)!r}), or device=None to open the model anywhere."
        )
    if callable(value) and not isinstance(value, type):
        return ValueError(f"{where} is a Python function ({_name(value)}): {EXECUTE}. {_instead(where)}")
    if isinstance(value, np.ndarray):
        return ValueError(f"{where} is {_array(value)}: a model file holds numbers, truth values, times and texts.")
    return ValueError(
        f"{where} is a {kind} of {type(value).__module__}, which a model file cannot hold: it holds numbers, texts, "
        "arrays, scipy.sparse matrices in CSR or CSC, kernels, families and what our fits consist of."
    )


def _instead(where: str) -> str:
    name = where.partition(".")[2].partition(".")[0]
    if name in ("kernel", "kernel_", "kernels_", "_model"):
        return (
            "Use a kernel of gramian.kernels (sums, products and multiples of them are kernels too), or "
            "kernel='precomputed' with matrices that the function makes."
        )
    if name.startswith("_") or name.endswith("_"):
        return f"Remove it before saving: del model.{name}."
    return f"Set it to something else before saving: model.set_params({name}=…), which predictions do not depend on."


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def _array(a: Any) -> str:
    if type(a) not in (np.ndarray, np.memmap):
        return f"a {type(a).__name__}"
    return "an array of Python objects that are not all texts" if a.dtype == object else f"an array of dtype {a.dtype}"
