// SPDX-License-Identifier: Apache-2.0
// What takes long, and how far it is: for whoever waits. What nobody waits for any more ends.

#pragma once

#include <algorithm>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace malloscope::serve {

class Jobs {
 public:
  struct Job {
    std::string what;
    double share = 0;
  };

  // Thrown into what nobody waits for any more.
  struct Left {};

  // `asked`: the name that somebody gave a question.
  void leave(const std::string& asked) {
    constexpr size_t kMostLeft = 1000;
    std::lock_guard lock(mutex_);
    left_.push_back(asked);
    if (left_.size() > kMostLeft) left_.pop_front();
  }
  void throw_if_left(const std::string& asked) const {
    std::lock_guard lock(mutex_);
    if (!asked.empty() && std::ranges::find(left_, asked) != left_.end()) throw Left();
  }

  // One thing that is being done, as long as it lives.
  class Running {
   public:
    Running(Jobs* jobs, std::string what, std::string asked = {})
        : jobs_(*jobs), asked_(std::move(asked)) {
      std::lock_guard lock(jobs_.mutex_);
      job_ = jobs_.jobs_.insert(jobs_.jobs_.end(), {std::move(what), 0});
    }
    ~Running() {
      std::lock_guard lock(jobs_.mutex_);
      jobs_.jobs_.erase(job_);
    }
    Running(const Running&) = delete;

    void show(double share) {
      jobs_.throw_if_left(asked_);
      std::lock_guard lock(jobs_.mutex_);
      job_->share = share;
    }
    void show(std::string_view what, double share) {
      jobs_.throw_if_left(asked_);
      std::lock_guard lock(jobs_.mutex_);
      job_->what = what;
      job_->share = share;
    }

   private:
    Jobs& jobs_;
    std::string asked_;
    std::list<Job>::iterator job_;
  };

  std::vector<Job> list() const {
    std::lock_guard lock(mutex_);
    return {jobs_.begin(), jobs_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::list<Job> jobs_;
  std::deque<std::string> left_;  // The latest of them.
};

}  // namespace malloscope::serve
