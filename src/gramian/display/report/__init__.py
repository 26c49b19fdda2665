"""One page for one fit: ``report.html``, with linked plots, tables, the certificate in words, and nothing fetched."""

from gramian.display.report.blocks import CertificateBlock, DataTable, Facts, Figure, Report, Row, Section, Text
from gramian.display.report.cells import guarded
from gramian.display.report.cloud import Cloud, Ellipses, Panel
from gramian.display.report.facts import DataFacts, Run
from gramian.display.report.fits import fit_report
from gramian.display.report.genotypes import genotype_report
from gramian.display.report.mixture import mixture_report
from gramian.display.report.page import render, write_report
from gramian.display.report.pca import kernel_pca_report, pca_report
from gramian.display.report.points import Points
from gramian.display.report.regression import regression_report

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
    "guarded",
    "kernel_pca_report",
    "mixture_report",
    "pca_report",
    "regression_report",
    "render",
    "write_report",
]
