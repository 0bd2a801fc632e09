// What a command prints and writes: texts that a terminal can be given, and files that it does not read itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cli {

/// The name of a file as a terminal may be given it.
std::string shown(const std::string &path);

/// " (did you mean 'word'?)", or nothing where none of the words is near enough.
std::string did_you_mean(const std::string &written, const std::vector<std::string> &words);

/// A JSON document on standard output. Bytes that are not UTF-8, as names of files may have, become U+FFFD.
void print_json(const nlohmann::ordered_json &document);

/// The file itself; a folder, and those of its files that a ktensor consists of.
std::vector<std::filesystem::path> files_of(const std::string &path);

/// Throws if one of the files that a command writes is one that it reads, or is written twice, also through links, and
/// within a folder of factors. Empty names count for nothing.
void refuse_overwriting(const std::vector<std::string> &read, const std::vector<std::string> &written);

} // namespace cli
