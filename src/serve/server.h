// SPDX-License-Identifier: Apache-2.0
// The page and its answers over HTTP, for the user of this machine alone: on the loopback
// interface, under a path that nobody can guess, for requests that name this very host, and
// read-only.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "serve/api.h"

namespace malloscope::serve {

class Server {
 public:
  // `port`: 0 for any.
  static Result<std::unique_ptr<Server>> open(Api* api, int port);
  ~Server();

  const std::string& url() const { return url_; }
  // Answers until nobody has asked anything for so long.
  void run(std::chrono::seconds idle);

 private:
  struct Http;

  Server(Api* api, std::unique_ptr<Http> http);
  void set_up(int port);

  Api& api_;
  std::unique_ptr<Http> http_;
  std::string url_;
};

}  // namespace malloscope::serve
