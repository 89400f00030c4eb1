// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/conversion_job.h"

#include <fmt/format.h>
#include <signal.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/yaml_node.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/scalar.h"
#include "data/data_files.h"
#include "data/reader_table.h"
#include "io/atomic_file.h"
#include "io/print_result.h"
#include "run/sections/config.h"
#include "run/setup/run_size.h"
#include "session/interruption.h"
#include "tools/convert/conversion_plan.h"
#include "tools/convert/conversion_records.h"
#include "tools/convert/convert_progress.h"
#include "tools/convert/image_conversion.h"
#include "tools/convert/shard_conversion.h"
#include "tools/convert/source_opening.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// What a rank does between two agreements, in bytes of samples.
constexpr std::int64_t kRoundBytes = std::int64_t{32} << 20;

/// What ranks tell each other after a round.
struct Round {
  std::int64_t written = 0, verified = 0, kept = 0;  ///< samples so far
  std::int64_t shards = 0;                           ///< finished so far
  std::int64_t more = 0;                             ///< 1: this rank is not done

  Round& operator+=(const Round& other) {
    written += other.written;
    verified += other.verified;
    kept += other.kept;
    shards += other.shards;
    more += other.more;
    return *this;
  }
};

Round sum_of(Communicator& world, const Round& mine) {
  std::vector<Round> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, all.data(), "convert");
  return std::accumulate(all.begin(), all.end(), Round(),
                         [](Round sum, const Round& one) { return sum += one; });
}

ConversionPlan plan_of(const ConvertArguments& arguments, SampleFormat format, const SampleSource& source) {
  ConversionPlan plan{.output = arguments.output,
                      .format = format,
                      .file = {.features = arguments.features,
                               .labels = arguments.labels,
                               .gzip = arguments.gzip,
                               .fletcher32 = arguments.fletcher32,
                               .delimiter = arguments.output.ends_with(".tsv") ? '\t' : ',',
                               .quality = arguments.quality.value_or(95)},
                      .shards = is_image(format) ? image_shards(source.size()) : arguments.shards,
                      .samples = source.size(),
                      .labels = source.data().label_kind() != LabelKind::none};
  if (plan.shards > plan.samples)
    throw Error(ErrorKind::config,
                fmt::format("{} samples cannot be divided into {} files", plan.samples, plan.shards),
                arguments.output, "Give fewer --shards.");
  if (is_image(format)) check_images(plan, source);
  plan.choose_sizes(source, arguments.chunk);
  return plan;
}

/// All that determines the bytes of the files.
std::string identity_of(const ConversionPlan& plan, const SampleSource& source, const Node& options) {
  constexpr std::int64_t kVersion = 1;
  Digest digest;
  digest.add(kVersion)
      .add(std::string_view(source.data().fingerprint()))
      .add(std::string_view(to_yaml(options)));
  digest.add(plan.samples)
      .add(plan.shards)
      .add(plan.chunk_samples)
      .add(static_cast<std::int64_t>(plan.format));
  digest.add(std::string_view(plan.file.features)).add(std::string_view(plan.file.labels));
  digest.add(std::int64_t{plan.file.gzip}).add(std::int64_t{plan.file.fletcher32});
  if (plan.format == SampleFormat::jpeg) digest.add(std::int64_t{plan.file.quality});
  digest.add(std::string_view(name_of(source.type()))).add(std::string_view(source.shape().to_string()));
  return digest.hex() + "\n";
}

/// The output may be none of the files that are read.
void refuse_inputs(const Config& config, const ConvertArguments& arguments, const std::string& file) {
  std::error_code code;
  if (!fs::exists(file, code)) return;
  std::vector<std::string> inputs{arguments.config};
  const Params& params = arguments.part == "train" ? config.data.train : *config.data.eval;
  for (const ParamSpec& option : find_reader(config.data.format).table)
    if (option.type == ParamType::strings && params.has(option.name)) {
      try {
        for (std::string& path : data_files(params, option.name, config.base_directory))
          inputs.push_back(std::move(path));
      } catch (const Error&) {
        // Not files: names of arrays.
      }
    }
  for (const std::string& input : inputs)
    if (fs::equivalent(input, file, code))
      throw Error(ErrorKind::config, fmt::format("is also an input of this command ({})", input), file,
                  "Choose another output: the input would be overwritten.");
}

