# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Values of metrics by scikit-learn, as metrics.json next to this file, which
tests/unit/model/metrics/reference_metrics_test.cpp reads.

    python tests/reference/metrics.py         # needs scikit-learn, numpy; the tests need neither

A case has the metric as one line of a configuration, the kind of its predictions, the number of classes, labels or
numbers per sample (`width`), the outputs of all samples one behind the other, the labels likewise, and the value, or
a table by name. Outputs of classes are logits; those of labels and values are taken as they are.
"""
import json
import pathlib
import platform

import numpy as np
import sklearn
from sklearn import metrics as sk

SAMPLES = 29
cases = []


def case(yaml, kind, outputs, labels, value=None, **tables):
    cases.append({"yaml": yaml, "kind": kind, "width": outputs.shape[1], "outputs": outputs.ravel().tolist(),
                  "labels": np.asarray(labels).ravel().tolist(),
                  "value": None if value is None else float(value),
                  "tables": {name: np.asarray(table, dtype=float).ravel().tolist()
                             for name, table in tables.items()}})


def of_classes(random, classes):
    # Multiples of 1/8: exact in float32, with ties between samples; no ties inside a row.
    logits = np.array([random.permutation(64)[:classes] for _ in range(SAMPLES)]) / 8.0
    truth = random.integers(0, classes, SAMPLES)
    predicted = logits.argmax(axis=1)
    everyone = list(range(classes))

    def add(yaml, value=None, **tables):
        case(yaml, "classes", logits, truth, value, **tables)

    add("accuracy", sk.accuracy_score(truth, predicted))
    add("hamming_loss", sk.hamming_loss(truth, predicted))
    add("{top_k: {k: 2}}", sk.top_k_accuracy_score(truth, logits, k=2, labels=everyone))
    add("confusion_matrix", matrix=sk.confusion_matrix(truth, predicted, labels=everyone))
    for name, score in {"precision": sk.precision_score, "recall": sk.recall_score, "f1": sk.f1_score}.items():
        for average in ("micro", "macro"):
            add(f"{{{name}: {{average: {average}}}}}",
                score(truth, predicted, labels=everyone, average=average, zero_division=0))
        each = score(truth, predicted, labels=everyone, average=None, zero_division=0)
        add(f"{{{name}: {{average: per_class}}}}", each.mean(), per_class=each)
    each = sk.jaccard_score(truth, predicted, labels=everyone, average=None)
    add("{mean_iou: {per_class: true}}", each.mean(), per_class=each)
    add("mean_per_class_accuracy", sk.balanced_accuracy_score(truth, predicted))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    add("perplexity", np.exp(sk.log_loss(truth, p, labels=everyone)))
    add("{auc_roc: {exact: true}}", sk.roc_auc_score(truth, p, multi_class="ovr", labels=everyone))


def of_labels(random, width):
    p = random.integers(0, 33, (SAMPLES, width)) / 32.0
    truth = (random.random((SAMPLES, width)) < 0.2 + 0.6 * p).astype(int)
    predicted = (p > 0.5).astype(int)

    def add(yaml, value=None, **tables):
        case(yaml, "labels", p, truth, value, **tables)

    add("subset_accuracy", sk.accuracy_score(truth, predicted))
    add("hamming_loss", sk.hamming_loss(truth, predicted))
    for name, score in {"precision": sk.precision_score, "recall": sk.recall_score, "f1": sk.f1_score}.items():
        for average in ("micro", "macro"):
            add(f"{{{name}: {{average: {average}}}}}", score(truth, predicted, average=average, zero_division=0))
    for average in ("micro", "macro"):
        add(f"{{auc_roc: {{exact: true, average: {average}}}}}", sk.roc_auc_score(truth, p, average=average))
        add(f"{{auc_pr: {{exact: true, average: {average}}}}}",
            sk.average_precision_score(truth, p, average=average))
    curves = [sk.precision_recall_curve(truth[:, c], p[:, c]) for c in range(width)]
    areas = [sk.auc(recall, precision) for precision, recall, _ in curves]
    add("{auc_pr: {exact: true, average: per_class, summation: trapezoidal}}", np.mean(areas), per_class=areas)
    best = [max(2 * a * b / (a + b) if a + b > 0 else 0 for a, b in zip(precision, recall))
            for precision, recall, _ in curves]
    add("{f1: {thresholds: best_f1, exact: true}}", np.mean(best), best_f1=best)


def of_one_label(random):
    p = random.integers(0, 33, (SAMPLES, 1)) / 32.0
    truth = (random.random((SAMPLES, 1)) < p).astype(int)
    case("{auc_roc: {exact: true}}", "labels", p, truth, sk.roc_auc_score(truth, p))
    case("{auc_pr: {exact: true}}", "labels", p, truth, sk.average_precision_score(truth, p))
    case("{f1: {thresholds: 0.3}}", "labels", p, truth, sk.f1_score(truth, p > 0.3))


def of_values(random, width):
    labels = random.integers(-64, 64, (SAMPLES, width)) / 16.0 + 100
    p = labels + random.integers(-16, 17, (SAMPLES, width)) / 16.0
    for name, score in {"mean_absolute_error": sk.mean_absolute_error, "mean_squared_error": sk.mean_squared_error,
                        "r2": sk.r2_score}.items():
        case(f"{{{name}: {{per_output: true}}}}", "values", p, labels, score(labels, p),
             per_output=score(labels, p, multioutput="raw_values"))
    case("root_mean_squared_error", "values", p, labels, np.sqrt(sk.mean_squared_error(labels, p)))
    case("mean_relative_error", "values", p, labels, sk.mean_absolute_percentage_error(labels, p))
    cosine = sk.pairwise.paired_cosine_distances(p, labels).mean()
    case("{mean_cosine_distance: {normalize: true}}", "values", p, labels, cosine)


def main():
    random = np.random.default_rng(3)
    of_classes(random, 3)
    of_classes(random, 7)
    of_labels(random, 5)
    of_one_label(random)
    of_values(random, 3)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    head = json.dumps({"made_by": "tests/reference/metrics.py", **versions})
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(f'{{"versions": {head},\n"cases": [\n{lines}\n]}}\n', encoding="ascii")


if __name__ == "__main__":
    main()
