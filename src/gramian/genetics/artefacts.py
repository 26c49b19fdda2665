"""What else than ancestry a component may show: relatives, one person, sex, missing calls, one region of the genome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.genetics.genotypes import is_autosomal
from gramian.genetics.long_range import describe_regions
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.pruning import HAPLOID
from gramian.genetics.relatives import CUTOFF, Kinship, RelativeScreen, least_kinship, screen_relatives
from gramian.genetics.text import list_few
from gramian.inputs.progress import Progress
from gramian.sources.plink import Genotypes

Array = npt.NDArray[np.float64]

MOST_CUTOFF = 0.354  # copies of one person are told by however few SNPs
MAJORITY = 0.5  # of a component's squared entries
LEAST_PEOPLE = 20  # with fewer, chance gives one of them half of a component
INCOMPLETE = 0.2  # share of missing calls from which a person is visibly drawn to the centre
FOLLOWS = 0.5  # squared correlation with sex, or with missing calls, that chance does not make
BATCH = 5  # people who lack the same SNPs
SAME = 0.8  # of them lack a SNP that is the batch's


class ArtefactKind(StrEnum):
    """What a component, or the place of a person, may show in place of ancestry."""

    RELATIVES = "relatives"
    ONE_PERSON = "one person"
    FEW_CALLS = "few calls"
    MISSING_CALLS = "missing calls"
    SEX_CHROMOSOMES = "sex chromosomes"
    SEX = "sex"
    REGION = "region"


@dataclass(frozen=True)
class Artefact:
    """One thing found.

    Attributes
    ----------
    kind : ArtefactKind
        What it is.
    text : str
        A sentence that names it, and the remedy.
    components : tuple of int
        The components it shows in, from 1; none where it is of people or SNPs.
    people : tuple of str
        Those whom it is about.
    """

    kind: ArtefactKind
    text: str
    components: tuple[int, ...] = ()
    people: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Artefacts:
    """All that was found.

    Attributes
    ----------
    found : tuple of Artefact
        The gravest kinds first.
    relatives : RelativeScreen
        Pairs, and how many people and SNPs were compared.
    """

    found: tuple[Artefact, ...]
    relatives: RelativeScreen

    def table(self) -> dict[str, Any]:
        """Return kind, components, people and text, ready for ``pandas.DataFrame``."""
        return {
            "kind": [str(each.kind) for each in self.found],
            "components": [",".join(map(str, each.components)) for each in self.found],
            "people": [len(each.people) for each in self.found],
            "text": [each.text for each in self.found],
        }


def find_artefacts(model: GenotypePCA, source: Genotypes, *, progress: Progress | None = None) -> Artefacts:
    """Look for what makes components besides ancestry, in a few seconds.

    - relatives, by :func:`~gramian.genetics.relatives.screen_relatives`, those who lead a component before others, and
      the components of which relatives hold more than half; with a kinship above 0.0884, or, where few independent SNPs
      tell, above what chance makes of strangers; pairs who share few calls by what chance makes of so many;
    - a component of which one person holds more than half;
    - people with more than a fifth of their calls missing, whom a fit by means draws to the centre by as much, and
      whether they lack the same SNPs; a component that follows the share of missing calls;
    - SNPs of which men have one copy (X, Y, MT), and a component that follows sex;
    - a region that carries a component (:func:`~gramian.genetics.carrying_regions`).

    Parameters
    ----------
    model : GenotypePCA
        Fitted.
    source : Genotypes
        The genotypes of the fit.
    progress : callable, optional
        Told of the screen for relatives.

    Returns
    -------
    Artefacts
        What was found; nothing found proves nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, find_artefacts
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.binomial(2, rng.uniform(0.2, 0.8, (3000, 1)), (3000, 60))
    >>> calls[:, 40:50] = calls[:, [3]]
    >>> G = Genotypes.from_calls(calls)
    >>> found = find_artefacts(GenotypePCA(2).fit(G), G)
    >>> [str(each.kind) for each in found.found], found.found[0].components
    (['relatives'], (1,))
    """
    if source.shape != (model.n_samples_, model.n_features_in_):
        raise ValueError(
            f"The model was fitted to {model.n_samples_} samples × {model.n_features_in_} SNPs; source has "
            f"{source.shape[0]} × {source.shape[1]}."
        )
    U = to_numpy(model.eigenvectors_).astype(np.float64)
    squares = U**2 / np.maximum((U**2).sum(axis=0), np.finfo(np.float64).tiny)
    used, names = source.select(snps=model.snp_mask_), source.samples.names
    # relatives are told by autosomes alone, which may be few of the SNPs of the fit
    autosomal = max(1, int(is_autosomal(model.snps_).sum()))
    chance = least_kinship(model, source.shape[0]) * (len(model.snps_) / autosomal) ** 0.5
    cutoff = min(max(CUTOFF, chance), MOST_CUTOFF)
    screen = screen_relatives(source, cutoff, first=np.argsort(-squares.max(axis=1), kind="stable"), progress=progress)
    screen = replace(screen, pairs=_leave_out_chance(screen.pairs, min(chance, MOST_CUTOFF)))
    found = [
        *_describe_relatives(screen, squares, names),
        *_describe_holders(squares, names),
        *_describe_missing(model, used, U, names),
        *_describe_sex(model, used, U),
    ]
    if regions := model.carrying_regions_:
        of = tuple(region.component + 1 for region in regions)
        found.append(Artefact(ArtefactKind.REGION, describe_regions(regions), of))
    return Artefacts(tuple(found), screen)


def _leave_out_chance(pairs: Kinship, chance: float) -> Kinship:
    """Without pairs who share so few calls that chance makes strangers as close: errors are as 1/√(shared calls)."""
    shared = np.maximum(pairs.n_snps, 1)
    certain = (shared >= pairs.snps / 2) | (pairs.kinship > chance * np.sqrt(pairs.snps / shared))
    if certain.all():
        return pairs
    columns = ("first", "second", "n_snps", "hethet", "ibs0", "first_het", "second_het")
    return replace(pairs, **{name: getattr(pairs, name)[certain] for name in columns})


def _describe_relatives(screen: RelativeScreen, squares: Array, names: Sequence[str]) -> list[Artefact]:
    pairs = screen.pairs
    if not len(pairs.first):
        return []
    people = np.union1d(pairs.first, pairs.second)
    held, share = squares[people].sum(axis=0), len(people) / len(names)
    of = [j + 1 for j in np.flatnonzero((held > MAJORITY) & (held > 2 * share)).tolist()]
    closest = np.argsort(-pairs.kinship, kind="stable")[:3]
    examples = "; ".join(
        f"{names[pairs.second[i]]} and {names[pairs.first[i]]} {pairs.kinship[i]:.3f}" for i in closest.tolist()
    )
    degrees = pairs.degrees()
    counts = ", ".join(
        f"{count:,} {'copies of one person' if name == 'duplicate' else f'of the {name} degree'}"
        for name, count in degrees.items()
        if count
    )
    n = len(pairs.first)
    text = (
        f"{len(people):,} of {len(names):,} people are related: {n:,} pair{'s' * (n != 1)} with a kinship above "
        f"{pairs.least:.3g} ({counts}; {examples})"
    )
    if of:
        low, high = (f"{value:.0%}" for value in (min(held[j - 1] for j in of), max(held[j - 1] for j in of)))
        text += f". They hold {low if low == high else f'{low} to {high}'} of {list_components(of)}"
    if screen.compared < len(names):
        text += f". The {screen.compared:,} people who lead components were compared, all others for copies only"
    text += (
        ". A family makes components of its own: leave relatives out of the fit and project them "
        "(gramian pca --king-cutoff 0.0884, or pc_air)."
    )
    return [Artefact(ArtefactKind.RELATIVES, text, tuple(of), tuple(names[i] for i in people))]


def list_components(numbers: Sequence[int]) -> str:
    """PC2, PC5–PC8: runs of three and more by their ends.

    Examples
    --------
    >>> from gramian.genetics.artefacts import list_components
    >>> list_components([2, 5, 6, 7, 8])
    'PC2, PC5–PC8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"PC{run[0]}–PC{run[-1]}" if len(run) > 2 else ", ".join(f"PC{number}" for number in run) for run in runs]
    return ", ".join(parts)


