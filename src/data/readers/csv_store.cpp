// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_store.h"

#include <algorithm>

#include "core/error.h"
#include "data/reader_options.h"
#include "data/readers/csv_row_parser.h"

namespace lockstep {

namespace {

/// Rows are read in pieces of about this number of bytes.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;

/// The lines of a piece of a file.
class PieceLines {
 public:
  explicit PieceLines(std::string_view text)
      : rest_(text), ends_(has_return(text) ? LineEnds::any : LineEnds::newline) {}
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const LineCut cut = cut_line(rest_, ends_);
    line = rest_.substr(0, cut.length);
    rest_.remove_prefix(cut.next);
    return true;
  }

 private:
  std::string_view rest_;
  LineEnds ends_;
};

class CsvStore final : public SampleStore {
 public:
  CsvStore(CsvForm form, std::vector<CsvIndex::File> files, std::shared_ptr<const CsvLines> lines,
           std::int64_t samples, bool plain)
      : form_(std::move(form)),
        files_(std::move(files)),
        lines_(std::move(lines)),
        samples_(samples),
        plain_(plain) {
    if (!plain_) return;
    for (const CsvIndex::File& file : files_) sources_.push_back(file_bytes(file.rows.path()));
  }

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    LOCKSTEP_CHECK(plain_, "values of gzip files are in memory");
    const auto after = std::ranges::upper_bound(files_, first, {}, &CsvIndex::File::first_sample);
    auto file = static_cast<std::size_t>(after - files_.begin()) - 1;
    for (std::int64_t done = 0; done < count; ++file) {
      const std::int64_t end = file + 1 < files_.size() ? files_[file + 1].first_sample : samples_;
      const std::int64_t here = std::min(count - done, end - first - done);
      read_rows(file, first + done, here, room_at(to, done));
      done += here;
    }
  }
  bool has_random_access() const override { return plain_; }

 private:
  SampleRoom room_at(const SampleRoom& to, std::int64_t sample) const {
    SampleRoom room{.features = static_cast<float*>(to.features) + sample * form_.plan.num_features};
    if (to.label_indices != nullptr) room.label_indices = to.label_indices + sample * form_.plan.num_labels;
    if (to.label_rows != nullptr) room.label_rows = to.label_rows + sample * form_.plan.num_labels;
    return room;
  }

  /// Rows of one file, in pieces that begin where the index says.
  void read_rows(std::size_t index, std::int64_t sample, std::int64_t count, const SampleRoom& to) const {
    const CsvIndex::File& file = files_[index];
    const auto begin_of = [&](std::int64_t step) {
      return step < std::ssize(file.begins) ? file.begins[static_cast<std::size_t>(step)] : file.end;
    };
    std::string text;
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t row = sample + done - file.first_sample;
      const std::int64_t first_step = row / CsvIndex::kStep;
      const std::int64_t all_steps = (row + count - done - 1) / CsvIndex::kStep + 1;
      std::int64_t last_step = first_step + 1;
      while (last_step < all_steps && begin_of(last_step + 1) - begin_of(first_step) <= kPieceBytes)
        ++last_step;
      text.resize(static_cast<std::size_t>(begin_of(last_step) - begin_of(first_step)));
      sources_[index]->read(begin_of(first_step), text.data(), text.size());
      const std::int64_t here = std::min(count - done, last_step * CsvIndex::kStep - row);
      parse(file, text, row - first_step * CsvIndex::kStep, sample + done, here, room_at(to, done));
      done += here;
    }
  }

  /// The rows of a piece after the first `passed`.
  void parse(const CsvIndex::File& file, std::string_view text, std::int64_t passed, std::int64_t sample,
             std::int64_t count, const SampleRoom& to) const {
    CsvRows rows = file.rows;
    CsvRowParser parser(rows, form_.plan, form_.missing);
    PieceLines lines(text);
    std::string joined;
    std::vector<float> features;
    std::vector<double> labels;
    for (std::int64_t i = -passed; i < count; ++i) {
      rows.set_line_number(lines_->place_of(sample + i).line);
      std::string_view line;
      do {
        if (!lines.next(line))
          rows.fail(rows.line_number(), "is not there any more: the file was changed while it was read",
                    "Start when the file is complete.");
      } while (rows.is_comment(line) || rows.is_blank(line));
      const CsvRow row = rows.row_of(
          line, [&](std::string_view& more) { return lines.next(more); }, joined);
      if (i < 0) continue;
      features.clear();
      labels.clear();
      parser.parse(row, features, labels);
      const SampleRoom room = room_at(to, i);
      std::ranges::copy(features, static_cast<float*>(room.features));
      for (std::size_t label = 0; label < labels.size(); ++label) {
        if (!form_.whole_labels)
          room.label_rows[label] = static_cast<float>(labels[label]);
        else if (is_class_index(labels[label]))
          room.label_indices[label] = static_cast<std::int32_t>(labels[label]);
        else
          rows.fail(rows.line_number(), "its label is no whole number any more: the file was changed",
                    "Start when the file is complete.");
      }
    }
  }

  const CsvForm form_;
  const std::vector<CsvIndex::File> files_;
  const std::shared_ptr<const CsvLines> lines_;
  const std::int64_t samples_;
  const bool plain_;
  std::vector<std::shared_ptr<ByteSource>> sources_;
};

}  // namespace

