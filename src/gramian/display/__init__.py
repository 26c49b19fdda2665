"""Pictures of fitted models. They read fitted attributes only and never fit anything."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.display.base import Display, save_picture
    from gramian.display.genetics import ManhattanDisplay, MapDisplay, QuantileDisplay
    from gramian.display.kernel_pca import EmbeddingDisplay, KernelFieldDisplay
    from gramian.display.likelihood import FitDisplay, ProfileDisplay
    from gramian.display.mixture import BinnedMixtureDisplay, MixtureChoiceDisplay, MixtureDisplay, UncertaintyDisplay
    from gramian.display.pca import (
        BiplotDisplay,
        ContributionsDisplay,
        CorrelationCircleDisplay,
        LoadingsDisplay,
        MonitoringDisplay,
        ReconstructionDisplay,
        ScoreDisplay,
        ScreeDisplay,
    )
    from gramian.display.progress import progress_bar
    from gramian.display.ridge import (
        FeatureSharesDisplay,
        LeaveOneOutDisplay,
        PredictionBandDisplay,
        ResidualsDisplay,
        RidgePathDisplay,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BinnedMixtureDisplay",
    "BiplotDisplay",
    "ContributionsDisplay",
    "CorrelationCircleDisplay",
    "Display",
    "EmbeddingDisplay",
    "FeatureSharesDisplay",
    "FitDisplay",
    "KernelFieldDisplay",
    "LeaveOneOutDisplay",
    "LoadingsDisplay",
    "ManhattanDisplay",
    "MapDisplay",
    "MixtureChoiceDisplay",
    "MixtureDisplay",
    "MonitoringDisplay",
    "PredictionBandDisplay",
    "ProfileDisplay",
    "QuantileDisplay",
    "ReconstructionDisplay",
    "ResidualsDisplay",
    "RidgePathDisplay",
    "ScoreDisplay",
    "ScreeDisplay",
    "UncertaintyDisplay",
    "progress_bar",
    "save_picture",
]