def _describe_holders(squares: Array, names: Sequence[str]) -> list[Artefact]:
    who, held = squares.argmax(axis=0), squares.max(axis=0)
    found = np.flatnonzero(held > MAJORITY) if len(names) >= LEAST_PEOPLE else np.zeros(0, np.intp)
    if not len(found):
        return []
    said = "; ".join(f"{names[who[j]]} holds {held[j]:.0%} of PC{j + 1}" for j in found.tolist())
    text = (
        f"{said}. A component of one person shows what sets that person apart, a wrong sample as a rule: look at it, "
        "and leave it out (--remove, or --outliers)."
    )
    people = tuple(dict.fromkeys(names[who[j]] for j in found.tolist()))
    return [Artefact(ArtefactKind.ONE_PERSON, text, tuple((found + 1).tolist()), people)]


def _correlation(x: Array, U: Array) -> Array:
    """Of a column with each component; 0 where one does not vary."""
    x, V = x - x.mean(), U - U.mean(axis=0)
    size = np.linalg.norm(x) * np.linalg.norm(V, axis=0)
    return np.asarray(np.divide(x @ V, size, out=np.zeros(V.shape[1]), where=size > 0))


def _describe_missing(model: GenotypePCA, used: Genotypes, U: Array, names: Sequence[str]) -> list[Artefact]:
    missing = used.counts().by_sample[:, 3] / used.shape[1]
    found: list[Artefact] = []
    few = np.flatnonzero(missing > INCOMPLETE)
    if len(few):
        worst = few[np.argsort(-missing[few], kind="stable")]
        said = list_few([f"{names[i]} {missing[i]:.1%}" for i in worst.tolist()])
        text = f"{len(few):,} of {len(names):,} people lack more than {INCOMPLETE:.0%} of their calls ({said})"
        if len(few) >= BATCH:
            lacking = used.select(samples=few).counts().by_snp[:, 3]
            same = lacking >= SAME * len(few)
            if lacking[same].sum() > MAJORITY * lacking.sum():
                text += f", most of them at the same {same.sum():,} SNPs, as of one batch"
        if model.missing == "mean":
            text += (
                ". A fit that takes the mean for a missing call draws them to the centre by as much: leave them out "
                "(--mind 0.1), or leave out the SNPs (--geno 0.05), or use --missing least-squares."
            )
        else:
            text += ". Their places are uncertain: leave them out (--mind 0.1), or leave out the SNPs (--geno 0.05)."
        found.append(Artefact(ArtefactKind.FEW_CALLS, text, (), tuple(names[i] for i in worst)))
    r = _correlation(missing, U)
    follow = np.flatnonzero(r**2 > FOLLOWS) if len(names) >= LEAST_PEOPLE else np.zeros(0, np.intp)
    if len(follow):
        said = ", ".join(f"PC{j + 1} (r = {abs(r[j]):.2f})" for j in follow.tolist())
        text = f"The share of missing calls is followed by {said}: quality or a batch, not ancestry (--mind, --geno)."
        found.append(Artefact(ArtefactKind.MISSING_CALLS, text, tuple((follow + 1).tolist())))
    return found


def _describe_sex(model: GenotypePCA, used: Genotypes, U: Array) -> list[Artefact]:
    found: list[Artefact] = []
    haploid = {name: int(np.sum(used.snps.chromosome == name)) for name in sorted(HAPLOID)}
    haploid = {name: count for name, count in haploid.items() if count}
    if haploid:
        said = ", ".join(f"{count:,} on {name}" for name, count in haploid.items())
        text = (
            f"SNPs are in the fit of which men have one copy ({said}): components then show sex. Use the autosomes "
            "(--chr 1-22, the default)."
        )
        found.append(Artefact(ArtefactKind.SEX_CHROMOSOMES, text))
    sex = used.samples.sex.astype(np.float64)
    known = sex > 0
    if known.sum() < LEAST_PEOPLE or np.ptp(sex[known]) == 0:
        return found
    r = _correlation(sex[known], U[known])
    follow = np.flatnonzero(r**2 > FOLLOWS)
    if len(follow):
        said = ", ".join(f"PC{j + 1} (r = {abs(r[j]):.2f})" for j in follow.tolist())
        text = f"Sex is followed by {said}, as the .fam file tells it: not ancestry."
        found.append(Artefact(ArtefactKind.SEX, text, tuple((follow + 1).tolist())))
    return found
