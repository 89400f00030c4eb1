// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A simulation in plain MPI that learns a part of itself while it runs. Heat flows through a plate whose
// conductivity depends on the temperature by an expensive sum. After 40 steps every second rank trains a net
// on the fluxes so far; from then on it gives most of the fluxes. After 80 steps it is trained again.
//
//   mpirun -n 4 simulation RUN_DIR
//
// The result has the same bits on any number of ranks. Ctrl-C ends the time loop, also during a training.
#include <lockstep/estimator.h>
#include <lockstep/predictor.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int kRows = 24, kColumns = 32, kSteps = 120, kTrainAt[] = {40, 80};
volatile std::sig_atomic_t interrupted = 0;

/// The expensive part: the heat that flows between two neighbouring cells.
float exact_flux(float left, float right) {
  double conductivity = 0;
  const double mean = 0.5 * (static_cast<double>(left) + static_cast<double>(right));
  for (int k = 0; k < 400; ++k) conductivity += std::exp(-mean * (k + 0.5) / 100) / 400;
  return static_cast<float>(conductivity * (static_cast<double>(left) - static_cast<double>(right)));
}

struct Samples {
  std::vector<float> temperatures, fluxes;  // two temperatures and one flux each
};

/// The rows of this rank, with one row of each neighbour above and below.
struct Plate {
  MPI_Comm ranks;
  int rank = 0, size = 1, first = 0, rows = 0;
  std::vector<float> cells, next;
  std::vector<Samples> samples;  // of each row, in the order of time

  explicit Plate(MPI_Comm world) {
    const int periodic = 1;
    MPI_Comm_size(world, &size);
    MPI_Cart_create(world, 1, &size, &periodic, 0, &ranks);
    MPI_Comm_rank(ranks, &rank);
    first = kRows * rank / size;
    rows = kRows * (rank + 1) / size - first;
    cells.resize(static_cast<std::size_t>((rows + 2) * kColumns));
    next = cells;
    samples.resize(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < kColumns; ++j)
        row(i)[j] = static_cast<float>(0.5 + 0.4 * std::sin(0.6 * (first + i)) * std::cos(0.4 * j));
  }
  float* row(int i) { return cells.data() + (i + 1) * kColumns; }  // -1 and `rows` are the neighbours'

