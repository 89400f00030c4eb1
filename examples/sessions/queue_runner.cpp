// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Queue runners: two threads read lines of files into a queue, and two others take them, compute, and fill a
// second queue, from which the main thread takes the results. The end of the input passes from queue to
// queue; an error in any thread ends all.
//
//   build/queue_runner FILE...
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/files.h>
#include <lockstep/services.h>

using namespace lockstep;

struct Row {
  std::string file;
  int columns;
};

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: queue_runner FILE...\n"), 2;
  constexpr int kReaders = 2, kParsers = 2;
  std::vector<std::vector<std::string>> files(kReaders);
  for (int i = 1; i < argc; ++i) files[static_cast<std::size_t>(i % kReaders)].emplace_back(argv[i]);
  std::vector<std::unique_ptr<TextLineReader>> readers;
  for (const auto& own : files)
    readers.push_back(own.empty() ? nullptr : std::make_unique<TextLineReader>(own));

  BoundedQueue<Record> lines("lines", 64);  // queues before the coordinator, which joins
  BoundedQueue<Row> rows("rows", 64);
  Coordinator coordinator;
  const QueueRunner reading(coordinator, lines, "reader", kReaders, [&](int thread) {
    auto& reader = readers[static_cast<std::size_t>(thread)];
    auto line = reader ? reader->next() : std::nullopt;
    if (!line) return false;  // the end of this thread's input; the last one closes the queue
    lines.push(std::move(*line), kNoLimit);
    return true;
  });
  const QueueRunner parsing(coordinator, rows, "parser", kParsers, [&](int) {
    const auto line = lines.pop(kNoLimit);  // EndOfInput when the queue is closed and empty
    const auto commas = std::count(line.value.begin(), line.value.end(), ',');
    rows.push({line.key, static_cast<int>(commas) + 1}, kNoLimit);
    return true;
  });
  long count = 0, columns = 0;
  try {
    for (;;) {
      const Row row = rows.pop(60);
      ++count;
      columns += row.columns;
    }
  } catch (const EndOfInput&) {  // no more rows, and no error
  } catch (const Cancelled&) {   // a thread failed: join() says why
  }
  try {
    coordinator.join();
  } catch (const Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), exit_code(error.kind());
  }
  std::printf("%ld rows, %ld columns\n", count, columns);
  return 0;
}
