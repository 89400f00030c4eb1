// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/saver.h"

#include <algorithm>
#include <utility>

#include "comm/agree.h"
#include "core/log.h"
#include "core/timer.h"
#include "session/distributed_state.h"

namespace lockstep {

Saver::Saver(bool is_chief, const std::string& run_dir, const SaverOptions& options)
    : is_chief_(is_chief), options_(options) {
  if (is_chief) store_ = std::make_shared<CheckpointStore>(run_dir, options.retention);
}

Saver::~Saver() = default;

void Saver::prepare(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
                    CheckpointCopyWays ways) {
  if (!is_chief_) return;
  const std::size_t bytes = checkpoint_file_bytes(header, tensors);
  store_->require_room(bytes);
  constexpr double kGuessedBytesPerSecond = 100e6;  // of a busy parallel file system
  longest_save_seconds_ = static_cast<double>(bytes) / kGuessedBytesPerSecond;
  if (!background()) return;
  writer_ = std::make_unique<CheckpointWriter>(store_, tensors, ways);
  writer_->set_before_write(before_write_);
}

bool Saver::busy() const { return writer_ && writer_->busy(); }

bool Saver::save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  if (busy()) return false;
  if (distributed_ != nullptr)
    distributed_->stream([&] { begin(header, tensors); });
  else if (is_chief_)
    begin(header, tensors);
  return true;
}

void Saver::begin(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  LOCKSTEP_CHECK(writer_ || !background(), "save() before prepare()");
  collect();
  if (writer_) {
    writer_->start(header, tensors);
    return;
  }
  const Timer timer;
  CheckpointOutcome outcome{.step = header.global_step};
  for (const CheckpointTensor& entry : tensors) outcome.bytes += entry.tensor.size_bytes();
  try {
    if (before_write_) before_write_();
    outcome.path = store_->save(header, tensors);
  } catch (const Error& error) {
    outcome.error = error;
  }
  outcome.blocked_seconds = outcome.write_seconds = timer.seconds();
  add(std::move(outcome));
}

void Saver::collect() {
  if (!writer_) return;
  for (CheckpointOutcome& outcome : writer_->poll()) add(std::move(outcome));
}

void Saver::add(CheckpointOutcome outcome) {
  if (!outcome.error) durable_step_ = outcome.step;
  blocked_seconds_ += outcome.blocked_seconds;
  const double seconds = std::max(outcome.blocked_seconds, outcome.write_seconds);
  longest_save_seconds_ = std::exchange(measured_, true) ? std::max(longest_save_seconds_, seconds) : seconds;
  finished_.push_back(std::move(outcome));
}

std::vector<CheckpointOutcome> Saver::poll() {
  collect();
  for (const CheckpointOutcome& outcome : finished_)
    if (outcome.error)
      log_warning("the checkpoint of step {} could not be written, training goes on: {}", outcome.step,
                  outcome.error->what());
  return std::exchange(finished_, {});
}

double Saver::wait(double limit_seconds) {
  if (!writer_) return 0;
  const Timer timer;
  if (writer_->wait(limit_seconds)) {
    const double waited = timer.seconds();
    blocked_seconds_ += waited;
    return waited;
  }
  throw Error(ErrorKind::checkpoint,
              fmt::format("the checkpoint is not on the disk after {} s of waiting", limit_seconds),
              store_->path_of(writer_->step()),
              "Check whether the disk responds; checkpoint.timeout_seconds is the limit.");
}

void Saver::wait_together(Communicator& world, double sync_seconds) {
  const Timer timer;
  enum : std::uint8_t { waiting, idle, too_long };
  for (;;) {
    std::uint8_t state = idle;
    if (writer_) {
      const double rest = options_.timeout_seconds - timer.seconds();
      state = writer_->wait(std::min(sync_seconds, std::max(rest, 0.0))) ? idle
              : rest > 0                                                 ? waiting
                                                                         : too_long;
    }
    world.broadcast(&state, sizeof state, 0, "waiting for the checkpoint");
    if (state == idle) return;
    if (state == waiting) continue;
    agree(
        world,
        [&] {
          if (is_chief_)
            throw Error(
                ErrorKind::checkpoint,
                fmt::format("the checkpoint is not on the disk after {:.1f} s of waiting", timer.seconds()),
                store_->path_of(writer_->step()),
                "Check whether the disk responds; checkpoint.timeout_seconds is the limit.");
        },
        "waiting for the checkpoint");
  }
}

void Saver::finish(Communicator& world, const CheckpointHeader& header,
                   std::span<const CheckpointTensor> tensors, double sync_seconds) {
  wait_together(world, sync_seconds);
  collect();
  if (distributed_ != nullptr) {
    bool due = durable_step_ != header.global_step;
    world.broadcast(&due, sizeof due, 0, "is the last checkpoint due");
    if (due) distributed_->stream([&] { begin(header, tensors); });
  } else {
    agree(
        world,
        [&] {
          if (is_chief_ && durable_step_ != header.global_step) begin(header, tensors);
        },
        "beginning the last checkpoint");
  }
  wait_together(world, sync_seconds);
  agree(
      world,
      [&] {
        collect();
        if (!is_chief_ || durable_step_ == header.global_step) return;
        const Error error = *finished_.back().error;
        finished_.pop_back();  // reported here, not as a warning
        throw Error(error);
      },
      "writing the last checkpoint");
}

void Saver::note_metric(std::int64_t step, double value) {
  if (is_chief_) store_->note_metric(step, value);
}

void Saver::forget_metrics() {
  if (is_chief_) store_->forget_metrics();
}

}  // namespace lockstep