/// Removes what commands on this host that were killed while they compared `files` have left.
void remove_leftovers(const fs::path& folder, const std::vector<std::string>& files) {
  std::set<std::string> prefixes;  // ".out.h5.tmp-HOST-"
  for (const std::string& file : files) {
    const std::string name = fs::path(temporary_name(file)).filename().string();
    prefixes.insert(name.substr(0, name.rfind('-') + 1));
  }
  std::vector<fs::path> leftovers;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (!is_temporary_name(name) || !prefixes.contains(name.substr(0, name.rfind('-') + 1))) continue;
    const auto process = parse_integer(name.substr(name.rfind('-') + 1));
    if (process && *process > 0 && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH)
      leftovers.push_back(at->path());
  }
  for (const fs::path& path : leftovers) fs::remove(path, code);
}

/// Before anything is written. On the chief.
void prepare_output(const Config& config, const ConvertArguments& arguments, const ConversionPlan& plan,
                    const ConversionRecords& records, const SampleSource& source) {
  const fs::path folder = fs::path(plan.output).parent_path();
  std::error_code code;
  if (!folder.empty() && !fs::is_directory(folder, code))
    throw Error(ErrorKind::config, fmt::format("there is no folder {}", folder.string()), plan.output,
                "Make the folder, or choose another output.");
  const auto found = records.look();
  if (found == ConversionRecords::Found::other && !arguments.force)
    throw Error(ErrorKind::config, "an interrupted conversion of other data, or with other options, is here",
                plan.output, "Continue it with the same command, or begin anew with --force.");
  const bool resumed = found == ConversionRecords::Found::same && !arguments.force;
  std::vector<std::string> files;
  if (is_image(plan.format)) {
    if (fs::exists(plan.output, code) && !fs::is_empty(plan.output, code))
      throw Error(ErrorKind::config, "exists already, and is not replaced", plan.output,
                  "Choose another folder, or remove it.");
  } else {
    for (std::int64_t shard = 0; shard < plan.shards; ++shard)
      for (std::string& file : plan.files(shard)) files.push_back(std::move(file));
  }
  if (!plan.names_classes() && !source.data().class_names().empty()) files.push_back(plan.classes_path());
  for (const std::string& file : files) {
    refuse_inputs(config, arguments, file);
    if (fs::is_directory(file, code))
      throw Error(ErrorKind::config, "is a folder", file, "Give the name of a file.");
    if (!resumed && !arguments.force && fs::exists(file, code))
      throw Error(ErrorKind::config, "exists already", file,
                  "Choose another output, or overwrite it with --force.");
  }
  remove_leftovers(folder.empty() ? "." : folder, files);
  const double bytes = static_cast<double>(source.sample_bytes()) * static_cast<double>(plan.samples);
  const std::size_t room = free_bytes(folder.empty() ? "." : folder.string());
  if (!resumed && plan.file.gzip == 0 && plan.format != SampleFormat::csv && !is_image(plan.format) &&
      bytes > static_cast<double>(room))
    throw Error(ErrorKind::output,
                fmt::format("the samples take {:.3g} GB, but the disk has {:.3g} GB left", bytes * 1e-9,
                            static_cast<double>(room) * 1e-9),
                plan.output, "Choose another folder, or make room.");
  if (plan.has_records() && !resumed) records.begin();
  if (resumed) log_info("continuing an interrupted conversion");
}

/// The shards of this rank, one after the other.
class OwnShards {
 public:
  OwnShards(const ConversionPlan& plan, const SampleSource& source, const ConversionRecords& records,
            int rank, int ranks, int threads, bool verify)
      : plan_(plan),
        source_(source),
        records_(records),
        next_(rank),
        step_(ranks),
        threads_(threads),
        verify_(verify) {}

  /// One round of work.
  void work() {
    if (current_ == nullptr && next_ < plan_.shards) begin();
    if (current_ == nullptr || !current_->advance(kRoundBytes)) return;
    write_classes();
    current_->publish();
    if (plan_.has_records()) records_.finished(next_, plan_.files(next_));
    done_.written += current_->written();
    done_.verified += current_->verified();
    current_.reset();
    ++done_.shards;
    next_ += step_;
  }

  Round round() const {
    Round round = done_;
    if (current_ != nullptr) {
      round.written += current_->written();
      round.verified += current_->verified();
    }
    round.more = next_ < plan_.shards ? 1 : 0;
    return round;
  }

 private:
  void begin() {
    if (plan_.has_records() && records_.is_finished(next_, plan_.files(next_)) &&
        (!is_image(plan_.format) || images_are_there(plan_, next_))) {
      done_.kept += plan_.samples_of(next_).size();
      ++done_.shards;
      next_ += step_;
      return;
    }
    if (is_image(plan_.format))
      current_ = std::make_unique<ImageConversion>(plan_, source_, next_, threads_, verify_);
    else
      current_ = std::make_unique<ShardConversion>(plan_, source_, next_, threads_, verify_);
  }

