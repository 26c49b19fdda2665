"""Pictures of fitted models. They read fitted attributes only and never fit anything."""

from gramian.display._base import Display
from gramian.display.bands import PredictionBandDisplay
from gramian.display.biplots import BiplotDisplay, CorrelationCircleDisplay
from gramian.display.choices import LeaveOneOutDisplay
from gramian.display.fields import KernelFieldDisplay
from gramian.display.fit_plots import plot_ridge_fit
from gramian.display.galleries import ReconstructionDisplay
from gramian.display.kernel_plots import before_and_after, component_field, denoising_gallery
from gramian.display.likelihood_plots import plot_fit
from gramian.display.loadings import ContributionsDisplay, LoadingsDisplay
from gramian.display.maps import MapDisplay
from gramian.display.mixture_choices import MixtureChoiceDisplay
from gramian.display.mixture_plots import plot_binned_mixture, plot_mixture, plot_mixture_choice, plot_uncertainty
from gramian.display.mixtures import BinnedMixtureDisplay, MixtureDisplay
from gramian.display.monitoring import MonitoringDisplay
from gramian.display.paths import RidgePathDisplay
from gramian.display.plots import reconstruction_gallery, score_plot, scree
from gramian.display.profiles import ProfileDisplay
from gramian.display.progress import progress_bar
from gramian.display.residuals import ResidualsDisplay
from gramian.display.ridge_plots import plot_ridge_path
from gramian.display.scores import ScoreDisplay
from gramian.display.spectra import ScreeDisplay
from gramian.display.style import save_picture

__all__ = [
    "BinnedMixtureDisplay",
    "BiplotDisplay",
    "ContributionsDisplay",
    "CorrelationCircleDisplay",
    "Display",
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
