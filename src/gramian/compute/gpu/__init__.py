"""The hot loops for torch tensors: the same names and signatures as on the CPU.

On a CUDA device they are kernels written in Triton; where Triton is absent, or the tensors are on the CPU, plain torch
gives the same answers. Everything here loads torch: other layers get at it through :func:`gramian.compute.devices.gpu`.
"""

from gramian.compute.gpu import cholesky, dense, genotypes, mixture, tiles, uploads

__all__ = ["cholesky", "dense", "genotypes", "mixture", "tiles", "uploads"]
