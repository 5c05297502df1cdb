// The floor that any proxy is measured against: a byte relay on one epoll loop that parses nothing. Each accepted
// connection gets an upstream connection of its own; what one side sends goes to the other with one write.
//   floor_relay LISTEN_PORT UPSTREAM_PORT      both on 127.0.0.1; a short write ends the pair (loopback takes 64 KiB)
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int checked(int result, const char* what) {
  if (result < 0) {
    std::perror(what);
    std::exit(1);
  }
  return result;
}

void watch(int epoll, int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  checked(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

}  // namespace

int main(int count, char** args) {
  if (count != 3) {
    std::fputs("usage: floor_relay LISTEN_PORT UPSTREAM_PORT\n", stderr);
    return 2;
  }
  const sockaddr_in here = loopback(std::atoi(args[1])), upstream = loopback(std::atoi(args[2]));
  const int epoll = checked(epoll_create1(0), "epoll_create1");
  const int listener = checked(socket(AF_INET, SOCK_STREAM, 0), "socket"), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  checked(bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here), "bind");
  checked(listen(listener, 1024), "listen");
  watch(epoll, listener);

  std::vector<int> other(1 << 16, -1);
  static std::array<char, 64 << 10> bytes;
  std::array<epoll_event, 256> events;
  for (;;) {
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        const int caller = checked(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK), "accept4");
        const int server = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
        checked(connect(server, reinterpret_cast<const sockaddr*>(&upstream), sizeof upstream), "connect");
        watch(epoll, caller);
        watch(epoll, server);
        other[static_cast<std::size_t>(caller)] = server;
        other[static_cast<std::size_t>(server)] = caller;
        continue;
      }
      const int peer = other[static_cast<std::size_t>(fd)];
      if (peer < 0) continue;  // its pair ended in this turn
      const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (n > 0 && send(peer, bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL | MSG_DONTWAIT) == n) continue;
      other[static_cast<std::size_t>(fd)] = other[static_cast<std::size_t>(peer)] = -1;
      close(fd);
      close(peer);
    }
  }
}
