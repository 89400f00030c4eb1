// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A set of samples, in memory or read from its files while it is used (sample_stream.h). A reader
// (reader_table.h) creates it. Every rank has access to all of it; the step plan selects the samples of a
// step. Features keep the file's type (u8 stays u8) and are converted to float32, scaled and normalised when
// they are gathered. All threads may read it concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/dtype.h"
#include "core/label_rule.h"
#include "core/named_shape.h"
#include "core/range.h"
#include "core/shape.h"
#include "data/bad_records.h"
#include "data/block_grid.h"
#include "data/channel_normalizer.h"
#include "data/normalize_by.h"
#include "data/sample_checks.h"
#include "data/sample_choice.h"
#include "data/sample_mixing.h"
#include "data/sample_store.h"
#include "data/sequence_form.h"
#include "data/transform_list.h"
#include "data/whitener.h"

namespace lockstep {

class ClassQuotas;
class Digest;
class GoodSamples;
class LengthBuckets;
class SampleStream;
struct TableInfo;
struct TextInfo;

/// The transformation of a feature value x of channel c: (x * scale + offset - mean[c]) / std[c], in float32,
/// in this order. `mean` and `std` have one value per channel (the last axis), one value for all channels, or
/// none.
struct FeatureTransform {
  float scale = 1.0F, offset = 0.0F;
  std::vector<float> mean, std;
  /// Not none: mean and std are those of the training set, and are set by Dataset::normalize().
  NormalizeBy normalize = NormalizeBy::none;
};

/// Data rows [first, last) of a file.
struct RowRange {
  std::int64_t first, last;
};

/// indices: int32 class numbers; rows: float32 targets.
enum class LabelKind { none, indices, rows };

/// The result of a reader.
struct DatasetParts : SampleOrigin {
  std::int64_t size = 0;
  Shape feature_shape;  ///< of one sample, channels last
  DType feature_dtype = DType::f32;
  Buffer features;  ///< size x feature_shape, dense if feature_step is 0
  /// The distance between the starts of samples, in values; 0: the size of a sample. If smaller, samples
  /// overlap.
  std::int64_t feature_step = 0;
  std::int64_t num_label_columns = 0;
  std::vector<std::int32_t> label_indices;  ///< size x num_label_columns, or empty
  std::vector<float> label_rows;            ///< size x num_label_columns, or empty
  /// The same for label_indices.
  std::int64_t label_step = 0;
  /// Reads the values if `features`, `label_indices` and `label_rows` are empty, or if they take too much
  /// memory. Samples do not overlap.
  std::shared_ptr<SampleStore> store;
  LabelKind label_kind = LabelKind::none;  ///< with a store
  std::vector<std::string> class_names;    ///< by class index or label column; empty: unknown
  std::shared_ptr<const TextInfo> text;    ///< text_info.h; null if the features are not text
  std::shared_ptr<const TableInfo> table;  ///< table_info.h; null if the files are no tables
  std::optional<SequenceForm> sequence;    ///< of sequences of different lengths
  /// Samples whose records are bad, ascending, of a reader that has read all of them: their values are 0.
  std::vector<BadRecord> bad;
  bool knows_bad = false;  ///< with a store: `bad` are all of them
  FeatureTransform transform;
};

/// Who uses a set, and how.
struct DatasetUse {
  int ranks_on_host = 1;
  int inputs = 1;  ///< sets that are joined to one, and share the memory
  /// Samples are used in an order without regard to blocks.
  bool random_order = false;
  /// Only read_stored() is called: nothing is kept in memory that can be read when it is asked for.
  bool read_once = false;
};

/// How a set is kept whose reader gives a store.
struct DatasetMemory {
  /// A larger set is not held in memory, but read while it is used, through places of so many bytes.
  std::int64_t bytes = std::int64_t{1} << 60;
  /// The same for a set that the ranks of a host share.
  std::int64_t shared_bytes = std::int64_t{1} << 60;
  double timeout_seconds = 300;  ///< of a wait for data
  int threads = 2;               ///< that read; 0: as many as it needs (SampleStreamOptions)
  /// Samples that are read together; 0: as their form suggests.
  std::int64_t block_samples = 0;
  /// Samples are used in an order without regard to blocks.
  bool random_order = false;
  /// As in DatasetUse.
  bool read_once = false;
};

class Dataset;

/// One input of samples with several.
struct JoinedInput {
  std::string name;
  std::unique_ptr<Dataset> data;
};

class Dataset {
 public:
  /// Checks that the parts are consistent, that float features and labels are finite, and that mean and std
  /// match the channels. Throws Error(data).
  explicit Dataset(DatasetParts parts);
  /// The samples of several sets, joined: sample i has the features of sample i of each, transformed, one
  /// after the other. Labels are those of the first set that has any. Throws Error(data) if the sets differ
  /// in their number of samples, or in labels that are in memory. With `targets`, labels are the features of
  /// these sets, transformed, one after the other, as float32; `inputs` then have none. An only input may be
  /// without a name.
  static std::unique_ptr<Dataset> join(std::vector<JoinedInput> inputs,
                                       std::vector<JoinedInput> targets = {});
  /// The samples of the first set, then those of the next, and so on. Not prepared sets of one reader each.
  /// Throws Error(data) if their samples differ in shape, type, labels or scaling.
  static std::unique_ptr<Dataset> chain(std::vector<std::unique_ptr<Dataset>> sets);
  ~Dataset();
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;

