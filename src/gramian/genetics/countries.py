"""Thirty countries of Europe, and a study of their people that is simulated: genes that mirror geography."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.genetics.simulation import Simulation
from gramian.sources.plink import Genotypes

Vector = npt.NDArray[np.float64]

FST = 0.004  # between countries of Europe, about
LENGTH = 20.0  # degrees over which frequencies are alike: a few gradients across the continent
SPREAD = 1.2  # degrees, standard deviation of where people live around the centre of their country
HOMES = 3  # the generator that draws where people live, of those made from a seed


class Country(NamedTuple):
    """A country, where it lies, and how many of its people are in the study."""

    code: str
    name: str
    latitude: float
    longitude: float
    people: int


# Degrees are those of the middle of the country, or of the capital where most people live far from the middle (Finland,
# Norway, Russia, Sweden). Numbers of people are ours, after the study of J. Novembre et al. (Genes mirror geography
# within Europe, Nature 456, 98, 2008): most from Italy, Britain, Switzerland and Iberia, few from the north and east;
# but no country is left with so few that it cannot be seen.
EUROPE = (
    Country("AL", "Albania", 41.1, 20.1, 12),
    Country("AT", "Austria", 47.6, 14.1, 20),
    Country("BA", "Bosnia and Herzegovina", 44.2, 17.8, 14),
    Country("BE", "Belgium", 50.6, 4.7, 45),
    Country("BG", "Bulgaria", 42.8, 25.2, 14),
    Country("CH", "Switzerland", 46.8, 8.2, 165),
    Country("CZ", "Czechia", 49.7, 15.3, 18),
    Country("DE", "Germany", 51.1, 10.4, 75),
    Country("DK", "Denmark", 56.0, 9.5, 14),
    Country("ES", "Spain", 40.2, -3.6, 125),
    Country("FI", "Finland", 60.2, 24.9, 14),
    Country("FR", "France", 46.6, 2.5, 85),
    Country("GB", "United Kingdom", 53.5, -2.0, 180),
    Country("GR", "Greece", 39.1, 22.9, 18),
    Country("HR", "Croatia", 45.1, 16.4, 16),
    Country("HU", "Hungary", 47.2, 19.4, 25),
    Country("IE", "Ireland", 53.2, -8.1, 60),
    Country("IT", "Italy", 42.8, 12.1, 190),
    Country("NL", "Netherlands", 52.2, 5.6, 25),
    Country("NO", "Norway", 59.9, 10.8, 14),
    Country("PL", "Poland", 52.1, 19.4, 30),
    Country("PT", "Portugal", 39.6, -8.5, 115),
    Country("RO", "Romania", 45.9, 24.9, 20),
    Country("RS", "Serbia", 44.2, 20.8, 20),
    Country("RU", "Russia", 55.8, 37.6, 14),
    Country("SE", "Sweden", 59.3, 18.1, 20),
    Country("SI", "Slovenia", 46.1, 14.8, 12),
    Country("SK", "Slovakia", 48.7, 19.5, 12),
    Country("TR", "Turkey", 39.9, 32.9, 14),
    Country("UA", "Ukraine", 49.0, 31.4, 14),
)


def map_plane(latitude: npt.ArrayLike, longitude: npt.ArrayLike) -> npt.NDArray[np.float64]:
    r"""Places in a plane where a degree is as long in both directions: :math:`(\lambda\cos\bar\varphi, \varphi)`.

    Examples
    --------
    >>> from gramian.genetics.countries import map_plane
    >>> map_plane([59.0, 61.0], [10.0, 20.0]).round(3).tolist()
    [[5.0, 59.0], [10.0, 61.0]]
    """
    phi, lam = np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64)
    return np.stack([lam * math.cos(math.radians(float(phi.mean()))), phi], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Simulated genotypes of people whose country and home are known.

    Attributes
    ----------
    genotypes : Genotypes
        The files, opened.
    country : ndarray of str
        Two letters for each person, the ``code`` of a :class:`Country`.
    latitude, longitude : ndarray of shape (n,)
        Where the person lives, in degrees.
    """

    genotypes: Genotypes
    country: npt.NDArray[np.str_]
    latitude: Vector
    longitude: Vector

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Homes in the plane of :func:`map_plane`: east, north."""
        return map_plane(self.latitude, self.longitude)

    def table(self) -> dict[str, Any]:
        """Return the columns of the ``.tsv`` file, ready for ``pandas.DataFrame``."""
        samples = self.genotypes.samples
        return _table(samples.fid, samples.iid, self.country, self.latitude, self.longitude)

    def __repr__(self) -> str:
        n, p = self.genotypes.shape
        return f"Study (simulated): {n} people of {len(set(self.country))} countries, {p} SNPs"


def simulate_europe(
    path: str | os.PathLike[str],
    n_snps: int = 20_000,
    seed: int = 0,
    *,
    people: int = 1400,
    fst: float = FST,
    overwrite: bool = False,
    **description: Any,
) -> Study:
    """Simulate a study of Europeans whose first two principal components draw the map of Europe.

    People live around the middle of thirty countries, in numbers like those of Novembre et al. (Nature 456, 98, 2008),
    and their allele frequencies vary smoothly over the map: *simulated*, but with the F_ST of Europe. Beside the
    ``.bed``, ``.bim`` and ``.fam`` files a ``.tsv`` table of the same name has the columns FID, IID, country, latitude,
    longitude.

    Parameters
    ----------
    path : path
        The ``.bed`` file.
    n_snps : int, default=20_000
        SNPs.
    seed : int, default=0
        The same seed gives the same study.
    people : int, default=1400
        People, at least 150, shared between the countries in the proportions of ``EUROPE``.
    fst : float, default=0.004
        Mean of Hudson's F_ST over the pairs of countries.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    **description
        As for :class:`gramian.genetics.simulation.Simulation`: missing, ld, length and more.

    Returns
    -------
    Study
        The genotypes, opened, and who lives where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.countries import simulate_europe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = simulate_europe(Path(folder, "europe.bed"), n_snps=500, people=300)
    ...     study, Path(folder, "europe.tsv").read_text().split()[:7]
    (Study (simulated): 300 people of 30 countries, 500 SNPs,
     ['FID', 'IID', 'country', 'latitude', 'longitude', 'AL1', 'AL1'])
    """
    if people < 150:
        raise ValueError(f"people={people} must be at least 150: every country needs somebody.")
    ends = np.cumsum([place.people for place in EUROPE])
    counts = np.diff(np.rint(people * ends / ends[-1]).astype(np.intp), prepend=0)
    country = np.repeat([place.code for place in EUROPE], counts)
    names = [f"{place.code}{i + 1}" for place, count in zip(EUROPE, counts, strict=True) for i in range(count)]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(HOMES,)))
    centre = np.repeat([(place.latitude, place.longitude) for place in EUROPE], counts, axis=0)
    shift = SPREAD * rng.standard_normal(centre.shape)
    shift[:, 1] /= np.cos(np.radians(centre[:, 0]))  # as far from the middle of the country in all directions
    latitude, longitude = np.round(centre + shift, 4).T
    described = {"length": LENGTH, **description}
    plane = map_plane(latitude, longitude)
    plan = Simulation(n_snps, positions=plane, groups=country, fst=fst, names=names, seed=seed, **described)
    table = _table(names, names, country, latitude, longitude)
    lines = ["\t".join(table), *("\t".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    genotypes = plan.write(path, overwrite=overwrite, beside={".tsv": "\n".join(lines) + "\n"})
    return Study(genotypes, country, latitude, longitude)


def _table(fid: Any, iid: Any, country: Any, latitude: Any, longitude: Any) -> dict[str, Any]:
    return {"FID": fid, "IID": iid, "country": country, "latitude": latitude, "longitude": longitude}
