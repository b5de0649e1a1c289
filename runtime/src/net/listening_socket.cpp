// SPDX-License-Identifier: BSL-1.0
// Listeners of any kind.
#include <ramie/socket.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include "net.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_accept{"accept"};

// The machine has no room for another descriptor: that may pass.
bool is_shortage(std::int32_t error) noexcept {
  return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

// What became of a connection that nobody has seen yet: Linux passes it on to whoever accepts.
bool is_of_lost_connection(std::int32_t error) noexcept {
  switch (-error) {
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET: return true;
    default: return false;
  }
}

opened accept_next(const descriptor_ref& listener, address* peer, deadline until) {
  for (;;) {
    sockaddr_storage name{};
    platform::io_operation op;
    op.code = platform::io_code::accept;
    op.flags = SOCK_CLOEXEC;
    op.memory = peer != nullptr ? &name : nullptr;
    op.count = peer != nullptr ? sizeof name : 0;
    const std::int32_t result = perform(listener, op, waits_to_accept, until);
    if (is_of_lost_connection(result)) continue;
    if (result < 0) return {{}, result};
    descriptor_ref accepted = open_descriptor::adopt(result);
    if (peer != nullptr) *peer = address::from_native(&name, sizeof(sockaddr_in6));  // room for both kinds
    return {std::move(accepted), 0};
  }
}

int set_flag(int fd, int level, int name, bool wanted) noexcept {
  const int on = 1;
  return wanted ? outcome_of(::setsockopt(fd, level, name, &on, sizeof on)) : 0;
}

int begin_to_listen(int fd, const address& where, const listen_options& how) noexcept {
  int result = 0;
  if (where.is_ip()) {
    result = set_flag(fd, SOL_SOCKET, SO_REUSEADDR, how.reuse_address);
    if (result == 0) result = set_flag(fd, SOL_SOCKET, SO_REUSEPORT, how.reuse_port);
    if (result == 0) {
      result = set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, how.ipv6_only && where.family() == address_family::ipv6);
    }
  }
  if (result == 0) result = outcome_of(::bind(fd, native(where), native_size(where)));
  return result == 0 ? outcome_of(::listen(fd, how.backlog)) : result;
}

}  // namespace

descriptor_ref listening_socket::listen_at(const address& where, const listen_options& how, std::error_code* ec) {
  opened made = open_socket(native_family(where), SOCK_STREAM);
  if (made.error == 0) made.error = made.fd->with_fd([&](int fd) { return begin_to_listen(fd, where, how); });
  if (made.error != 0) made.fd = {};
  return value_of(std::move(made), ec, "ramie: bind");
}

descriptor_ref listening_socket::accept_one(address* peer, std::error_code* ec, deadline until) {
  for (growing_pause pause;;) {
    opened next = accept_next(descriptor(), peer, until);
    if (ec != nullptr || !is_shortage(next.error)) return value_of(std::move(next), ec, "ramie: accept");
    if (!pause.wait(until)) throw_io_error(-ETIMEDOUT, "ramie: accept");
  }
}

}  // namespace ramie::detail
