// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What recording costs the thread that records: event_bench [FOLDER]. Queues a million numbers, and prints
// per number the time of the caller, the time until all are in the file, what did not fit into the queue, and
// how often the caller allocates in a steady state. The same from two threads, and histograms of 1551
// buckets.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "io/event_writer.h"

namespace {

thread_local std::int64_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

constexpr int kNumbers = 1000000, kHistograms = 1000, kBuckets = 1551, kRounds = 5;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(const char* what, int count, double queued, double written, std::int64_t allocated,
            std::int64_t dropped) {
  fmt::print(
      "{:<26} {:>9.3f} M/s queued {:>9.3f} M/s written {:>8.1f} ns each {:>6.2f} allocations each {:>8} "
      "dropped\n",
      what, count / queued * 1e-6, count / written * 1e-6, queued / count * 1e9,
      static_cast<double>(allocated) / count, dropped);
}

void numbers(const std::string& folder, int threads) {
  const std::vector<std::string> tags = {"loss", "accuracy", "learning_rate", "gradient_norm/conv1/kernel"};
  EventWriter writer(folder);
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<std::int64_t> allocated = 0;
    const std::int64_t dropped = writer.dropped();
    const auto begin = std::chrono::steady_clock::now();
    const auto record = [&](int thread) {
      const std::int64_t before = allocations;
      for (int i = thread; i < kNumbers; i += threads)
        writer.scalar(tags[static_cast<std::size_t>(i) % tags.size()], i, i * 0.5);
      allocated += allocations - before;
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(record, thread);
    record(0);
    for (std::thread& other : others) other.join();
    const double queued = seconds_since(begin);
    writer.flush();
    report(fmt::format("numbers, {} thread(s)", threads).c_str(), kNumbers, queued, seconds_since(begin),
           allocated, writer.dropped() - dropped);
  }
}

void histograms(const std::string& folder) {
  EventWriter writer(folder);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t dropped = writer.dropped();
    std::vector<std::vector<SummaryValue>> values(kHistograms);
    for (auto& value : values) {
      HistogramData data;
      data.limits.resize(kBuckets);
      data.counts.resize(kBuckets);
      value.push_back({"weights/conv1/kernel", std::move(data)});
    }
    const std::int64_t before = allocations;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kHistograms; ++i) writer.add(i, std::move(values[static_cast<std::size_t>(i)]));
    const double queued = seconds_since(begin);
    const std::int64_t allocated = allocations - before;
    writer.flush();
    report("histograms", kHistograms, queued, seconds_since(begin), allocated, writer.dropped() - dropped);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(argc > 1 ? argv[1] : fs::temp_directory_path().string()) /
                          fmt::format("event_bench.{}", ::getpid());
  lockstep::numbers(folder.string(), 1);
  lockstep::numbers(folder.string(), 2);
  lockstep::histograms(folder.string());
  fs::remove_all(folder);
  return 0;
}
