"""Private covariance, principal components and regression, as scikit-learn estimators.

Beside each estimator stands a pure function. `docs/estimators.md` has the recipe and its proofs.
"""
