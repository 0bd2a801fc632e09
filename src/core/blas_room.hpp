// Address space for what BLAS maps by itself.
#pragma once

namespace td {

/// Held while BLAS or LAPACK work. OpenBLAS takes a buffer for every call at a time and one for each of its own
/// threads, keeps them for later calls, and where there is no address space for one (RLIMIT_AS, vm.overcommit_memory =
/// 2) tries again for ever. Here the room is asked for first: throws Status::host_memory where there is none. What
/// others in the process take between the asking and the call, td cannot know.
class BlasRoom {
public:
  /// threaded: for routines that OpenBLAS shares among its threads, of which it has at most one a processor.
  explicit BlasRoom(bool threaded);
  BlasRoom(const BlasRoom &) = delete;
  BlasRoom &operator=(const BlasRoom &) = delete;
  ~BlasRoom();

private:
  int buffers_;
};

} // namespace td
