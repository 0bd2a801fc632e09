// Files that a command will write, tried before the work that they come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "handles.hpp"

namespace cli {

/// Throws if no file can have this name: its folder is not there or is not writable, or it stands for a device, a pipe
/// or what a process has open.
void refuse_unwritable(const std::string &path);

/// These say why a file could not be written under a name with these options, and nothing if it could: something of the
/// smallest size is written in a scratch folder beside it, in which what has the name now is imitated. An empty name
/// counts for nothing.
std::optional<Failure> try_tensor(const std::string &path, bool sparse, const td_options *options);
std::optional<Failure> try_ktensor(const std::string &path, std::int32_t order, const td_options *options);
std::optional<Failure> try_report(const std::string &path, std::int32_t order, const td_options *options);

/// Throws what one of them says.
void require(const std::optional<Failure> &none);

} // namespace cli
