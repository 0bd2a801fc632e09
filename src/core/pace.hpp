// Whether a team's regions are worked on by all of its threads or by the calling one alone.
#pragma once

#include "core/clock.hpp"

namespace td {

/// Where other programs want the processors, too, a thread that is not let run holds up all that wait for its part, and
/// one thread alone gets further than several. Which is so, the regions show: from time to time they are timed for a
/// while, with all threads and where that is slow alone, by the processor time that their parts took in a second. How
/// regions are divided into parts, and so their results, does not depend on it.
class Pace {
public:
  struct Way {
    bool alone = false; // the calling thread is to take all parts
    bool timed = false; // and is told what they took
  };

  /// How to work on the next region.
  Way next(Clock::time_point now) noexcept;

  /// What a region that was timed took: seconds of processors in its parts, and seconds until all were done.
  void took(double processors, double wall, Clock::time_point now) noexcept;

private:
  enum class Phase { resting, settling, together, alone };

  void begin(Phase phase) noexcept;
  void rest(bool alone, Clock::time_point now) noexcept;

  Phase phase_ = Phase::settling;
  bool alone_ = false;               // what was found last
  double processors_ = 0, wall_ = 0; // since the phase began, or the last look of settling
  int looks_ = 0;                    // of settling
  double rate_together_ = 0;
  Clock::duration rest_{};
  Clock::time_point until_;
};

} // namespace td
