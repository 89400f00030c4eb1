# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A table of customers with names, categories and missing values: who leaves?

customers.py make FILE COUNT SEED [new]      writes the table; new: without the column `left`, ids from 90001
customers.py compare FILE EVALUATED          prints accuracies of scikit-learn on the rows of EVALUATED (lockstep predict --set-name eval), trained on the
                                             others
"""
import csv
import json
import random
import sys

TOWNS = {"Ulm": 0.4, "Bonn": -0.5, "Kiel": 0.0, "Münster": 0.9}
FEES = {"basic": 19.9, "plus": 34.5, "family": 49.0}
NUMBERS, CATEGORIES = ["age", "monthly_fee", "support_calls", "months"], ["town", "plan"]


def make(path, count, seed, new=""):
    draw = random.Random(int(seed))
    with open(path, "w", encoding="utf-8", newline="") as file:
        columns = ["id", "name", "age", "town", "plan", "monthly_fee", "support_calls", "months"] + ([] if new else ["left"])
        table = csv.DictWriter(file, columns, extrasaction="ignore")
        table.writeheader()
        for row in range(int(count)):
            age, months, calls = draw.randrange(18, 80), draw.randrange(1, 72), min(9, int(draw.expovariate(0.6)))
            town, plan = draw.choice(list(TOWNS)), draw.choice(list(FEES))
            fee = FEES[plan] + draw.choice([0, 0, 5])
            score = 0.9 * calls - 0.06 * months + TOWNS[town] - 0.03 * (age - 45) + 0.02 * (fee - 30) + draw.gauss(0, 0.8)
            score += 1.2 if plan == "basic" and calls > 1 else 0
            name = f'{draw.choice(["Ada", "Max", "Eva", "Tom"])} "{row}" {draw.choice(["Frei", "Kurz, jr.", "Lang"])}'
            table.writerow({"id": f"C-{row + (90001 if new else 1):05}", "name": name, "age": age if draw.random() > 0.1 else "", "town": town,
                            "plan": plan if draw.random() > 0.06 else "NA", "monthly_fee": f"{fee:.2f}", "support_calls": calls,
                            "months": months if draw.random() > 0.05 else "", "left": "yes" if score > -0.4 else "no"})


def compare(path, evaluated):
    import numpy as np
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with open(evaluated, encoding="utf-8", newline="") as file:
        held_out = [int(row["sample"]) for row in csv.DictReader(file)]
    x = np.array([[float(row[name] or "nan") for name in NUMBERS] + [row[name] for name in CATEGORIES] for row in rows], dtype=object)
    y, test = np.array([row["left"] for row in rows]), np.isin(np.arange(len(rows)), held_out)
    numbers, categories = list(range(len(NUMBERS))), list(range(len(NUMBERS), x.shape[1]))
    prepared = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers), ("categories", OneHotEncoder(), categories)])
    found = {"most frequent": float(np.mean(y[test] == max(set(y[~test]), key=list(y[~test]).count)))}
    for name, model in (("logistic regression", LogisticRegression()), ("boosted trees", HistGradientBoostingClassifier(max_iter=60, random_state=0))):
        found[name] = float(make_pipeline(prepared, model).fit(x[~test], y[~test]).score(x[test], y[test]))
    print(json.dumps(found))


{"make": make, "compare": compare}[sys.argv[1]](*sys.argv[2:])
