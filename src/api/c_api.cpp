// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of lockstep/c_api.h, in the shared library liblockstep_c.so (src/CMakeLists.txt). Each
// catches all exceptions.
#include "lockstep/c_api.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/predictor.h"
#include "core/error.h"
#include "core/version.h"

struct lockstep_model {
  lockstep::Predictor predictor;
  std::vector<lockstep::InputValues> inputs = {};
  std::vector<lockstep::OutputValues> outputs = {};
};

namespace {

using lockstep::Error;
using lockstep::ErrorKind;

constexpr const char* kNoMemory = "out of memory";

/// Of this thread. `fixed` comes first: a text for which no memory is needed.
struct LastError {
  std::string text;
  const char* fixed = nullptr;
};
thread_local LastError last_error;

int keep(const char* text, int code) noexcept {
  try {
    last_error.text = text;
    last_error.fixed = nullptr;
  } catch (...) {
    last_error.fixed = kNoMemory;
  }
  return code;
}

/// Calls `body`. Returns 0, or keeps the error and returns its code.
template <typename Body>
int guarded(Body body) noexcept {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    return keep(error.what(), lockstep::exit_code(error.kind()));
  } catch (const std::exception& error) {
    return keep(error.what(), 1);
  } catch (...) {
    return keep("an exception of another kind", 1);
  }
}

template <typename Result, typename Body>
Result result_of(Result failed, Body body) noexcept {
  Result result = failed;
  return guarded([&] { result = body(); }) == 0 ? result : failed;
}

template <typename Pointer>
void require(Pointer pointer, const char* what) {
  if (pointer == nullptr)
    throw Error(ErrorKind::usage, fmt::format("{} is a null pointer", what), "lockstep_c", "Give one.");
}

template <typename List>
const auto& item_of(const List& list, std::int64_t number, const char* what) {
  if (number < 0 || number >= std::ssize(list))
    throw Error(ErrorKind::usage, fmt::format("there is no {} {}", what, number), "lockstep_c",
                fmt::format("There are {}, from 0.", list.size()));
  return list[static_cast<std::size_t>(number)];
}

const lockstep::ModelInput& input_of(const lockstep_model* model, int input) {
  require(model, "the model");
  return item_of(model->predictor.inputs(), input, "input");
}
const lockstep::ModelOutput& output_of(const lockstep_model* model, int output) {
  require(model, "the model");
  return item_of(model->predictor.outputs(), output, "output");
}

int shape_of(const lockstep::Shape& shape, std::int64_t* extents, int most) {
  const auto all = shape.extents();
  const int count = std::min(most, static_cast<int>(all.size()));
  if (count > 0) require(extents, "extents");
  std::copy_n(all.begin(), std::max(count, 0), extents);
  return static_cast<int>(all.size());
}

template <typename Real>
int predict(lockstep_model* model, const Real* const* inputs, Real* const* outputs,
            std::int64_t samples) noexcept {
  return guarded([&] {
    require(model, "the model");
    require(inputs, "inputs");
    require(outputs, "outputs");
    if (samples < 0)
      throw Error(ErrorKind::usage, fmt::format("{} samples are asked for", samples), "lockstep_predict",
                  "Give 0 or more.");
    model->inputs.clear();
    model->outputs.clear();
    for (const lockstep::ModelInput& input : model->predictor.inputs()) {
      const Real* const values = inputs[model->inputs.size()];
      if (samples > 0) require(values, input.name.c_str());
      model->inputs.emplace_back(values, static_cast<std::size_t>(samples * input.values()));
    }
    for (const lockstep::ModelOutput& output : model->predictor.outputs())
      model->outputs.emplace_back(outputs[model->outputs.size()],
                                  static_cast<std::size_t>(samples * output.values()));
    model->predictor.predict(model->inputs, model->outputs, samples);
  });
}

}  // namespace

extern "C" {

const char* lockstep_version(void) { return lockstep::kVersion.data(); }

const char* lockstep_last_error(void) {
  return last_error.fixed != nullptr ? last_error.fixed : last_error.text.c_str();
}

lockstep_model* lockstep_open(const char* path, const char* checkpoint) {
  return result_of(static_cast<lockstep_model*>(nullptr), [&] {
    require(path, "the path");
    return new lockstep_model{lockstep::Predictor::load(
        path, {.checkpoint = checkpoint != nullptr ? std::string(checkpoint) : std::string()})};
  });
}

lockstep_model* lockstep_clone(const lockstep_model* model) {
  return result_of(static_cast<lockstep_model*>(nullptr), [&] {
    require(model, "the model");
    return new lockstep_model{model->predictor.clone()};
  });
}

void lockstep_close(lockstep_model* model) { delete model; }

int lockstep_input_count(const lockstep_model* model) {
  return result_of(-1, [&] {
    require(model, "the model");
    return static_cast<int>(model->predictor.inputs().size());
  });
}

int lockstep_output_count(const lockstep_model* model) {
  return result_of(-1, [&] {
    require(model, "the model");
    return static_cast<int>(model->predictor.outputs().size());
  });
}

const char* lockstep_input_name(const lockstep_model* model, int input) {
  return result_of(static_cast<const char*>(nullptr), [&] { return input_of(model, input).name.c_str(); });
}

const char* lockstep_output_name(const lockstep_model* model, int output) {
  return result_of(static_cast<const char*>(nullptr), [&] { return output_of(model, output).name.c_str(); });
}

int lockstep_input_shape(const lockstep_model* model, int input, int64_t* extents, int most) {
  return result_of(-1, [&] { return shape_of(input_of(model, input).shape, extents, most); });
}

int lockstep_output_shape(const lockstep_model* model, int output, int64_t* extents, int most) {
  return result_of(-1, [&] { return shape_of(output_of(model, output).shape, extents, most); });
}

int64_t lockstep_input_size(const lockstep_model* model, int input) {
  return result_of(std::int64_t{-1}, [&] { return input_of(model, input).values(); });
}

int64_t lockstep_output_size(const lockstep_model* model, int output) {
  return result_of(std::int64_t{-1}, [&] { return output_of(model, output).values(); });
}

const char* lockstep_output_quantity(const lockstep_model* model, int output) {
  return result_of(static_cast<const char*>(nullptr),
                   [&] { return output_of(model, output).quantity.c_str(); });
}

const char* lockstep_output_label(const lockstep_model* model, int output, int64_t number) {
  return result_of(static_cast<const char*>(nullptr), [&] {
    const lockstep::ModelOutput& of = output_of(model, output);
    const std::vector<std::string>& names = of.class_names.empty() ? of.value_names : of.class_names;
    return names.empty() ? "" : item_of(names, number, "label").c_str();
  });
}

int lockstep_predict(lockstep_model* model, const float* const* inputs, float* const* outputs,
                     int64_t samples) {
  return predict(model, inputs, outputs, samples);
}

int lockstep_predict_double(lockstep_model* model, const double* const* inputs, double* const* outputs,
                            int64_t samples) {
  return predict(model, inputs, outputs, samples);
}

}  // extern "C"
