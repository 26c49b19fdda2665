r"""The positive numbers that a kernel's values depend on smoothly, and the derivatives by their logarithms.

A function of a kernel matrix K has a differential Σ G_ij dK_ij. Of every number θ of a kernel what is wanted is
Σ G_ij ∂K_ij/∂ln θ, for one matrix G:

* f(u) of u = Σ s_k²(x_k − z_k)², by s_k: 2s_k² f′(u)(x_k − z_k)², and with W = G∘f′ the sum is
  2s_k²(Σ x²_ik (W1)_i + Σ z²_jk (Wᵀ1)_j − 2Σ x_ik (Wz)_ik); of (1 + u)^(−α), by α with s as it is, −α ln(1 + u) K;
* e⁻ᵘ of u = Σ γ_k|x_k − z_k|, by γ_k: −γ_k|x_k − z_k| K;
* (γ x·z + c)^q, by γ and c: q(γ x·z + c)^(q−1) times γ x·z, and times c;
* a·k, by a: aK, and by the others as of k, with aG for G;
* k₁ + k₂ as of each, with G for both; k₁k₂ as of each, with G∘K₂ and G∘K₁.

so that all widths of a radial kernel cost one product of an n × m matrix with the points. Other kernels have no such
numbers and are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device, is_numpy_array

from gramian.kernels.base import Kernel, OnColumns, Product, Scaled, Sum
from gramian.kernels.distance import Gaussian, Laplacian, Matern, RationalQuadratic
from gramian.kernels.inner_product import Linear, Polynomial

Array = Any  # of NumPy, or a tensor where the points live
Vector = npt.NDArray[np.float64]
Pull = Callable[[Array], Vector]

Stretchable = Gaussian | Matern | RationalQuadratic  # functions of Σ s_k²(x_k − z_k)²
MOST_KNOWN = 2**27  # numbers of matrices that are kept
SMOOTH = (Gaussian, Matern, RationalQuadratic, Linear, Polynomial)  # evaluated where the points live


@dataclass(frozen=True)
class KernelParameter:
    """A positive number of a kernel.

    Attributes
    ----------
    kind : {"scale", "rate", "offset", "mixture", "amplitude"}
        s_k of a radial kernel or γ_k of a Laplacian; γ and c of a polynomial; α of a rational quadratic; a of a·k.
    part : int
        Which of the kernels that it is made of, counted from the left, has it.
    feature : int
        The column that it belongs to; −1 of none.
    value : float
        The number.
    """

    kind: str
    part: int
    feature: int
    value: float


def scales_of(kernel: Stretchable, p: int) -> Vector:
    """s of p features, with which the kernel is f(Σ s_k²(x_k − z_k)²)."""
    return np.broadcast_to(np.asarray(kernel.formula(p).scale, dtype=np.float64), (p,))


def with_scales(kernel: Stretchable, s: Vector) -> Stretchable:
    """The kernel of the same kind with other scales; with one number where they are all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.kernels.derivatives import with_scales
    >>> with_scales(Gaussian(1.0), np.array([1.0, 2.0]))
    Gaussian(gamma=(1.0, 4.0))
    """
    s = s[0] if len(s) and np.all(s == s[0]) else s
    if isinstance(kernel, Gaussian):
        return Gaussian(np.square(s))
    stretch = np.sqrt(2 * kernel.nu) if isinstance(kernel, Matern) else 1.0 / np.sqrt(2 * kernel.alpha)
    return replace(kernel, length_scale=stretch / s)


def parts_of(kernel: Kernel) -> list[Kernel]:
    """The kernels that it is made of by sums, products, multiples and choices of columns, from the left."""
    if isinstance(kernel, Sum | Product):
        return [*parts_of(kernel.first), *parts_of(kernel.second)]
    return parts_of(kernel.kernel) if isinstance(kernel, Scaled | OnColumns) else [kernel]


def list_parameters(kernel: Kernel, p: int) -> list[KernelParameter]:
    """Every number of a kernel of p columns that can be moved, in the order of :func:`with_parameters`.

    Examples
    --------
    >>> from gramian.kernels import Gaussian, Linear
    >>> from gramian.kernels.derivatives import list_parameters
    >>> [(one.kind, one.part, one.feature) for one in list_parameters(Gaussian(0.5) + 2.0 * Linear(), 2)]
    [('scale', 0, 0), ('scale', 0, 1), ('amplitude', 1, -1)]
    """
    out: list[KernelParameter] = []

    def visit(kernel: Kernel, features: Sequence[int], part: int) -> int:
        """List those of a kernel whose first part has this number; return the number of the next part."""
        if isinstance(kernel, Sum | Product):
            return visit(kernel.second, features, visit(kernel.first, features, part))
        if isinstance(kernel, Scaled):
            out.append(KernelParameter("amplitude", part, -1, kernel.factor))
            return visit(kernel.kernel, features, part)
        if isinstance(kernel, OnColumns):
            return visit(kernel.kernel, [features[k] for k in kernel.columns], part)
        size = len(features)
        if isinstance(kernel, Stretchable):
            out.extend(
                KernelParameter("scale", part, k, float(s))
                for k, s in zip(features, scales_of(kernel, size), strict=True)
            )
            if isinstance(kernel, RationalQuadratic):
                out.append(KernelParameter("mixture", part, -1, kernel.alpha))
        elif isinstance(kernel, Laplacian):
            rates = np.broadcast_to(kernel.formula(size).scale, (size,))
            out.extend(KernelParameter("scale", part, k, float(s)) for k, s in zip(features, rates, strict=True))
        elif isinstance(kernel, Polynomial):
            out.append(KernelParameter("rate", part, -1, 1.0 / size if kernel.gamma is None else kernel.gamma))
            if kernel.coef0 > 0:
                out.append(KernelParameter("offset", part, -1, kernel.coef0))
        return part + 1

    visit(kernel, range(p), 0)
    return out


def with_parameters(kernel: Kernel, p: int, values: Sequence[float] | Vector) -> Kernel:
    """The kernel with other numbers in the place of those of :func:`list_parameters`."""
    left = [float(value) for value in values]

    def take(count: int) -> Vector:
        some = np.array(left[:count])
        del left[:count]
        return some

    def visit(kernel: Kernel, size: int) -> Kernel:
        if isinstance(kernel, Sum | Product):
            first = visit(kernel.first, size)
            return replace(kernel, first=first, second=visit(kernel.second, size))
        if isinstance(kernel, Scaled):
            factor = float(take(1)[0])
            return Scaled(visit(kernel.kernel, size), factor)
        if isinstance(kernel, OnColumns):
            return replace(kernel, kernel=visit(kernel.kernel, len(kernel.columns)))
        if isinstance(kernel, Stretchable):
            s = take(size)
            if isinstance(kernel, RationalQuadratic):
                kernel = replace(kernel, alpha=float(take(1)[0]))
            return with_scales(kernel, s)
        if isinstance(kernel, Laplacian):
            s = take(size)
            return Laplacian(s[0] if len(s) and np.all(s == s[0]) else s)
        if isinstance(kernel, Polynomial):
            gamma = float(take(1)[0])
            return replace(kernel, gamma=gamma, coef0=float(take(1)[0]) if kernel.coef0 > 0 else kernel.coef0)
        return kernel

    return visit(kernel, p)


def can_differentiate_on_devices(kernel: Kernel) -> bool:
    """Whether every part is evaluated by :func:`evaluate_with_derivatives` where the points live."""
    return all(isinstance(part, SMOOTH) for part in parts_of(kernel))


def evaluate_with_derivatives(
    kernel: Kernel, X: Array, Z: Array | None = None, known: dict[str, Array] | None = None
) -> tuple[Array, Pull]:
    r"""K = k(X, Z), and the function that takes G to Σ G_ij ∂K_ij/∂ln θ for every number θ of the kernel.

    The function may be called once, and does not change G.

    Parameters
    ----------
    kernel : Kernel
        With every parameter found.
    X, Z : array of shape (n, p), (m, p)
        Dense points in float64, of NumPy or on one device; Z = X where None.
    known : dict, optional
        Matrices of linear kernels, which have no number to move, of the same points: kept from one call to the next
        while they take no more than 2²⁷ numbers. They are not to be changed.

    Returns
    -------
    K : array of shape (n, m)
        Where X is.
    pull : callable
        Of a matrix of the shape of K.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.kernels.derivatives import evaluate_with_derivatives
    >>> K, pull = evaluate_with_derivatives(Gaussian(1.0), np.array([[0.0], [1.0]]))
    >>> pull(np.array([[0.0, 1.0], [0.0, 0.0]])).round(4)  # −2γ(x − z)²K
    array([-0.7358])
    """
    xp = array_namespace(X)
    p, where = X.shape[1], {} if is_numpy_array(X) else {"device": device(X)}
    if isinstance(kernel, Sum):
        first, pull_first = evaluate_with_derivatives(kernel.first, X, Z, known)
        second, pull_second = evaluate_with_derivatives(kernel.second, X, Z, known)
        return first + second, lambda G: np.concatenate([pull_first(G), pull_second(G)])
    if isinstance(kernel, Product):
        first, pull_first = evaluate_with_derivatives(kernel.first, X, Z, known)
        second, pull_second = evaluate_with_derivatives(kernel.second, X, Z, known)
        return first * second, lambda G: np.concatenate([pull_first(G * second), pull_second(G * first)])
    if isinstance(kernel, Scaled):
        K, pull = evaluate_with_derivatives(kernel.kernel, X, Z, known)
        K, a = K * kernel.factor, kernel.factor
        return K, lambda G: np.concatenate([[float(xp.sum(G * K))], a * pull(G)])
    if known is not None and (
        type(kernel) is Linear or (isinstance(kernel, OnColumns) and type(kernel.kernel) is Linear)
    ):
        name = "" if isinstance(kernel, Linear) else repr([int(k) for k in kernel.columns])
        if name not in known:
            K = evaluate_with_derivatives(kernel, X, Z)[0]
            if (len(known) + 1) * K.shape[0] * K.shape[1] > MOST_KNOWN:
                return K, lambda G: np.empty(0)
            known[name] = K
        return known[name], lambda G: np.empty(0)
    if isinstance(kernel, OnColumns):
        index = xp.asarray(np.array(kernel.columns), **where)
        Z = None if Z is None else xp.take(Z, index, axis=1)
        return evaluate_with_derivatives(kernel.kernel, xp.take(X, index, axis=1), Z)
    if isinstance(kernel, Stretchable):
        middle = xp.mean(X if Z is None else Z, axis=0)  # differences are of points about it
        s = xp.asarray(np.array(scales_of(kernel, p)), **where)
        F = (X - middle) * s
        H = F if Z is None else (Z - middle) * s
        U = F @ H.T
        U *= -2.0
        U += xp.sum(F * F, axis=1)[:, None]
        U += xp.sum(H * H, axis=1)[None, :]
        U[U < 0.0] = 0.0
        if Z is None:
            i = xp.arange(U.shape[0], **where)
            U[i, i] = 0.0
        K, slopes = _profile(kernel, U)

        def pull_scales(G: Array) -> Vector:
            W = G * slopes
            if Z is None:
                inner = xp.sum(W, axis=1) + xp.sum(W, axis=0)
                out = 2.0 * (inner @ (F * F)) - 4.0 * xp.sum(F * (W @ F), axis=0)
            else:
                out = 2.0 * (xp.sum(W, axis=1) @ (F * F) + xp.sum(W, axis=0) @ (H * H))
                out -= 4.0 * xp.sum(F * (W @ H), axis=0)
            found = _to_vector(out)
            if isinstance(kernel, RationalQuadratic):
                found = np.append(found, -kernel.alpha * float(xp.sum(G * K * xp.log1p(U))))
            return found

        return K, pull_scales
    if isinstance(kernel, Polynomial):
        other = X if Z is None else Z
        rate, degree = (1.0 / p if kernel.gamma is None else kernel.gamma), kernel.degree
        inner = (X @ other.T) * rate
        base = inner + kernel.coef0

        def pull_polynomial(G: Array) -> Vector:
            W = G * base ** (degree - 1) * float(degree)
            found = [float(xp.sum(W * inner))]
            return np.array([*found, kernel.coef0 * float(xp.sum(W))] if kernel.coef0 > 0 else found)

        return base**degree, pull_polynomial
    if isinstance(kernel, Linear) and type(kernel) is Linear:
        return X @ (X if Z is None else Z).T, lambda G: np.empty(0)
    if isinstance(kernel, Laplacian):
        K, other = kernel(X, Z), X if Z is None else Z
        rates = np.broadcast_to(np.asarray(kernel.formula(p).scale), (p,))

        def pull_rates(G: Array) -> Vector:
            W = G * K
            each = [-rates[k] * float(np.sum(W * np.abs(X[:, k, None] - other[None, :, k]))) for k in range(p)]
            return np.array(each)

        return np.asarray(K, dtype=np.float64), pull_rates
    return np.asarray(kernel(X, Z), dtype=np.float64), lambda G: np.empty(0)


def _to_vector(x: Array) -> Vector:
    """A vector of NumPy, from wherever it is."""
    return np.asarray(x if is_numpy_array(x) else x.cpu().numpy(), dtype=np.float64)


def _profile(kernel: Stretchable, u: Array) -> tuple[Array, Array]:
    """f(u) and f′(u); of e⁻ʳ 0 where u is, since f′(u)u is what counts."""
    xp = array_namespace(u)
    if isinstance(kernel, Gaussian):
        f = xp.exp(-u)
        return f, -f
    if isinstance(kernel, RationalQuadratic):
        f = (1.0 + u) ** -kernel.alpha
        return f, -kernel.alpha * f / (1.0 + u)
    r = xp.sqrt(u)
    e = xp.exp(-r)
    if kernel.nu == 0.5:
        slopes = -0.5 * e / xp.where(r > 0, r, xp.ones_like(r))
        slopes[r == 0.0] = 0.0
        return e, slopes
    if kernel.nu == 1.5:
        return (1.0 + r) * e, -0.5 * e
    return (1.0 + r + u / 3.0) * e, -(1.0 + r) * e / 6.0
