// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predicts with a trained model in two threads (docs/predictor.md):
//
//   predict RUN < numbers        one sample per line; prints its outputs
#include <lockstep/base.h>
#include <lockstep/predictor.h>

#include <cstdio>
#include <iostream>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "predict RUN < numbers\n");
    return 2;
  }
  try {
    lockstep::Predictor net = lockstep::Predictor::load(argv[1]);
    const std::int64_t in = net.inputs().at(0).values(), out = net.outputs().at(0).values();
    std::vector<double> samples;
    for (double value = 0; std::cin >> value;) samples.push_back(value);
    const auto count = static_cast<std::int64_t>(samples.size()) / in;
    std::vector<double> results(static_cast<std::size_t>(count * out));

    // Each thread has a predictor of its own, and half of the samples.
    const auto work = [&](lockstep::Predictor& own, std::int64_t first, std::int64_t last) {
      own.predict(lockstep::InputValues(&samples[static_cast<std::size_t>(first * in)],
                                        static_cast<std::size_t>((last - first) * in)),
                  lockstep::OutputValues(&results[static_cast<std::size_t>(first * out)],
                                         static_cast<std::size_t>((last - first) * out)),
                  last - first);
    };
    std::thread other([&, own = net.clone()]() mutable { work(own, 0, count / 2); });
    work(net, count / 2, count);
    other.join();

    for (std::size_t i = 0; i < results.size(); ++i)
      std::printf("%.9g%c", results[i], (i + 1) % static_cast<std::size_t>(out) == 0 ? '\n' : ' ');
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lockstep::exit_code(error.kind());
  }
  return 0;
}
