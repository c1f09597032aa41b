// SPDX-License-Identifier: Apache-2.0
// What takes long, and how far it is: for whoever waits.

#pragma once

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

  // One thing that is being done, as long as it lives.
  class Running {
   public:
    Running(Jobs* jobs, std::string what) : jobs_(*jobs) {
      std::lock_guard lock(jobs_.mutex_);
      job_ = jobs_.jobs_.insert(jobs_.jobs_.end(), {std::move(what), 0});
    }
    ~Running() {
      std::lock_guard lock(jobs_.mutex_);
      jobs_.jobs_.erase(job_);
    }
    Running(const Running&) = delete;

    void show(double share) {
      std::lock_guard lock(jobs_.mutex_);
      job_->share = share;
    }
    void show(std::string_view what, double share) {
      std::lock_guard lock(jobs_.mutex_);
      job_->what = what;
      job_->share = share;
    }

   private:
    Jobs& jobs_;
    std::list<Job>::iterator job_;
  };

  std::vector<Job> list() const {
    std::lock_guard lock(mutex_);
    return {jobs_.begin(), jobs_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::list<Job> jobs_;
};

}  // namespace malloscope::serve
