"""Pictures of fitted models. They read fitted attributes only and never fit anything."""

from gramian.display.base import Display, save_picture
from gramian.display.functions import (
    before_and_after,
    component_field,
    denoising_gallery,
    plot_binned_mixture,
    plot_mixture,
    plot_mixture_choice,
    plot_ridge_fit,
    plot_ridge_path,
    plot_uncertainty,
    reconstruction_gallery,
    score_plot,
    scree,
)
from gramian.display.genetics import MapDisplay
from gramian.display.kernel_pca import EmbeddingDisplay, KernelFieldDisplay
from gramian.display.likelihood import ProfileDisplay, plot_fit
from gramian.display.mixture import BinnedMixtureDisplay, MixtureChoiceDisplay, MixtureDisplay
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
from gramian.display.ridge import LeaveOneOutDisplay, PredictionBandDisplay, ResidualsDisplay, RidgePathDisplay

__all__ = [
    "BinnedMixtureDisplay",
    "BiplotDisplay",
    "ContributionsDisplay",
    "CorrelationCircleDisplay",
    "Display",
    "EmbeddingDisplay",
    "KernelFieldDisplay",
    "LeaveOneOutDisplay",
    "LoadingsDisplay",
    "MapDisplay",
    "MixtureChoiceDisplay",
    "MixtureDisplay",
    "MonitoringDisplay",
    "PredictionBandDisplay",
    "ProfileDisplay",
    "ReconstructionDisplay",
    "ResidualsDisplay",
    "RidgePathDisplay",
    "ScoreDisplay",
    "ScreeDisplay",
    "before_and_after",
    "component_field",
    "denoising_gallery",
    "plot_binned_mixture",
    "plot_fit",
    "plot_mixture",
    "plot_mixture_choice",
    "plot_ridge_fit",
    "plot_ridge_path",
    "plot_uncertainty",
    "progress_bar",
    "reconstruction_gallery",
    "save_picture",
    "score_plot",
    "scree",
]
