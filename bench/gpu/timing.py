"""Times, ceilings and rows of the table, on a GPU."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Row:
    """One line of the report: the work, its time, how good the answer is, the limit, and the peer of the same run."""

    work: str
    seconds: float
    quality: str
    limit: str = ""
    peer: str = ""

    def line(self) -> str:
        """The line of a Markdown table."""
        return f"| {self.work} | {duration(self.seconds)} | {self.quality} | {self.limit} | {self.peer} |"


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def share(limit: float, seconds: float) -> str:
    """A limit and the part of it that was reached."""
    return f"{duration(limit)} ({limit / seconds:.0%})"


def timed(work: Callable[[], Any], repeats: int = 3, warm: int = 1) -> tuple[float, Any]:
    """The median time of some calls between events on the GPU, after others that are not counted."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times, out = [], None
    for _ in range(repeats):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        out = work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 1e3)
    return sorted(times)[len(times) // 2], out


@dataclass(frozen=True)
class Ceilings:
    """What this GPU does at most in a second: bytes copied, products of matrices, exponentials, products of int8."""

    bandwidth: float
    half: float
    single: float
    double: float
    exponentials: float
    whole: float

    def lines(self) -> list[str]:
        """A sentence for the report."""
        return [
            f"Ceilings measured in this run: copy {self.bandwidth / 1e12:.2f} TB/s (bytes read and written), matrix "
            f"products {self.half / 1e12:.0f} TFLOP/s in fp16, {self.single / 1e12:.0f} in float32, "
            f"{self.double / 1e12:.0f} in float64, "
            f"{self.whole / 1e12:.0f} in int8; exponentials 16 a clock and multiprocessor, "
            f"{self.exponentials / 1e12:.2f}·10¹² a second at {clock() / 1e3:.2f} GHz."
        ]


def clock() -> float:
    """Megahertz of the multiprocessors while they work."""
    return float(torch.cuda.clock_rate())


def _flops(dtype: torch.dtype, order: int) -> float:
    a, b = (torch.randn(order, order, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * order**3 / timed(lambda: a @ b)[0]


def _whole_products(order: int) -> float:
    a, b = (torch.randint(-1, 2, (order, order), device="cuda", dtype=torch.int8) for _ in range(2))
    return 2 * order**3 / timed(lambda: torch._int_mm(a, b.T))[0]


def ceilings() -> Ceilings:
    """Measure the GPU."""
    a = torch.empty(2**30, device="cuda")
    b = torch.empty_like(a)
    seconds, _ = timed(lambda: b.copy_(a))
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    half = _flops(torch.float16, 8192)
    speed = 16 * processors * clock() * 1e6
    return Ceilings(
        2 * a.nbytes / seconds,
        half,
        _flops(torch.float32, 8192),
        _flops(torch.float64, 8192),
        speed,
        _whole_products(16384),
    )
