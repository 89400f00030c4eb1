// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"

namespace lockstep {

namespace {

/// `ids` are those of the whole batch.
LayerCase embedding(std::string name, const std::string& options, Shape shape, std::size_t units,
                    std::vector<float> ids, float padding, std::vector<std::int64_t> microshards) {
  return {.name = std::move(name),
          .yaml = "embedding: {" + options + "}",
          .inputs = {shape},
          .reference =
              [units, padding](const Inputs& in, const Variables& v) {
                const Values& table = v.at("embeddings");
                Values y;
                for (double id : in[0])
                  for (std::size_t u = 0; u < units; ++u)
                    y.push_back(id == static_cast<double>(padding)
                                    ? 0.0
                                    : table[static_cast<std::size_t>(id) * units + u]);
                return y;
              },
          .microshards = std::move(microshards),
          .fixed_inputs = {{0, std::move(ids)}}};
}

}  // namespace

void add_embedding_cases(std::vector<LayerCase>& cases) {
  // Ids that occur again in a sample, in a microshard and in another one; rows without an id.
  cases.push_back(embedding("embedding", "rows: 7, units: 3", Shape{5}, 3,
                            {6, 0, 6, 6, 2, 0, 0, 0, 0, 0, 1, 6, 1, 2, 2}, -1, {2, 0, 1}));
  cases.push_back(embedding("embedding_padding", "rows: 7, units: 3, padding_index: 0", Shape{5}, 3,
                            {6, 0, 6, 6, 2, 0, 0, 0, 0, 0, 1, 6, 1, 2, 2}, 0, {2, 0, 1}));
  cases.push_back(embedding("embedding_one_row", "rows: 1, units: 1", Shape{1}, 1, {0, 0, 0}, -1, {1, 2}));
  cases.push_back(embedding("embedding_two_axes", "rows: 3, units: 17, padding_index: 2, initializer: ones",
                            Shape{3, 1}, 17, {0, 2, 1, 1, 1, 1}, 2, {1, 1}));
  // More than 64 positions of a row: several blocks of a sum.
  std::vector<float> many;
  for (int i = 0; i < 170; ++i) many.push_back(i % 17 == 3 ? 1.0F : 0.0F);
  cases.push_back(embedding("embedding_long_sums", "rows: 3, units: 2", Shape{85}, 2, many, -1, {2}));
}

}  // namespace lockstep
