"""Make the data of a workload, block by block into the cache, and load them again."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench import spectra
from bench.workloads import Workload

CACHE = Path(__file__).parent / ".cache"
BLOCK_BYTES = 64_000_000
SPARSE_PARTS = ("data", "indices", "indptr")


def data_files(workload: Workload, cache: Path = CACHE) -> tuple[Path, ...]:
    """Return the files that hold the data: one ``.npy``, or three for a sparse matrix."""
    if workload.kind == "sparse":
        return tuple(cache / f"{workload.key}.{part}.npy" for part in SPARSE_PARTS)
    return (cache / f"{workload.key}.npy",)


def ensure_data(workload: Workload, cache: Path = CACHE) -> None:
    """Write the data of ``workload`` unless they are there already."""
    files = data_files(workload, cache)
    if all(file.exists() for file in files):
        return
    cache.mkdir(parents=True, exist_ok=True)
    if workload.kind == "sparse":
        matrix = _topics(workload) if workload.spectrum == "topics" else _random(workload)
        for file, part in zip(files, SPARSE_PARTS, strict=True):
            array = getattr(matrix, part)
            _write(file, array.shape, array.dtype, (array,))
    else:
        shape = (workload.rows, workload.cols)
        _write(files[0], shape, np.dtype(workload.dtype), _dense_blocks(workload))


def load(workload: Workload, cache: Path = CACHE) -> Any:
    """Return the data: in memory, or mapped read-only for a ``map`` workload."""
    files = data_files(workload, cache)
    if workload.kind == "map":
        return np.load(files[0], mmap_mode="r")
    if workload.kind == "dense":
        return np.load(files[0])
    parts = tuple(np.load(file) for file in files)
    return sp.csr_array(parts, shape=(workload.rows, workload.cols))


def block_rows(workload: Workload) -> int:
    """Return the number of rows in a block of about 64 MB of float64."""
    return max(1, BLOCK_BYTES // (8 * workload.cols))


def _write(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any], body: Iterable[NDArray[Any]]) -> None:
    """Write an ``.npy`` file from the blocks of its body, under a temporary name until it is whole."""
    partial = file.with_suffix(".partial")
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with partial.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        for block in body:
            block.tofile(out)
    partial.replace(file)


def _dense_blocks(workload: Workload) -> Iterator[NDArray[Any]]:
    """Yield rows of U·diag(σ)·Wᵀ + noise + mean: W orthonormal, U orthonormal or, for a map, near enough.

    U of a map is Gaussian over √n, drawn as its rows are: orthonormal to √(r/n), below a percent.
    """
    rng, n, p = np.random.default_rng(workload.seed), workload.rows, workload.cols
    dtype = np.float32 if workload.dtype == "float32" else np.float64
    values = spectra.signal(n, p, workload.latent, workload.spectrum)
    right = np.linalg.qr(rng.standard_normal((p, values.size)))[0].T
    loadings = (values[:, None] * right).astype(dtype)
    mean = (3.0 + 5.0 * rng.standard_normal(p)).astype(dtype)
    whole = np.linalg.qr(rng.standard_normal((n, values.size)))[0] if workload.kind == "dense" else None
    step = block_rows(workload)
    for start in range(0, n, step):
        count = min(step, n - start)
        if whole is None:
            left = rng.standard_normal((count, values.size), dtype=dtype) / dtype(np.sqrt(n))
        else:
            left = whole[start : start + count]
        block = left @ loadings
        block += rng.standard_normal((count, p), dtype=dtype)
        block += mean
        yield block


def _topics(workload: Workload) -> Any:
    """Return word counts of documents that each have one of sixty topics of clearly unequal sizes.

    Half of a document's words come from the p/100 words of its topic, half from a background in which
    word w has probability ∝ (w + 50)^−0.5. A tenth more words are drawn than the density asks, since repeats
    add up.
    """
    rng, n, p = np.random.default_rng(workload.seed), workload.rows, workload.cols
    own = max(1, round(0.55 * workload.density * p))
    size = min(p, max(5, p // 100))
    vocabulary = np.stack([rng.choice(p, size, replace=False) for _ in range(spectra.TOPICS)]).astype(np.int32)
    bounds = np.round(np.cumsum(spectra.topic_shares()) * n)
    topic = rng.permutation(np.searchsorted(bounds, np.arange(n), side="right").clip(max=spectra.TOPICS - 1))
    words = np.empty((n, 2 * own), dtype=np.int32)
    words[:, :own] = vocabulary[topic[:, None], rng.integers(size, size=(n, own), dtype=np.int32)]
    background = np.cumsum((np.arange(p) + 50.0) ** -0.5)
    words[:, own:] = np.searchsorted(background, rng.random((n, own)) * background[-1])
    indptr = np.arange(0, words.size + 1, 2 * own, dtype=np.int32)
    matrix = sp.csr_array((np.ones(words.size), words.ravel(), indptr), shape=(n, p))
    matrix.sum_duplicates()
    return matrix


def _random(workload: Workload) -> Any:
    """Return a matrix whose entries are uniform at uniformly random places: the flattest of spectra."""
    rng, shape = np.random.default_rng(workload.seed), (workload.rows, workload.cols)
    found: Any = sp.random_array(shape, density=workload.density, format="csr", rng=rng)
    return sp.csr_array(found)
