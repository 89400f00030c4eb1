# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Reference values of data.whiten, as whitening.json next to this script: scikit-learn's PCA, and NumPy's covariance and
eigenvectors in float64.

    python tests/reference/whitening.py        # needs numpy, scikit-learn
"""
import json
import pathlib

import numpy as np
import sklearn
from sklearn.decomposition import PCA

SAMPLES, SHAPE = 40, (2, 2, 3)
generator = np.random.default_rng(7)
mixing = generator.normal(size=(12, 12)) * np.linspace(0.2, 2, 12)
x = np.float32(generator.normal(size=(SAMPLES, 12)) @ mixing + generator.normal(size=12) * 3)


def directions(vectors):
    """Variances, descending, and eigenvectors as rows, whose element of the largest size is positive."""
    values, columns = np.linalg.eigh(np.cov(vectors, rowvar=False))
    rows = columns.T[::-1]
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(1)])
    return values[::-1], rows * signs[:, None]


def whitened(method, epsilon=1e-6, components=None, channels=False):
    vectors = x.astype(np.float64).reshape(-1, SHAPE[-1] if channels else 12)
    values, rows = directions(vectors)
    count = components if components is not None and components >= 1 else len(values)
    if components is not None and components < 1:
        count = int(np.searchsorted(np.cumsum(values) / values.sum(), components, side="right")) + 1
    y = (vectors - vectors.mean(0)) @ rows[:count].T / np.sqrt(values[:count] + epsilon)
    return (y @ rows[:count] if method == "zca" else y).reshape(SAMPLES, -1)


def numbers(array):
    """Enough digits for float32."""
    return [float(f"{v:.9g}") for v in np.asarray(array).ravel()]


cases = []
for yaml, options in (
        ("pca", dict(method="pca")),
        ("pca: {epsilon: 0}", dict(method="pca", epsilon=0)),
        ("pca: {epsilon: 0, components: 5}", dict(method="pca", epsilon=0, components=5)),
        ("pca: {epsilon: 0, components: 0.9}", dict(method="pca", epsilon=0, components=0.9)),
        ("pca: {components: 2, over: channels}", dict(method="pca", components=2, channels=True)),
        ("zca: {epsilon: 0}", dict(method="zca", epsilon=0)),
        ("zca: {epsilon: 0.1}", dict(method="zca", epsilon=0.1)),
        ("zca: {over: channels}", dict(method="zca", channels=True))):
    y = whitened(**options)
    if options["method"] == "pca" and options.get("epsilon") == 0:
        of_sklearn = PCA(n_components=options.get("components"), whiten=True, svd_solver="full").fit_transform(x.astype(np.float64))
        assert y.shape == of_sklearn.shape and np.allclose(y, of_sklearn, atol=1e-9), yaml
    cases.append({"whiten": yaml, "y": numbers(y)})

pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(
    {"versions": {"numpy": np.__version__, "scikit-learn": sklearn.__version__}, "shape": SHAPE, "x": numbers(x),
     "cases": cases}, indent=None, separators=(",", ":")) + "\n")