  /// Writes the names of the classes next to the first shard.
  void write_classes() const {
    const std::vector<std::string>& names = source_.data().class_names();
    if (next_ != 0 || names.empty() || plan_.names_classes()) return;
    std::string text;
    for (const std::string& name : names) text += name + "\n";
    write_file_atomically(plan_.classes_path(), text, ErrorKind::output);
  }

  const ConversionPlan& plan_;
  const SampleSource& source_;
  const ConversionRecords& records_;
  std::int64_t next_;
  const std::int64_t step_;
  const int threads_;
  const bool verify_;
  std::unique_ptr<Conversion> current_;
  Round done_;
};

void print_section(const ConversionPlan& plan, const SampleSource& source, const Node& options,
                   bool transformed) {
  std::vector<std::string> files;
  for (const std::string& file : plan.patterns())
    files.push_back(fs::absolute(file).lexically_normal().string());
  Node section = section_of(plan, source, files);
  if (!plan.names_classes() && plan.labels && !source.data().class_names().empty())
    section.entries.emplace_back("class_names",
                                 Node::scalar(fs::absolute(plan.classes_path()).lexically_normal().string()));
  add_value_options(section, options, !transformed);
  Node root;
  root.kind = Node::Kind::map;
  root.entries.emplace_back("data", std::move(section));
  print_as_is("\n" + to_yaml(root));
}

}  // namespace

int convert_data(CommEnvironment& environment, const Config& config, const ConvertArguments& arguments,
                 SampleFormat format) {
  Communicator& world = environment.world();
  const auto& hosts = environment.hosts();
  const int ranks_on_host =
      std::max<int>(1, static_cast<int>(std::count(hosts.begin(), hosts.end(),
                                                   hosts[static_cast<std::size_t>(world.rank())])));
  const int threads = config.general.threads.value_or(
      cores_per_rank(arguments.shards > 1 || is_image(format) ? ranks_on_host : 1));
  const Node options = options_of_set(config, arguments);
  std::unique_ptr<SampleSource> source;
  ConversionPlan plan;
  std::optional<ConversionRecords> records;
  shared([&] {
    source = open_source(world, config, arguments, format, ranks_on_host, threads);
    agree(
        world,
        [&] {
          plan = plan_of(arguments, format, *source);
          records.emplace(plan.records_folder(), identity_of(plan, *source, options));
          if (world.rank() == 0) prepare_output(config, arguments, plan, *records, *source);
        },
        "opening the data");
  });
  if (world.rank() == 0 && world.size() > 1 && plan.shards == 1 && !is_image(format))
    log_info("rank 0 alone writes one file; with --shards {} all ranks write", world.size());
  OwnShards own(plan, *source, *records, world.rank(), world.size(), threads, arguments.verify);
  ConvertProgress progress(plan.samples, source->sample_bytes(), arguments.verify,
                           arguments.quiet || world.rank() != 0);
  Round all;
  do {
    shared([&] {
      agree(
          world, [&] { own.work(); }, "converting");
    });
    all = sum_of(world, own.round());
    progress.update(all.written, all.verified, all.kept);
    const InterruptionRequest request = agreed(world, signal_request(), "convert");
    if (request.any() && all.more > 0) {
      progress.clear();
      if (world.rank() == 0)
        log_warning("stopped by {}: {} of {} files are finished. The same command {}",
                    interruption_text(request), all.shards, plan.shards,
                    plan.has_records() ? "continues" : "begins again");
      return exit_code(request.kind);
    }
  } while (all.more > 0);
  progress.clear();
  shared([&] {
    if (is_image(plan.format))
      agree(
          world, [&] { flush_images(plan); }, "flushing the images");
    agree(
        world,
        [&] {
          if (world.rank() != 0) return;
          if (is_image(plan.format)) publish_images(plan, *source);
          records->remove();
        },
        "removing the records");
  });
  if (world.rank() != 0) return 0;
  const double bytes = static_cast<double>(all.written) * static_cast<double>(source->sample_bytes());
  print_result("{} samples of {} {} written to {}{}: {:.1f} MB, {:.1f} MB/s{}\n", plan.samples,
               source->shape().to_string(), name_of(source->type()), plan.patterns()[0],
               all.kept > 0 ? fmt::format(" ({} of them were there)", all.kept) : "", bytes * 1e-6,
               bytes * 1e-6 / progress.seconds(), arguments.verify ? ", read back and compared" : "");
  print_section(plan, *source, options, arguments.transforms);
  return 0;
}

}  // namespace lockstep
