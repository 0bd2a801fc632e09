// Tensors, ktensors and records in td's binary container.
#pragma once

#include "io/readers.hpp"

namespace td::io {

ReadTensor read_tensor_binary(const Source &source, const ReadChoices &choices);
void write_tensor_binary(const EntriesView &entries, const std::string &path, const Labels &labels);
void write_tensor_binary(const DenseArrayView &array, const std::string &path, const Labels &labels);

Ktensor read_ktensor_binary(const Source &source, const MemoryBudget &budget = {}); // also that of a record
void write_ktensor_binary(const Ktensor &k, const std::string &path, const Writers &writers = {});

Record read_record_binary(const Source &source, const MemoryBudget &budget = {}, const Readers &readers = {});

} // namespace td::io
