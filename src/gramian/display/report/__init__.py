"""One page for one fit: ``report.html``, with linked plots, tables, the certificate in words, and nothing fetched."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.display.report.blocks import (
        CertificateBlock,
        DataTable,
        Facts,
        Figure,
        Report,
        Row,
        Section,
        Text,
        guard_cell,
    )
    from gramian.display.report.cloud import Cloud, Ellipses, Panel, Points
    from gramian.display.report.facts import DataFacts, Run
    from gramian.display.report.genetics import genotype_report
    from gramian.display.report.likelihood import fit_report
    from gramian.display.report.mixture import mixture_report
    from gramian.display.report.page import render, write_report
    from gramian.display.report.pca import kernel_pca_report, pca_report
    from gramian.display.report.ridge import regression_report
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CertificateBlock",
    "Cloud",
    "DataFacts",
    "DataTable",
    "Ellipses",
    "Facts",
    "Figure",
    "Panel",
    "Points",
    "Report",
    "Row",
    "Run",
    "Section",
    "Text",
    "fit_report",
    "genotype_report",
    "guard_cell",
    "kernel_pca_report",
    "mixture_report",
    "pca_report",
    "regression_report",
    "render",
    "write_report",
]
