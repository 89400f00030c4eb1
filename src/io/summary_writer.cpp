// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/summary_writer.h"

#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "io/histogram.h"

namespace lockstep {

namespace {

std::shared_ptr<EventWriter> make_writer(const std::string& folder, const SummaryWriter::Options& options) {
  return std::make_shared<EventWriter>(
      folder, EventWriter::Options{options.queue_bytes, options.flush_seconds, options.suffix});
}

}  // namespace

SummaryWriter::SummaryWriter(std::string folder, Options options)
    : folder_(std::move(folder)), options_(std::move(options)), writer_(make_writer(folder_, options_)) {}

SummaryWriter::~SummaryWriter() = default;

/// The writer, or null after close().
std::shared_ptr<EventWriter> SummaryWriter::open_writer() {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) return writer_;
  if (!std::exchange(warned_, true))
    log_warning("{}: this summary writer is closed; what is added is not written", folder_);
  return nullptr;
}

void SummaryWriter::add_summary(std::int64_t step, std::vector<SummaryValue> values) {
  if (const auto writer = open_writer()) writer->add(step, std::move(values));
}

void SummaryWriter::add_scalar(std::string_view tag, std::int64_t step, double value) {
  if (const auto writer = open_writer()) writer->scalar(tag, step, value);
}

void SummaryWriter::add_histogram(std::string_view tag, std::int64_t step, HistogramData histogram) {
  add_summary(step, {{std::string(tag), std::move(histogram)}});
}

void SummaryWriter::add_histogram(std::string_view tag, std::int64_t step, std::span<const float> numbers) {
  add_summary(step, histogram_values(std::string(tag), numbers));
}

void SummaryWriter::add_histogram(std::string_view tag, std::int64_t step, std::span<const double> numbers) {
  add_summary(step, histogram_values(std::string(tag), numbers));
}

void SummaryWriter::add_text(std::string_view tag, std::int64_t step, std::string text) {
  add_summary(step, {text_value(tag, std::move(text))});
}

void SummaryWriter::add_pr_curve(std::string_view name, std::int64_t step, const PrCurveCounts& counts) {
  add_summary(step, {pr_curve_value(name, counts)});
}

void SummaryWriter::add_hparams(const HParamsSession& session) { add_summary(0, hparams_start(session)); }

void SummaryWriter::add_graph(std::span<const GraphNode> nodes) {
  if (const auto writer = open_writer()) writer->graph(graph_def(nodes));
}

void SummaryWriter::add_session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path,
                                    std::string_view message) {
  if (const auto writer = open_writer()) writer->session_log(status, step, checkpoint_path, message);
}

void SummaryWriter::add_run_metadata(std::string_view tag, std::int64_t step, std::string serialised) {
  {
    const std::lock_guard lock(mutex_);
    LOCKSTEP_REQUIRE(metadata_tags_.insert(std::string(tag)).second, ErrorKind::config,
                     "run metadata '{}' is there already: each step needs a tag of its own", tag);
  }
  if (const auto writer = open_writer()) writer->run_metadata(tag, step, std::move(serialised));
}

void SummaryWriter::flush() {
  if (const auto writer = open_writer()) writer->flush();
}

void SummaryWriter::sync() {
  if (const auto writer = open_writer()) writer->sync();
}

void SummaryWriter::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  writer_->close();
}

void SummaryWriter::reopen() {
  const std::lock_guard lock(mutex_);
  writer_->close();
  writer_ = make_writer(folder_, options_);
  is_closed_ = false;
  metadata_tags_.clear();
}

std::string SummaryWriter::path() const {
  const std::lock_guard lock(mutex_);
  return writer_->path();
}

std::string SummaryWriter::error() const {
  const std::lock_guard lock(mutex_);
  return writer_->error();
}

std::int64_t SummaryWriter::dropped() const {
  const std::lock_guard lock(mutex_);
  return writer_->dropped();
}

}  // namespace lockstep
