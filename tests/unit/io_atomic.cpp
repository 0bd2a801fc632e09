// Files appear whole or not at all, and what cannot be opened is said why.
#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_files.hpp"

#include "io/atomic_file.hpp"
#include "io/gzip.hpp"
#include "io/readers.hpp"

namespace td::io {

namespace {

/// Makes writes beyond `size` bytes of a file fail, as a full disk does.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t size) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limited = old_;
    limited.rlim_cur = size;
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  FileSizeLimit(const FileSizeLimit &) = delete;
  FileSizeLimit &operator=(const FileSizeLimit &) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  rlimit old_ = {};
  void (*handler_)(int);
};

TEST(io_atomic, a_full_disk_leaves_the_old_file) {
  const TempFolder folder;
  const std::vector<i64> dims{100, 100};
  std::vector<i64> index;
  std::vector<double> values;
  for (i64 k = 0; k < 10000; ++k) {
    index.push_back(k % 100);
    values.push_back(1.0 / static_cast<double>(k + 1));
  }
  const void *columns[] = {index.data(), index.data()};
  const EntriesView sparse{dims, 10000, IndexType::i64, columns, 0, ValueType::f64, values.data()};
  const DenseArrayView dense{dims, {}, ValueType::f64, values.data()};
  const Ktensor k(dims, 10, ValueType::f64);
  const auto fails = [&](const std::string &name, auto &&write) {
    SCOPED_TRACE(name);
    folder.put(name, "old");
    {
      const FileSizeLimit limit(1000);
      expect_error(Status::io, {name, "writing failed after", "File too large"}, [&] { write(folder.file(name)); });
    }
    EXPECT_EQ(folder.get(name), "old");
    EXPECT_EQ(folder.count(), 1u);
    std::filesystem::remove(folder.file(name));
  };
  for (const std::string name : {"x.tns", "x.tns.gz", "x.txt", "x.tdb"})
    fails(name, [&](const std::string &path) { write_tensor(sparse, path, {}); });
  for (const std::string name : {"x.txt", "x.tdb", "x.npy"})
    fails(name, [&](const std::string &path) { write_tensor(dense, path, {}); });
  for (const std::string name : {"k.txt", "k.tdb"})
    fails(name, [&](const std::string &path) { write_ktensor(k, path, {}); });
  fails("r", [&](const std::string &path) {
    Record record;
    record.factors = k.copy();
    write_record(record, path);
  });

  const FileSizeLimit limit(1000); // lambda.mat fits, mode1.mat does not
  for (const std::string format : {"splatt", "npy"})
    expect_error(Status::io, {"File too large"}, [&] {
      write_ktensor(k, folder.file("model"), options({{"file_format", format}}));
    });
  EXPECT_EQ(folder.count(), 0u);
}

TEST(io_atomic, targets_that_are_not_files) {
  const TempFolder folder;
  const Ktensor k(std::vector<i64>{2, 2}, 1, ValueType::f64);
  const auto write = [&](const std::string &path) { return [&k, path] { write_ktensor(k, path, {}); }; };
  expect_error(Status::io, {folder.path().string(), "is a directory"}, write(folder.path().string()));
  // Not a device of the machine: as root, a defect here would replace it.
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_error(Status::io, {"pipe", "not a regular file"}, write(folder.file("pipe")));
  expect_error(Status::io, {"missing/k", "No such file or directory"}, write(folder.file("missing/k")));
  folder.put("file", "");
  expect_error(Status::io, {"file/k", "Not a directory"}, write(folder.file("file/k")));
  expect_error(Status::io, {"is empty"}, write(""));
  EXPECT_TRUE(std::filesystem::is_fifo(folder.file("pipe")));
  EXPECT_EQ(folder.count(), 2u); // the pipe and the file

  // A file that is open, by its descriptor and by links to that.
  const int open = ::open(folder.put("open", "old").c_str(), O_WRONLY);
  const std::string descriptor = fmt::format("/proc/self/fd/{}", open);
  std::filesystem::create_symlink(descriptor, folder.file("link"));
  for (const std::string &path : {descriptor, fmt::format("/dev/fd/{}", open), folder.file("link")})
    expect_error(Status::io, {path, "a process has open"}, write(path));
  ::close(open);
  EXPECT_EQ(folder.get("open"), "old");
}

TEST(io_atomic, a_symbolic_link_stays_one) {
  const TempFolder folder;
  folder.put("real", "old");
  std::filesystem::create_symlink("real", folder.file("link"));
  AtomicFile file(folder.file("link"));
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(folder.get("real"), "new");
}

bool has_nameless_files(const TempFolder &folder) {
  const int fd = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  ::close(fd);
  return fd >= 0 && ::access("/proc/self/fd", X_OK) == 0;
}

TEST(io_atomic, without_commit_nothing_appears) {
  const TempFolder folder;
  {
    AtomicFile file(folder.file("x"));
    file.write(std::string_view("text"));
    if (has_nameless_files(folder)) {
      EXPECT_EQ(folder.count(), 0u); // nothing stays of a process that ends now
    }
    file.finish();
    EXPECT_FALSE(std::filesystem::exists(folder.file("x")));
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(io_atomic, the_umask_decides_who_may_read) {
  const TempFolder folder;
  const mode_t old = ::umask(0027);
  AtomicFile file(folder.file("x"));
  ::umask(old);
  file.commit();
  struct stat facts = {};
  ASSERT_EQ(::stat(folder.file("x").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0640u);
}

TEST(io_atomic, a_name_as_long_as_names_can_be) {
  const TempFolder folder;
  const std::string name(255, 'n');
  AtomicFile file(folder.file(name));
  file.write(std::string_view("text"));
  file.commit();
  EXPECT_EQ(folder.get(name), "text");
}

TEST(io_file, what_cannot_be_read) {
  const TempFolder folder;
  const auto read = [](const std::string &path) { return [path] { read_tensor(path, {}, 1); }; };
  expect_error(Status::io, {"missing", "No such file or directory"}, read(folder.file("missing")));
  expect_error(Status::io, {folder.path().string(), "is a directory"}, read(folder.path().string()));
  expect_error(Status::io, {"empty", "the file is empty"}, read(folder.put("empty", "")));
  expect_error(Status::io, {"missing"}, [&] { read_ktensor(folder.file("missing")); });
  expect_error(Status::io, {"missing"}, [&] { read_record(folder.file("missing")); });
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_error(Status::io, {"pipe", "not a regular file"}, read(folder.file("pipe")));
}

TEST(io_file, gzip) {
  const TempFolder folder;
  const std::string text = "1 1 2 0.5\n3 2 1 4\n";
  const std::string one = gzip_member(text);
  const auto entries = [&](const std::string &bytes) {
    const ReadTensor x = read_tensor(folder.put("x", bytes), {}, 2);
    EXPECT_EQ(x.source, "gzip of FROSTT text; 1-based, as FROSTT text is; dims are the largest indices");
    return std::get<Entries>(x.content).values.size();
  };
  EXPECT_EQ(entries(one), 2);
  EXPECT_EQ(entries(one + one + gzip_member("")), 4);
  EXPECT_EQ(entries(one + std::string(512, '\0')), 2);
  const auto refused = [&](std::string_view what, const std::string &bytes) {
    expect_error(Status::io, {what}, [&] { read_tensor(folder.put("x", bytes), {}, 2); });
  };
  for (std::size_t size = 2; size < one.size(); ++size)
    refused("end early", one.substr(0, size));
  refused("not gzip", one + "more");
  std::string damaged = one;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1); // in the member's CRC
  refused("corrupt gzip", damaged);
  refused("empty", gzip_member(""));
  const std::string large = std::string(3'000'000, '\n') + text; // compresses far more than it states in 64 kB
  EXPECT_EQ(entries(gzip_member(large) + one), 4);
}

} // namespace

} // namespace td::io
