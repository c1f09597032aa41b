// SPDX-License-Identifier: Apache-2.0
// Against whom: other users of the machine do not know the token, nor can they keep the server
// busy; pages of other sites that a browser has open cannot read answers (no CORS) and, by a name
// that suddenly means 127.0.0.1, not even ask (the Host must be ours); and what a trace has for
// names cannot run (no inline script, nothing from elsewhere).

#include "serve/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "serve/bundle.h"
#include "serve/connection.h"

namespace malloscope::serve {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The library would compress what it is given at once, with all the time in the world: seconds for
// a megabyte, which reaches this very machine in a millisecond.
void send_as_it_is(std::string body, const std::string& type, httplib::Response* response) {
  auto kept = std::make_shared<const std::string>(std::move(body));
  if (kept->empty()) return response->set_content("", type);
  response->set_content_provider(kept->size(), type,
                                 [kept](size_t offset, size_t length, httplib::DataSink& sink) {
                                   return sink.write(kept->data() + offset, length);
                                 });
}

Result<std::string> make_token() {
  std::array<unsigned char, 16> bytes = {};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail("no random number for the page's address could be had");
  std::string token;
  for (unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A thread for each connection: they mostly wait, for a connection's next question or for each
// other, and one that waits keeps nobody else from being answered.
class Threads final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> job) override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return running_ < kMost; });
      ++running_;
    }
    auto run = [this, job = std::move(job)] {
      job();
      std::lock_guard lock(mutex_);
      --running_;
      changed_.notify_all();
    };
    try {
      std::thread(run).detach();
    } catch (const std::system_error&) {  // No thread can be had.
      run();
    }
  }
  void shutdown() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  static constexpr int kMost = 500;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
};

}  // namespace

struct Server::Http : httplib::Server {
  // Another user may have been told the address, but gets no more than a browser needs.
  static constexpr int kMostOfOthers = 8;
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket);
    if (connection.is_ours()) return converse(&connection);
    bool done = ++others <= kMostOfOthers && converse(&connection);
    --others;
    return done;
  }
  // The library lets 5 wait to be let in: then who is sixth tries again after a second.
  void let_many_wait() { ::listen(svr_sock_, SOMAXCONN); }
  // Until a question is not one of the page's: behind that anything may come, the body that it has
  // too. Parts of answers (Range) are not given: the library would take them from beyond the end.
  bool converse(Connection* connection) {
    bool closed = false, done = true, understood = true;
    auto look_at = [&](httplib::Request& request) {
      request.ranges.clear();
      understood = (request.method == "GET" || request.method == "HEAD") &&
                   !request.has_header("Content-Length") &&
                   !request.has_header("Transfer-Encoding");
    };
    while (!closed && done && understood && connection->await_question()) {
      understood = false;
      done = process_request(*connection, false, closed, look_at);
    }
    return done;
  }

  std::atomic<int> others = 0;  // Connections with processes of other users.
  std::string token;
  std::atomic<int64_t> last_asked = now_seconds();
};

Server::Server(Api* api, std::unique_ptr<Http> http) : api_(*api), http_(std::move(http)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(Api* api, int port) {
  auto http = std::make_unique<Http>();
  Result<std::string> token = make_token();
  if (!token) return std::unexpected(token.error());
  http->token = *token;
  // Without SO_REUSEPORT, by which another viewer would get half of the questions.
  http->set_socket_options([](socket_t socket) {
    int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  if (port != 0) {
    if (!http->bind_to_port(kAddress, port))
      return fail(
          fmt::format("port {} of {} cannot be had; another program may use it", port, kAddress));
  } else {
    port = http->bind_to_any_port(kAddress);
    if (port <= 0) return fail(fmt::format("no port of {} can be had", kAddress));
  }
  http->let_many_wait();
  std::unique_ptr<Server> server(new Server(api, std::move(http)));
  server->set_up(port);
  return server;
}

void Server::set_up(int port) {
  httplib::Server& server = *http_;
  url_ = fmt::format("http://{}:{}/{}/", kAddress, port, http_->token);
  server.new_task_queue = [] { return new Threads; };
  server.set_keep_alive_max_count(100'000);
  server.set_payload_max_length(1 << 16);
  server.set_default_headers({{"Content-Security-Policy", kPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Cross-Origin-Opener-Policy", "same-origin"},
                              {"Cache-Control", "no-store"}});
  std::string host = fmt::format("{}:{}", kAddress, port),
              local = fmt::format("localhost:{}", port);
  std::string prefix = "/" + http_->token + "/";
  server.set_pre_routing_handler(
      [=, this](const httplib::Request& request, httplib::Response& response) {
        using Handled = httplib::Server::HandlerResponse;
        std::string asked = request.get_header_value("Host");
        auto refuse = [&](int status, const char* text) {
          response.status = status;
          response.set_content(text, "text/plain");
          return Handled::Handled;
        };
        if ((asked != host && asked != local) || request.get_header_value_count("Host") != 1)
          return refuse(403, "This page is for this machine alone.\n");
        if (!request.path.starts_with(prefix))
          return refuse(404, "The address of the page is what malloscope view printed.\n");
        if (request.method != "GET" && request.method != "HEAD")
          return refuse(405, "There is nothing here to change.\n");
        http_->last_asked = now_seconds();
        return Handled::Unhandled;
      });
  server.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr thrown) {
        std::string what = "something went wrong";
        try {
          std::rethrow_exception(thrown);
        } catch (const std::bad_alloc&) {
          what = "there is not enough memory for that";
        } catch (const std::exception& error) {
          what = error.what();
        }
        Reply reply = failure(500, what);
        response.status = reply.status;
        response.set_content(std::move(reply.body), reply.type);
      });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    Reply reply =
        failure(response.status, response.status == 414 ? "the question is too long"
                                                        : "that is no question of the page");
    response.set_content(std::move(reply.body), reply.type);
  });
  server.Get(".*", [=, this](const httplib::Request& request, httplib::Response& response) {
    std::string path = request.path.substr(prefix.size());
    for (const PageFile& file : page_files())
      if (path == file.name)
        return send_as_it_is(std::string(file.bytes), std::string(file.type), &response);
    if (!path.starts_with("api/")) {
      response.status = 404;
      return response.set_content("There is no such page.\n", "text/plain");
    }
    Reply reply = api_.answer(path.substr(4), request.params);
    response.status = reply.status;
    if (reply.status == 200) return send_as_it_is(std::move(reply.body), reply.type, &response);
    response.set_content(std::move(reply.body), reply.type);
  });
}

void Server::run(std::chrono::seconds idle) {
  std::thread watcher([&] {
    while (!http_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    while (now_seconds() - http_->last_asked < idle.count())
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    http_->stop();
  });
  http_->listen_after_bind();
  watcher.join();
}

}  // namespace malloscope::serve
