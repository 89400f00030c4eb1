// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A trained model inside a program, such as a simulation that predicts in its time loop:
//
//   Predictor net = Predictor::load("runs/closure");
//   std::vector<float> state(net.inputs()[0].values()), flux(net.outputs()[0].values());
//   net.predict(state, flux);                    // one sample
//   net.predict(states, fluxes, 1000);           // 1000 samples, one after the other
//
// Numbers are in the units of the data: what section `data` makes of them (scale, normalize, whiten, fixed
// transforms) and the way back of normalised targets belong to the model. A sample has the bits that
// `lockstep predict` gives it on a CPU of this kind (docs/predictor.md says where they could differ), alone
// as in a batch.
//
// load() reads the checkpoint; the training data are not needed. Afterwards everything is local: no
// communication, no file, no thread of its own, no signal. After the first call of predict() on a thread,
// calls allocate no memory of Lockstep's own (oneDNN makes small allocations in each product).
//
// Threads: one object is for one thread at a time. clone() gives another thread an object of its own, which
// shares the weights. Objects may be used, cloned and destroyed at the same time. It computes on the CPU.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/shape.h"

namespace lockstep {

class Communicator;  // lockstep/session.h
struct StoredModel;

struct PredictorOptions {
  std::string checkpoint =
      {};                ///< of a run: "last", "best" or a step ("2500"); empty: the last (newest intact) one
  bool averages = true;  ///< a variable has the values of its moving average, where there is one
  /// The most samples that are computed together; a call may have any number. 0: 64, or fewer for a large
  /// net. The bits do not depend on it.
  std::int64_t batch_size = 0;
};

struct ModelInput {
  std::string name;  ///< of data.inputs; "features": the only input
  Shape shape;       ///< of one sample as it is given, channels last
  /// The name of each value, where the samples are rows of a table; else empty.
  std::vector<std::string> value_names = {};
  std::int64_t values() const { return shape.num_elements(); }
};

struct ModelOutput {
  std::string name;  ///< of model.heads; "outputs": the only head
  Shape shape;       ///< of one sample
  std::string
      quantity;  ///< "probability" (of classes), "logit" (of labels: above 0 is likelier than not), "value"
  std::vector<std::string> class_names = {};  ///< by index, where they are known
  std::vector<std::string> value_names = {};  ///< of the targets, where they have names
  std::string as_trained =
      {};  ///< why values are in the units of training and not in those of the data; empty: they are
  std::int64_t values() const { return shape.num_elements(); }
};

namespace detail {
template <typename Range>
using ElementOf = std::remove_cv_t<std::ranges::range_value_t<Range>>;
template <typename Range>
concept RealRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    (std::same_as<ElementOf<Range>, float> || std::same_as<ElementOf<Range>, double>);
template <typename Range>
concept WritableRealRange =
    RealRange<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;
}  // namespace detail

/// The values of an input: float or double, in a vector, an array or a span. Double is rounded to float32.
class InputValues {
 public:
  template <detail::RealRange Range>
  InputValues(const Range& values)
      : address_(std::ranges::data(values)),
        size_(std::ranges::size(values)),
        is_double_(std::same_as<detail::ElementOf<Range>, double>) {}
  InputValues(const float* values, std::size_t size) : address_(values), size_(size) {}
  InputValues(const double* values, std::size_t size) : address_(values), size_(size), is_double_(true) {}

  std::size_t size() const { return size_; }
  const float* floats() const { return is_double_ ? nullptr : static_cast<const float*>(address_); }
  const double* doubles() const { return is_double_ ? static_cast<const double*>(address_) : nullptr; }

 private:
  const void* address_;
  std::size_t size_;
  bool is_double_ = false;
};

/// Where the values of an output go: float or double (the same numbers).
class OutputValues {
 public:
  template <detail::WritableRealRange Range>
  OutputValues(Range&& values)
      : address_(std::ranges::data(values)),
        size_(std::ranges::size(values)),
        is_double_(std::same_as<detail::ElementOf<Range>, double>) {}
  OutputValues(float* values, std::size_t size) : address_(values), size_(size) {}
  OutputValues(double* values, std::size_t size) : address_(values), size_(size), is_double_(true) {}

  /// False for a null pointer: the output is not wanted.
  bool is_wanted() const { return address_ != nullptr; }
  std::size_t size() const { return size_; }
  float* floats() const { return is_double_ ? nullptr : static_cast<float*>(address_); }
  double* doubles() const { return is_double_ ? static_cast<double*>(address_) : nullptr; }

 private:
  void* address_;
  std::size_t size_;
  bool is_double_ = false;
};

struct NamedInput {
  std::string_view name;
  InputValues values;
};
struct NamedOutput {
  std::string_view name;
  OutputValues values;
};

class Predictor {
 public:
  /// `path`: a run directory, the file of a checkpoint, or an exported folder. One process; threads that load
  /// at the same time wait for each other. Throws Error(checkpoint) if there is no checkpoint, or it is
  /// damaged or does not describe its samples, and Error(config) for a layer that this program does not have.
  static Predictor load(const std::string& path, const PredictorOptions& options = {});
  /// The same for all ranks of a group: rank 0 alone reads the checkpoint. All ranks. Throws the same error
  /// on all of them.
  static Predictor load(Communicator& ranks, const std::string& path, const PredictorOptions& options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// The same model for another thread, with the same weights in memory: what it takes is the memory for
  /// activations.
  Predictor clone() const;

  const std::vector<ModelInput>& inputs() const;
  const std::vector<ModelOutput>& outputs() const;
  /// The input or output of a name. Throws Error(usage) that says which there are.
  const ModelInput& input(std::string_view name) const;
  const ModelOutput& output(std::string_view name) const;
  /// The file of the checkpoint, and its step.
  const std::string& checkpoint() const;
  std::int64_t global_step() const;

  /// Predicts `samples` samples of a model with one input and one output: `input` has samples x
  /// inputs()[0].values() values, sample by sample; `output` samples x outputs()[0].values(). 0 samples do
  /// nothing. Values are not looked at: what is computed from NaN is NaN. Throws Error(usage) for another
  /// number of values, and Error(data) for values that a transform cannot take; outputs are undefined then.
  void predict(InputValues input, OutputValues output, std::int64_t samples = 1);
  /// The same with all inputs and outputs, in the order of inputs() and outputs().
  void predict(std::span<const InputValues> inputs, std::span<const OutputValues> outputs,
               std::int64_t samples = 1);
  /// The same by names: all inputs, and those outputs that are wanted.
  ///   net.predict({{"numbers", x}, {"picture", pixels}}, {{"price", price}});
  void predict(std::initializer_list<NamedInput> inputs, std::initializer_list<NamedOutput> outputs,
               std::int64_t samples = 1);

 private:
  struct Net;
  struct Workspace;
  explicit Predictor(std::shared_ptr<Net> net);
  static Predictor of(StoredModel stored, const PredictorOptions& options);
  void run(std::int64_t samples);

  std::shared_ptr<Net> net_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace lockstep