  /// The reader gave a store, and its options are kStoreOptions (reader_options.h), too.
  bool has_store() const { return parts_.store != nullptr; }
  /// Must be called before anything is gathered from a set with a store. Throws as the constructor, and what
  /// the store throws.
  void prepare(const DatasetMemory& memory);

  /// The values in memory may be kept in memory that processes share: after the bad records are left out, and
  /// before prepare(). Its bytes.
  std::int64_t shared_bytes() const;
  /// What distinguishes sets that may not share it: the form, and a digest of the values that are in memory,
  /// or of the first sample. Throws what the store throws.
  std::string shared_form() const;
  /// Writes part `part` of `parts` of the values to the memory. Throws what the store throws.
  void fill_shared(void* memory, int part, int parts, int threads);
  /// All parts are written: from now on the values are those in the memory, which lives as long as `owner`.
  /// prepare() then reads nothing.
  void take_shared(void* memory, std::shared_ptr<const void> owner);

  /// Bad records that the reader has found in values that are in memory.
  const std::vector<BadRecord>& bad_records() const { return parts_.bad; }
  /// The reader has read all records: there are no others.
  bool knows_bad_records() const { return !has_store() || parts_.knows_bad; }
  /// The set is that of the other samples from now on, which are counted anew. Before prepare(), and for sets
  /// that do not overlap. `bad`: of this set; `samples`: those, and others that are bad elsewhere, ascending.
  /// Throws Error(data) if none is left.
  void leave_out(std::vector<BadRecord> bad, const std::vector<std::int64_t>& samples);
  /// What was left out of it: bad records of its own, and how many samples.
  const std::vector<BadRecord>& left_out() const { return left_out_; }
  std::int64_t num_left_out() const { return num_left_out_; }

  /// What the training set's mean and standard deviation are computed of (normalization.h).
  NormalizeBy normalize_by() const { return parts_.transform.normalize; }
  /// Normalises the features from now on. Needed before they are gathered, unless normalize_by() is none.
  /// Throws Error(data) if the numbers are not those of such data.
  void normalize(const Normalization& values);
  /// Null before normalize().
  const Normalization* normalization() const { return normalization_.empty() ? nullptr : &normalization_; }
  /// How sequences of different lengths are padded; null: the samples are none.
  const SequenceForm* sequence() const { return parts_.sequence ? &*parts_.sequence : nullptr; }
  /// The steps of a sample before its padding. Needs sequence().
  std::int64_t sequence_length(std::int64_t sample) const;
  /// out = the features of one sample after scale and offset, not normalised and not transformed. The padding
  /// of a sequence is NaN.
  void gather_scaled(std::int64_t sample, float* out) const;