void CsvLines::begin(const CsvFile& file, std::int64_t sample) {
  paths_.push_back(file.path());
  runs_.push_back({paths_.size() - 1, sample, file.line_number()});
}

void CsvLines::add(const CsvFile& file, std::int64_t sample) {
  const Run& last = runs_.back();
  if (last.line + sample - last.sample == file.line_number()) return;
  has_gaps_ = true;
  runs_.push_back({last.file, sample, file.line_number()});
}

CsvLines::Place CsvLines::place_of(std::int64_t sample) const {
  const Run& run = *std::prev(std::ranges::upper_bound(runs_, sample, {}, &Run::sample));
  return {&paths_[run.file], run.line + sample - run.sample};
}

void CsvLines::write(IndexWriter& writer) const {
  writer.number(std::ssize(paths_));
  for (const std::string& path : paths_) writer.text(path);
  writer.number(has_gaps_ ? 1 : 0);
  std::vector<std::int64_t> files, samples, lines;
  for (const Run& run : runs_) {
    files.push_back(static_cast<std::int64_t>(run.file));
    samples.push_back(run.sample);
    lines.push_back(run.line);
  }
  for (const auto& numbers : {files, samples, lines}) writer.numbers(numbers);
}

void CsvLines::read(IndexReader& reader) {
  for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left)
    paths_.push_back(reader.text());
  has_gaps_ = reader.number() != 0;
  const std::vector<std::int64_t> files = reader.numbers(), samples = reader.numbers(),
                                  lines = reader.numbers();
  for (std::size_t i = 0; i < files.size() && reader.good(); ++i)
    runs_.push_back({static_cast<std::size_t>(files[i]), samples[i], lines[i]});
}

void CsvIndex::begin(const CsvFile& file, std::int64_t sample) {
  add(static_cast<const CsvRows&>(file), {file.path(), file.line_number(), sample, {}, 0});
}

void CsvIndex::add(CsvRows rows, CsvRowPlaces places) {
  files_.push_back({std::move(places), std::move(rows)});
}

void CsvIndex::add(const CsvFile& file, std::int64_t sample) {
  File& last = files_.back();
  if ((sample - last.first_sample) % kStep == 0) last.begins.push_back(file.row_begin());
  last.end = file.row_end();
}

std::shared_ptr<SampleStore> make_csv_store(CsvForm form, CsvIndex index,
                                            std::shared_ptr<const CsvLines> lines, std::int64_t samples,
                                            bool plain) {
  return std::make_shared<CsvStore>(std::move(form), std::move(index).files(), std::move(lines), samples,
                                    plain);
}

}  // namespace lockstep
