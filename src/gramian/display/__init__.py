"""Pictures of fitted models. They read fitted attributes only and never fit anything."""

from gramian.display.fit_plots import plot_ridge_fit
from gramian.display.kernel_plots import before_and_after, component_field, denoising_gallery
from gramian.display.likelihood_plots import plot_fit
from gramian.display.mixture_plots import plot_binned_mixture, plot_mixture, plot_mixture_choice, plot_uncertainty
from gramian.display.plots import reconstruction_gallery, score_plot, scree
from gramian.display.progress import progress_bar
from gramian.display.ridge_plots import plot_ridge_path
from gramian.display.style import save_picture

__all__ = [
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