  /// How the features are whitened, after they are normalised and before they are transformed (whitening.h).
  /// Call it before set_transforms(). Throws Error(config) if they cannot be whitened so.
  void set_whitening(const WhitenOptions& options);
  const WhitenOptions& whiten_by() const { return whiten_by_; }
  /// False if the number of components is that of the whitening, which is not known yet: then call whiten()
  /// before anything that needs feature_shape().
  bool knows_shape() const { return knows_shape_; }
  /// Whitens the features from now on, with the numbers of the training set. Needed before they are gathered,
  /// if whiten_by() is used. Throws Error(data) if the numbers are not those of such data.
  void whiten(Whitening values);
  /// Null before whiten().
  const Whitening* whitening() const { return whitening_.empty() ? nullptr : &whitening_; }
  /// out = the features of one sample, normalised, not whitened and not transformed.
  void gather_unwhitened(std::int64_t sample, float* out) const;

  /// Transforms the features from now on. `training`: random transforms act, otherwise their fixed form.
  /// Throws Error(config) if a transform cannot take the samples.
  void set_transforms(TransformList transforms, bool training);
  /// Samples of batches are mixed with others from now on (DatasetBatchSource). Call it after
  /// set_transforms(). Throws Error(config) if they cannot be mixed.
  void set_mixing(const MixingOptions& options);
  /// Null: samples are not mixed.
  const SampleMixing* mixing() const { return mixing_ ? &*mixing_ : nullptr; }

  /// Of all samples, which the methods below count, chosen or not.
  std::int64_t size() const { return parts_.size; }
  /// The samples that plans of this set use; null: all.
  const std::shared_ptr<const SampleChoice>& choice() const { return choice_; }
  void choose(std::shared_ptr<const SampleChoice> choice) { choice_ = std::move(choice); }
  /// How often those of each class are in an epoch of training; null: as often as others.
  const std::shared_ptr<const ClassQuotas>& quotas() const { return quotas_; }
  void balance(std::shared_ptr<const ClassQuotas> quotas) { quotas_ = std::move(quotas); }
  /// Batches have sequences of similar lengths; null: of any.
  const std::shared_ptr<const LengthBuckets>& buckets() const { return buckets_; }
  void bucket(std::shared_ptr<const LengthBuckets> buckets) { buckets_ = std::move(buckets); }
  /// How many are chosen.
  std::int64_t num_chosen() const { return choice_ != nullptr ? choice_->size() : size(); }
  /// Their blocks; the indices of a choice are counted.
  BlockGrid chosen_blocks() const { return choice_ != nullptr ? choice_->blocks(blocks()) : blocks(); }
  /// The sets that were joined; empty: this one was not made by join().
  std::span<const JoinedInput> inputs() const { return inputs_; }
  /// Whether its labels are those of this input.
  bool labels_come_from(std::size_t input) const {
    return input == label_input_ && label_kind_ != LabelKind::none && targets_.empty();
  }
  /// The sets that labels come from; empty: the labels are those of a reader, and have no names.
  std::span<const JoinedInput> targets() const { return targets_; }
  /// Their names, and the shapes of their parts of a label row.
  std::vector<NamedShape> target_shapes() const;
  /// The inputs that a model gets: those of a joined set, otherwise one without a name.
  std::vector<NamedShape> input_shapes() const;
  /// Shape of one sample, transformed; of a joined set, the number of all values.
  const Shape& feature_shape() const { return transforms_.empty() ? whitened_shape() : transforms_.shape(); }
  /// Shape of one sample as it is stored.
  const Shape& stored_shape() const { return parts_.feature_shape; }
  /// The type in memory; gathered features are always float32.
  DType feature_dtype() const { return parts_.feature_dtype; }
  LabelKind label_kind() const { return label_kind_; }
  /// The number of labels per sample: usually 1 for class indices, 0 without labels.
  std::int64_t num_label_columns() const { return parts_.num_label_columns; }

