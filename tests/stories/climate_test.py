# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A story: a series of temperature on a grid, in a netCDF-4 file. Tomorrow's field from those of two days, compared with scikit-learn and the true law."""
from lockstep_run import main
from story import Story

# A day is a row of the file. Sample i has row i as yesterday, row i + 1 as today and row i + 2 as tomorrow.
CONFIG = """
seed: 1
shards: 4
data:
  format: hdf5
  path: weather.nc
  features: t2m
  inputs:
    yesterday: {rows: [0, 498], normalize: all}
    today: {rows: [1, 499], normalize: all}
  targets:
    tomorrow: {rows: [2, 500], normalize: all}
  train: {take: 400}
  eval: {skip: 400}
model:
  layers:
    - reshape: {name: day1, inputs: yesterday, shape: [8, 16, 1]}
    - reshape: {name: day2, inputs: today, shape: [8, 16, 1]}
    - concat: {name: days, inputs: [day1, day2]}
    - slice: {name: west, inputs: days, begin: [0, 0, 0], size: [-1, 2, -1]}
    - slice: {name: east, inputs: days, begin: [0, 14, 0], size: [-1, 2, -1]}
    - concat: {name: globe, inputs: [east, days, west], axis: 1}   # the grid closes around the earth
    - conv2d: {name: conv1, filters: 32, kernel: [3, 5], padding: [1, 1, 0, 0]}
    - relu
    - conv2d: {name: conv2, filters: 1, kernel: 1}
    - flatten: {name: field}
  heads:
    - {name: field, labels: tomorrow, loss: mean_squared_error}
optimizer: {adam: {learning_rate: {cosine_decay: {initial: 0.01, decay_steps: 375}}}}
train: {batch_size: 16, epochs: 15}
eval: {every_epochs: 5, metrics: [root_mean_squared_error, r2]}
"""


class Climate(Story):
    def test_the_temperature_of_tomorrow(self):
        self.script("weather.py", "make", self.home / "weather.nc", 500, 11)
        self.script("weather.py", "make", self.elsewhere / "new.nc", 60, 12)
        (self.home / "weather.yaml").write_text(CONFIG, encoding="utf-8")

        said = self.sh("lockstep data weather.yaml").out
        self.assertIn("t2m: value = stored * 0.002 + 0; missing values are errors", said)
        said = self.sh("lockstep check weather.yaml").out
        self.assertRegex(said, r"400 of 498 samples of yesterday 8x16 float32, today 8x16 float32; targets: tomorrow 8x16")

        self.sh("lockstep train weather.yaml --run-dir runs/weather --steps 175")
        self.sh("mpirun -n 2 lockstep train weather.yaml --run-dir runs/weather")
        metrics = self.judged("lockstep evaluate runs/weather")
        self.assertEqual(metrics["samples"], 98)

        self.sh("lockstep report runs/weather")
        self.looks_like_a_report(self.home / "runs/weather/report.html", "root_mean_squared_error", "globe")
        self.sh("mpirun -n 2 lockstep predict runs/weather --set-name eval --output evaluated.h5")

        # Elsewhere: another 60 days. The inputs keep their distance in days, so there are forecasts from the third day to the first that is not measured.
        self.take_elsewhere("runs/weather")
        said = self.sh("lockstep predict models/weather --input new.nc --output forecast.h5", at=self.elsewhere).out
        self.assertIn("59 predictions", said)
        new = self.script("weather.py", "error", self.elsewhere / "new.nc", self.elsewhere / "forecast.h5")
        self.sh("lockstep export models/weather --output weather.onnx", at=self.elsewhere)

        # In kelvin. The net finds most of what a linear law misses, and no more than there is to be known.
        error = metrics["root_mean_squared_error"]
        self.assertLess(error, 0.44)
        self.assertLess(abs(new - error), 0.1 * error)
        found = self.script("weather.py", "compare", self.gone / "weather.nc", 402, needs=("h5py", "sklearn"))
        print(f"RMSE {error:.4f} K, of other days {new:.4f}; {found}")
        linear, best = found["linear regression"], found["the true law"]
        self.assertLess(linear, 0.7 * found["persistence"])
        self.assertLess(error, linear - 0.5 * (linear - best))
        self.assertGreater(error, 0.99 * best)


if __name__ == "__main__":
    main()
