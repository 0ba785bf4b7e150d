"""Maximum of ``|A x|^2`` over a public domain: exact, or a certified upper bound.

The domain is ``K = {x : |x_i| <= c_i, |x| <= R}``. For a diagonal A it is a fractional knapsack in ``y_i = x_i^2``.
For a matrix A and a box of up to 16 features the maximum of the convex function sits at a sign vertex, and all are
tried. Beyond, any ``e, l >= 0`` with ``diag(e) + l I`` above ``P = A'A`` certify ``x'Px <= sum e_i c_i^2 + l R^2``;
good ones come from a low-rank solution of the dual problem, and what makes the bound hold is the eigenvalue check at
the end, whatever the solution.
"""

import numpy as np

from matrixdp.checks import power_of_two
from matrixdp.sensitivity.distance import EPS, Distance, column_norms
from matrixdp.types import Factor, Floats, is_diagonal

ENUMERATE = 16  # features up to which all sign vertices are tried
_SWEEPS = 40


def max_quadratic(factor: Factor, halfwidths: Floats, radius: float | None = None) -> Distance:
    """``sup |A x|^2`` over the box, cut with the ball if there is one.

    Parameters
    ----------
    factor : number, array of shape (m,) or of shape (k, m)
        A.
    halfwidths : float64 array of shape (m,)
        c.
    radius : float, optional
        R.

    Examples
    --------
    >>> max_quadratic(np.array([1.0, 2.0]), np.array([3.0, 1.0])).value
    13.0
    >>> round(max_quadratic(np.array([1.0, 2.0]), np.array([3.0, 1.0]), radius=1.0).value, 12)
    4.0
    """
    units = power_of_two(float(np.abs(factor).max())), power_of_two(float(halfwidths.max()))
    factor, halfwidths = factor / units[0], halfwidths / units[1]
    found = _max_of_normalised(factor, halfwidths, None if radius is None else radius / units[1])
    size = (units[0] * units[1]) ** 2
    return Distance(found.value * size, found.attained * size)


def _max_of_normalised(factor: Factor, halfwidths: Floats, radius: float | None) -> Distance:
    """`max_quadratic` for factors and halfwidths of about one, whose squares neither overflow nor underflow."""
    if is_diagonal(factor):
        gains, sizes = column_norms(factor, halfwidths.size), halfwidths**2
        if radius is None:
            value = float((gains * sizes).sum())
        else:  # a fractional knapsack: the largest gains first
            order = np.argsort(-gains, kind="stable")
            filled = np.minimum(np.cumsum(sizes[order]), radius**2)
            value = float((gains[order] * np.diff(filled, prepend=0.0)).sum()) * (1 + 4 * gains.size * EPS)
        return Distance(value, value)
    assert isinstance(factor, np.ndarray)
    scaled = factor * halfwidths
    slack = 4 * (factor.shape[0] + 4) * EPS * float(np.square(np.abs(scaled).sum(axis=1)).sum())
    if radius is None or radius**2 >= float((halfwidths**2).sum()):
        m = halfwidths.size
        if m <= ENUMERATE:  # all sign vectors, up to their sign
            codes = np.arange(1 << (m - 1), dtype=np.uint32)
            vertices = 1.0 - 2.0 * (codes[:, None] >> np.arange(m, dtype=np.uint32) & 1)
            value = float(np.square(vertices @ scaled.T).sum(axis=1).max())
            return Distance(value + slack, value)
        dual, signs = dominate(scaled.T @ scaled)
        return Distance(float(dual.sum()) * (1 + 4 * m * EPS) + slack, good_vertex(scaled, signs))
    return _with_ball(scaled, halfwidths, radius, slack)


def dominate(problem: Floats) -> tuple[Floats, Floats]:
    """A vector e with ``diag(e) - M`` positive semidefinite and a small sum, and signs of a good vertex.

    Maximises ``sum M_ij v_i.v_j`` over vectors of length at most one, one vector at a time; the lengths of the
    gradients are a dual solution, made feasible by an eigenvalue.
    """
    m = problem.shape[0]
    diagonal = np.diagonal(problem).copy()
    rank = min(m, int(np.sqrt(2 * m)) + 2)
    vectors = np.random.default_rng(0).standard_normal((m, rank))  # where a search starts is not private
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gradients = np.zeros(m)
    for _ in range(_SWEEPS):
        for i in range(m):
            pull = problem[i] @ vectors - diagonal[i] * vectors[i]
            length = float(np.sqrt(pull @ pull))
            gradients[i] = length
            reach = 1.0 if diagonal[i] >= 0 else min(1.0, length / -diagonal[i])
            vectors[i] = pull * (reach / length) if length > 0 else vectors[i]
    dual = repair_dominance(np.maximum(0.0, gradients + diagonal), problem)
    return dual, np.where(vectors[:, 0] < 0, -1.0, 1.0)


def repair_dominance(dual: Floats, problem: Floats) -> Floats:
    """`dual` plus the least number that makes ``diag(dual) - M`` positive semidefinite in spite of rounding."""
    m = len(dual)
    eigenvalues = np.linalg.eigvalsh(np.diag(dual) - problem)
    size = np.abs(eigenvalues).max() + np.abs(dual).max() + float(np.abs(np.diagonal(problem)).sum())
    return np.asarray(dual + max(0.0, 16 * (m + 4) * EPS * float(size) - float(eigenvalues[0])))


def _with_ball(scaled: Floats, halfwidths: Floats, radius: float, slack: float) -> Distance:
    """Best certificate over a few weights of the ball, from the box alone to the ball alone."""
    gram, sizes = scaled.T @ scaled, halfwidths**2
    plain = scaled / halfwidths
    top = float(np.linalg.norm(plain, 2)) ** 2 * (1 + 16 * plain.shape[0] * EPS)
    weights = top * np.array([0.0, 0.125, 0.25, 0.5, 0.75])
    found = [dominate(gram - np.diag(weight * sizes)) for weight in weights]
    sums = [float(dual.sum()) * (1 + 4 * dual.size * EPS) for dual, _ in found]
    certified = [one + weight * radius**2 for one, weight in zip(sums, weights, strict=True)]
    value = min(top * radius**2, *certified) * (1 + 4 * EPS)
    lead = np.linalg.svd(plain)[2][0]  # the best record of the ball alone, shrunk into the box
    starts = [halfwidths * signs for _, signs in found]
    candidates = [x * min(1.0, radius / float(np.linalg.norm(x))) for x in starts]
    candidates.append(lead * min(radius, float((halfwidths / np.maximum(np.abs(lead), 1e-300)).min())))
    attained = max(float(np.square(plain @ x).sum()) for x in candidates)
    return Distance(value + slack, min(attained, value))


def good_vertex(scaled: Floats, signs: Floats | None = None) -> float:
    """``|B z|^2`` for a sign vector z that no single change of sign improves, from given signs on."""
    gram = scaled.T @ scaled
    signs = np.where(np.linalg.svd(scaled)[2][0] < 0, -1.0, 1.0) if signs is None else signs.copy()
    for _ in range(4 * signs.size):
        gain = np.diagonal(gram) - signs * (gram @ signs)  # a quarter of what changing each sign would add
        i = int(np.argmax(gain))
        if gain[i] <= 0:
            break
        signs[i] = -signs[i]
    return float(np.square(scaled @ signs).sum())
