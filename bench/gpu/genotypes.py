"""Genotype PCA of a simulated biobank whose packed genotypes are made on the GPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bench.gpu.fits import clocked
from bench.gpu.timing import Ceilings, Row, duration, share
from gramian import GenotypePCA
from gramian.genetics import king
from gramian.sources.plink import Genotypes

PEOPLE, SNPS, COMPONENTS, POPULATIONS, FST, MISSING = 488_000, 147_000, 20, 24, 0.01, 0.005


def simulated(people: int = PEOPLE, snps: int = SNPS) -> Any:
    """Packed genotypes of populations that drifted apart (Balding and Nichols, 1995), some of them missing."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    width = -(-people // 4)
    packed = torch.empty(snps, width, dtype=torch.uint8, device="cuda")
    group = torch.sort(torch.randint(POPULATIONS, (people,), device="cuda"))[0]
    step = 512
    for start in range(0, snps, step):
        stop = min(start + step, snps)
        ancestral = rng.uniform(0.05, 0.5, (stop - start, 1))
        spread = (1 - FST) / FST
        own = rng.beta(ancestral * spread, (1 - ancestral) * spread, (stop - start, POPULATIONS))
        f = torch.as_tensor(own, device="cuda", dtype=torch.float32)[:, group]
        copies = (torch.rand_like(f) < f).to(torch.uint8) + (torch.rand_like(f) < f).to(torch.uint8)
        code = torch.where(copies == 2, 0, torch.where(copies == 1, 2, 3)).to(torch.uint8)
        code[torch.rand_like(f) < MISSING] = 1
        code = torch.nn.functional.pad(code, (0, 4 * width - people)).view(stop - start, width, 4)
        packed[start:stop] = code[..., 0] | code[..., 1] << 2 | code[..., 2] << 4 | code[..., 3] << 6
    return packed


def rows(ceilings: Ceilings) -> Iterator[Row]:
    """Twenty components, certified to 1e-4, from packed bytes on the GPU to results on the host."""
    packed = simulated()
    model = GenotypePCA(COMPONENTS, solver="krylov", tol=1e-4)
    first, _ = clocked(lambda: model.fit(Genotypes.from_packed(packed, PEOPLE)))
    seconds, model = clocked(lambda: model.fit(Genotypes.from_packed(packed, PEOPLE)))
    c = model.certificate_
    limit = share(c.passes * packed.nbytes / ceilings.bandwidth, seconds)
    quality = (
        f"{model.n_separated_} components stand out, their residuals at most "
        f"{c.residuals[: model.n_separated_].max():.1e}, converged {c.converged}, {c.passes} passes; "
        f"{duration(first)} the first time, when kernels are compiled"
    )
    yield Row(f"GenotypePCA of {PEOPLE:,} × {SNPS:,}, {COMPONENTS} components", seconds, quality, limit)


RELATED, MARKERS, TWINS = 50_000, 100_000, 40


def kinship(ceilings: Ceilings) -> Iterator[Row]:
    """KING-robust kinship of all pairs: what of them is second degree or closer, and every count of some of them."""
    packed = simulated(RELATED, MARKERS)
    packed[:, :TWINS] = packed[:, TWINS : 2 * TWINS]  # bytes of four people each
    whole = Genotypes.from_packed(packed, RELATED)
    king(whole, least=0.0884)
    seconds, found = clocked(lambda: king(whole, least=0.0884))
    pairs = RELATED * RELATED / 2
    limit = share(2 * pairs * MARKERS / ceilings.whole, seconds)
    quality = f"{len(found.first)} pairs, {4 * TWINS} of them twins: {int((found.kinship > 0.4).sum())} found"
    yield Row(f"king of {RELATED:,} people × {MARKERS:,} SNPs, kinship ≥ 0.0884", seconds, quality, limit)
    people = 16_000
    some = whole.select(samples=np.arange(people))
    king(some)
    seconds, found = clocked(lambda: king(some))
    limit = share(2 * 5 * people * people / 2 * MARKERS / ceilings.whole, seconds)
    yield Row(f"king of {people:,} people, all counts of every pair", seconds, f"{len(found.first):,} pairs", limit)
