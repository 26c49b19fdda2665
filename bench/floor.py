"""The floor under a workload: the bytes it must read and the flops it must do, at the machine's own speed.

Every stage costs at least max(bytes/bandwidth, flops/speed). No method that is known here does less:

* Gram route: one pass of n·p·size bytes and n·p·m flops for the symmetric product, m = min(n, p), then
  (4/3)m³ + 2m²k flops for the leading eigenvectors of an m×m matrix;
* Krylov route: ``passes`` times one read and 4·N·b flops, N the stored entries and b the block, the count of
  passes being the least found by ``bench.passes`` on the same spectrum.
"""

from dataclasses import dataclass

from bench.workloads import Route, Workload


@dataclass(frozen=True)
class Speed:
    """What the machine can do: bytes per second from memory, flops per second in the data's precision."""

    bandwidth: float
    flops: float

    def seconds(self, size: float, flops: float) -> float:
        """Return the least time for that many bytes and flops, perfectly overlapped."""
        return max(size / self.bandwidth, flops / self.flops)


@dataclass(frozen=True)
class Count:
    """Passes over the data, bytes and flops in all, and the seconds they cannot go below."""

    passes: int
    bytes: float
    flops: float
    seconds: float


def data_bytes(workload: Workload, nonzeros: int) -> float:
    """Return the bytes of one pass: entries, and for CSR their 4-byte columns and row starts."""
    entry = 4 if workload.dtype == "float32" else 8
    return nonzeros * (entry + 4) + 4 * workload.rows if workload.kind == "sparse" else nonzeros * entry


def count(workload: Workload, nonzeros: int, speed: Speed) -> Count:
    """Return the passes, bytes, flops and floor of ``workload`` by its route."""
    if workload.route == Route():
        return _gram(workload, data_bytes(workload, nonzeros), speed)
    return _krylov(workload.route, data_bytes(workload, nonzeros), nonzeros, speed)


def _gram(workload: Workload, size: float, speed: Speed) -> Count:
    """Count one pass for the Gram matrix of the small side and its eigendecomposition."""
    m = min(workload.rows, workload.cols)
    product = float(workload.rows) * workload.cols * m
    eigen = 4 / 3 * m**3 + 2.0 * m**2 * workload.rank
    return Count(1, size, product + eigen, speed.seconds(size, product) + speed.seconds(0, eigen))


def _krylov(route: Route, size: float, nonzeros: int, speed: Speed) -> Count:
    """Count the passes of a block Krylov method."""
    work = 4.0 * nonzeros * route.block
    once = speed.seconds(size, work)
    return Count(route.passes, route.passes * size, route.passes * work, route.passes * once)