  /// out[i] = the transformed features of samples[i]. `out` has samples.size() x feature_shape() values,
  /// `scratch` has scratch_values(). `key` is that of samples[0]; the places of the others follow. Does not
  /// allocate.
  void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       float* scratch) const {
    gather_features(samples, key, out, feature_shape().num_elements(), scratch);
  }
  /// The same with `step` values from the start of a sample in `out` to the start of the next one.
  void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       std::int64_t step, float* scratch) const;
  std::int64_t scratch_values() const;
  /// out[i] = the labels of samples[i]. `out` has samples.size() x num_label_columns() values. Needs
  /// LabelKind::indices.
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const;
  /// The same for float targets; class indices are converted. `key` and `scratch` are those of
  /// gather_features(): targets are transformed like inputs. Does not allocate.
  void gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                     float* scratch) const;
  /// The same for a place of no epoch. Allocates.
  void gather_labels(std::span<const std::int64_t> samples, float* out) const;

  /// Copies samples [first, first + count) as they are stored, without transforms, labels too. Checks values
  /// that are read just now. Throws Error(data).
  void read_stored(std::int64_t first, std::int64_t count, const SampleRoom& to) const;
  /// out = the features of one stored sample, scaled, normalised and with the fixed form of the transforms.
  /// `scratch` has scratch_values().
  void transform_stored(const void* sample, float* out, float* scratch) const;

  /// Bytes of all values, as they are kept.
  std::int64_t size_bytes() const;
  /// What is in memory of them; of a set that is read while it is used: what may be.
  std::int64_t memory_bytes() const;
  /// Samples that are read together. Does not depend on whether the set is in memory.
  BlockGrid blocks() const { return inputs_.empty() ? grid(block_samples_) : labelled().blocks(); }
  /// Reads the set while it is used; null if it is in memory, or joined.
  SampleStream* stream() const { return stream_.get(); }
  /// Those of all inputs that are not in memory.
  std::vector<SampleStream*> streams() const;

  /// The vocabulary; null if the data is not text.
  const TextInfo* text() const { return parts_.text.get(); }
  /// Which columns of a table the features and labels are; null if they are none.
  const TableInfo* table() const { return parts_.table.get(); }
  /// By class index or label column; empty if unknown.
  const std::vector<std::string>& class_names() const { return parts_.class_names; }
  /// Of a set without. Before prepare().
  void name_classes(std::vector<std::string> names);

  /// 16 hexadecimal digits over data, types, shapes, transform, vocabulary and class names, but not file
  /// names. Ranks compare it. Of a set with a store of more than 64 MiB, or more than 4096 decoded samples,
  /// over some blocks of the data, evenly spread.
  const std::string& fingerprint() const { return fingerprint_; }
  /// The origin of a sample: "digits.csv.gz, line 17".
  std::string where(std::int64_t sample) const;
  /// Throws Error(data) that names the first record with a label in columns [first, last) that the rule does
  /// not allow. A set that is not in memory checks each block when it is read.
  void check_labels(const LabelRule& rule, std::int64_t first, std::int64_t last) const;
  /// The same for all columns.
  void check_labels(const LabelRule& rule) const { check_labels(rule, 0, parts_.num_label_columns); }

 private:
  friend class BadRecordScan;
  Dataset(std::vector<JoinedInput> inputs, std::vector<JoinedInput> targets);
  /// The joined set with the labels; without labels the first one.
  const Dataset& labelled() const { return *inputs_[label_input_].data; }
  void check_joined() const;
  void require_same_form(const Dataset& other) const;
  void check_sizes() const;
  void set_labels();
  void check_targets(std::span<const std::int64_t> samples, const float* labels) const;
  void check_all_targets() const;
  template <typename T>
  void convert(const void* sample, float* out) const;
  void convert(const void* sample, float* out) const;
  /// The same, and padding becomes its value.
  void convert_padded(const void* sample, float* out) const;
  /// TransformList::apply(); its errors name the sample.
  void transform(std::int64_t sample, float* values, float* out, const SampleKey* key, float* scratch) const;
  /// Shape of one sample before the transforms.
  const Shape& whitened_shape() const { return whiten_by_.used() ? whitened_shape_ : parts_.feature_shape; }
  std::int64_t samples_whitened_together() const;
  std::int64_t whitening_scratch_values() const;
  void gather_whitened(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       std::int64_t step, float* scratch) const;
  /// Whitens `count` samples at `rows`, which are used up, transforms them and puts them into `out`.
  void finish_rows(float* rows, std::int64_t count, const SampleKey* key, float* out, std::int64_t step,
                   float* scratch) const;
  /// Of a set in memory.
  SampleValues values_at(std::int64_t sample) const;
  /// Calls use(values) for the values of each sample.
  template <typename Use>
  void for_each(std::span<const std::int64_t> samples, Use use) const;
  /// Blocks of so many samples; 0: as the form of the samples suggests.
  BlockGrid grid(std::int64_t block_samples) const;
  void make_checks();
  /// Of a set in memory.
  void keep_only(const GoodSamples& good);
  void keep_keys(const GoodSamples& good);
  void load(int threads);
  /// Places of the values in memory for all of them.
  SampleRoom places_in(void* memory) const;
  /// Where they are in `parts_`.
  void set_values();
  void forget_values();
  void read_slabs(const SampleRoom& to, int part, int parts, int threads) const;
  void check_values(int threads = 1);
  void prepare_normalisation();
  std::int64_t sample_bytes() const;
  std::int64_t num_labels() const;
  Digest& add_form(Digest& digest) const;
  std::vector<Range> blocks_of_fingerprint() const;
  void add_blocks(Digest& digest, int threads) const;
  std::string computed_fingerprint(int threads = 1) const;

  DatasetParts parts_;
  SampleRoom values_;                  ///< of a set in memory
  std::shared_ptr<const void> owner_;  ///< of the memory, if it is not that of `parts_`
  std::vector<JoinedInput> inputs_, targets_;
  std::size_t label_input_ = 0;
  /// What columns of targets may hold; they are checked when they are gathered.
  struct Demand {
    LabelRule rule;
    std::int64_t first, last;
  };
  mutable std::vector<Demand> demands_;
  LabelKind label_kind_ = LabelKind::none;
  std::int64_t elements_per_sample_ = 0;
  std::int64_t num_features_ = 0;  ///< values in memory
  ChannelNormalizer normalizer_;
  Normalization normalization_;
  WhitenOptions whiten_by_;
  Whitener whitener_;
  Whitening whitening_;
  Shape whitened_shape_;
  bool knows_shape_ = true;
  std::string fingerprint_;
  std::int64_t block_samples_ = 0;
  std::shared_ptr<const SampleOrigin> origin_;
  std::shared_ptr<SampleChecks> checks_;
  std::vector<BadRecord> left_out_;
  std::int64_t num_left_out_ = 0;
  std::unique_ptr<SampleStream> stream_;
  TransformList transforms_;
  bool training_ = false;
  bool read_once_ = false;  ///< neither in memory nor streamed
  std::shared_ptr<const SampleChoice> choice_;
  std::shared_ptr<const ClassQuotas> quotas_;
  std::shared_ptr<const LengthBuckets> buckets_;
  std::optional<SampleMixing> mixing_;
};

/// Throws Error(data) about `source` if rows x `bytes_per_row` do not fit into this host's memory.
void check_memory(const std::string& source, std::int64_t rows, double bytes_per_row);

/// The rows that a reader delivers out of `available` rows. Throws Error(data) if `rows` is not within them.
RowRange checked_rows(const std::optional<RowRange>& rows, std::int64_t available, const std::string& source);

}  // namespace lockstep
