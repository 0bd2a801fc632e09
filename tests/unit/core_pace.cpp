// When the threads of a team are left out because other programs have their processors.
#include "core/pace.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "core/parallel.hpp"

namespace {

using namespace td;

/// A machine of which regions get `together` processors with all threads and `alone` with one.
class Machine {
public:
  /// Works for so long; gives the part of this time in which the calling thread worked alone.
  double work(double seconds, double together, double alone) {
    constexpr double processors = 1e-4; // that a region takes
    double all = 0;
    double by_itself = 0;
    while (all < seconds) {
      const Pace::Way way = pace_.next(now_);
      const double wall = processors / (way.alone ? alone : together);
      now_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wall));
      if (way.timed)
        pace_.took(processors, wall, now_);
      all += wall;
      by_itself += way.alone ? wall : 0;
    }
    return by_itself / all;
  }

private:
  Pace pace_;
  Clock::time_point now_{};
};

TEST(CorePace, AllThreadsWorkWhereTheyGetFurther) {
  EXPECT_EQ(Machine().work(2, 1.9, 1), 0);
  EXPECT_EQ(Machine().work(2, 1.2, 0.7), 0);
  EXPECT_EQ(Machine().work(2, 60, 1), 0);
  EXPECT_LT(Machine().work(2, 0.9, 0.5), 0.25); // tried alone at times
}

TEST(CorePace, OneThreadWorksWhereOthersHoldItUp) {
  EXPECT_GT(Machine().work(2, 0.5, 0.7), 0.8);
  EXPECT_GT(Machine().work(2, 0.2, 0.7), 0.8);
  EXPECT_GT(Machine().work(2, 0.7, 0.7), 0.8); // by several threads the same work takes more of the processors
}

TEST(CorePace, FollowsTheMachine) {
  Machine machine;
  machine.work(2, 0.5, 0.7);
  EXPECT_LT(machine.work(1, 1.9, 1), 0.7);
  EXPECT_EQ(machine.work(1, 1.9, 1), 0);
  EXPECT_GT(machine.work(1, 0.5, 0.7), 0.7);
}

/// How many regions of two parts had one done by a second thread, which sleeps in each as one that is not let run.
int regions_with_a_sleeper(int regions) {
  using namespace std::chrono_literals;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> sum{0};
  std::atomic<int> by_others{0};
  for (int k = 0; k < regions; ++k)
    parallel(2, [&](int thread, int count) {
      sum += count == 2 ? thread + 1 : 3; // 1: no second thread could be started
      for (const auto until = Clock::now() + 1ms; Clock::now() < until;) {
      }
      if (std::this_thread::get_id() != caller) {
        ++by_others;
        std::this_thread::sleep_for(3ms);
      }
    });
  EXPECT_EQ(sum, 3 * regions); // every part is done once, whoever does it
  return by_others;
}

// Other programs that hold up the caller make the sleeper look better: then it is tried again.
TEST(CorePace, ATeamLeavesOutThreadsThatAreHeldUp) {
  // Enough for several rests, each longer than the one before: in the first hundred a third is still looked at.
  constexpr int regions = 400;
  int least = regions;
  for (int attempt = 0; attempt < 3 && least >= regions / 4; ++attempt)
    least = std::min(least, regions_with_a_sleeper(regions));
  EXPECT_LT(least, regions / 4);
}

} // namespace