  void exchange_borders() {
    int above = 0, below = 0;
    MPI_Cart_shift(ranks, 0, 1, &above, &below);
    MPI_Sendrecv(row(0), kColumns, MPI_FLOAT, above, 1, row(rows), kColumns, MPI_FLOAT, below, 1, ranks,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(row(rows - 1), kColumns, MPI_FLOAT, below, 2, row(-1), kColumns, MPI_FLOAT, above, 2, ranks,
                 MPI_STATUS_IGNORE);
  }

  /// What flows from the cells of row i to those of row `other`, `shift` columns to the right: from the net,
  /// or exactly. `kept` (may be null) gets exact ones as samples.
  void fluxes(int i, int other, int shift, lockstep::Predictor* net, Samples* kept, std::vector<float>& out) {
    std::vector<float> pairs;
    for (int j = 0; j < kColumns; ++j)
      pairs.insert(pairs.end(), {row(i)[j], row(other)[(j + shift) % kColumns]});
    if (net != nullptr && kept == nullptr) return net->predict(pairs, out, kColumns);
    for (int j = 0; j < kColumns; ++j) out[j] = exact_flux(pairs[2 * j], pairs[2 * j + 1]);
    if (kept == nullptr) return;
    kept->temperatures.insert(kept->temperatures.end(), pairs.begin(), pairs.end());
    kept->fluxes.insert(kept->fluxes.end(), out.begin(), out.end());
  }

  void step(bool keeps, lockstep::Predictor* net) {
    exchange_borders();
    std::vector<float> up(kColumns), down(kColumns), across(kColumns);
    fluxes(-1, 0, 0, net, nullptr, up);
    for (int i = 0; i < rows; ++i) {
      fluxes(i, i + 1, 0, net, nullptr, down);
      fluxes(i, i, 1, net, keeps && (first + i) % 4 == 0 ? &samples[i] : nullptr, across);
      for (int j = 0; j < kColumns; ++j)
        next[(i + 1) * kColumns + j] =
            row(i)[j] + 0.2F * (up[j] - down[j] + across[(j + kColumns - 1) % kColumns] - across[j]);
      std::swap(up, down);
    }
    std::swap(cells, next);
  }

  /// The samples of this rank and the next one, row after row; odd ranks give theirs away.
  Samples collect() {
    Samples all;
    for (const Samples& of_row : samples) {
      all.temperatures.insert(all.temperatures.end(), of_row.temperatures.begin(), of_row.temperatures.end());
      all.fluxes.insert(all.fluxes.end(), of_row.fluxes.begin(), of_row.fluxes.end());
    }
    for (std::vector<float>* part : {&all.temperatures, &all.fluxes}) {
      int count = static_cast<int>(part->size());
      if (rank % 2 == 1) {
        MPI_Send(part->data(), count, MPI_FLOAT, rank - 1, 3, ranks);
      } else if (rank + 1 < size) {
        MPI_Status status;
        MPI_Probe(rank + 1, 3, ranks, &status);
        MPI_Get_count(&status, MPI_FLOAT, &count);
        part->resize(part->size() + static_cast<std::size_t>(count));
        MPI_Recv(part->data() + part->size() - count, count, MPI_FLOAT, rank + 1, 3, ranks, &status);
      }
    }
    return all;
  }
};

lockstep::EstimatorSpec closure(const lockstep::Features& features, const lockstep::LabelColumns& labels,
                                lockstep::Mode, const lockstep::Params&) {
  using namespace lockstep;
  const LayerOutput hidden = layers::tanh(layers::dense(features, {.name = "hidden", .units = 16}));
  const LayerOutput flux = layers::dense(hidden, {.name = "flux", .units = 1});
  return {.loss = losses::mean_squared_error(labels, flux),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
}

/// The ranks of `part` train on the samples of all of them.
void train(MPI_Comm part, const std::string& run_dir, const Samples& samples) {
  using namespace lockstep;
  CommEnvironment ranks(part, {.log_level = LogLevel::warning});
  Estimator estimator(ranks, closure, {.model_dir = run_dir, .train = {.batch_size = 64}});
  const auto mine = [&] {
    return Input::local("fluxes", SampleArrays{.shape = Shape{2},
                                               .features = samples.temperatures,
                                               .targets = samples.fluxes,
                                               .target_columns = 1});
  };
  estimator.train(mine, {.steps = 300, .accept_new_samples = true});
}

/// The mean temperature, and a hash of all cells in the order of the rows.
void report(Plate& plate, int steps) {
  std::vector<float> all(kRows * kColumns);
  std::copy_n(plate.row(0), plate.rows * kColumns,
              all.data() + plate.first * kColumns);  // 0 elsewhere: exact sums
  MPI_Allreduce(MPI_IN_PLACE, all.data(), kRows * kColumns, MPI_FLOAT, MPI_SUM, plate.ranks);
  double sum = 0;
  std::uint64_t hash = 1469598103934665603U;
  for (const float cell : all) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &cell, sizeof bits);
    hash = (hash ^ bits) * 1099511628211U;
    sum += static_cast<double>(cell);
  }
  if (plate.rank == 0)
    std::printf("%d steps: mean temperature %.6f, digest %016llx\n", steps, sum / (kRows * kColumns),
                static_cast<unsigned long long>(hash));
}

int simulate(const std::string& run_dir) {
  Plate plate(MPI_COMM_WORLD);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(plate.ranks, plate.rank % 2 == 0 ? 0 : MPI_UNDEFINED, plate.rank, &part);
  std::optional<lockstep::Predictor> net;
  int step = 0, stop = 0;
  for (; step < kSteps && stop == 0; ++step) {
    plate.step(step % 10 == 0, net ? &*net : nullptr);
    if (std::ranges::find(kTrainAt, step + 1) != std::end(kTrainAt)) {
      const Samples samples = plate.collect();
      if (part != MPI_COMM_NULL) train(part, run_dir, samples);
      MPI_Barrier(plate.ranks);
      net = lockstep::Predictor::load(run_dir);
    }
    stop = interrupted;
    MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MAX, plate.ranks);
  }
  report(plate, step);
  if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
  MPI_Comm_free(&plate.ranks);
  return stop == 0 ? 0 : 130;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const int code = argc == 2 ? simulate(argv[1]) : 2;
  if (argc != 2) std::fprintf(stderr, "usage: simulation RUN_DIR\n");
  MPI_Finalize();
  return code;
}
