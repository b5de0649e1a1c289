// SPDX-License-Identifier: BSL-1.0
// Listeners, TCP and unix alike.
#include <ramie/socket.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include "net.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_accept{"accept"};

// The machine has no descriptor or memory for another connection. That may pass.
bool is_shortage(std::int32_t error) noexcept {
  return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

// Errors of a connection that broke in the backlog: Linux reports them by accept.
bool is_broken_connection(std::int32_t error) noexcept {
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
    if (is_broken_connection(result)) continue;
    if (result < 0) return {{}, result};
    descriptor_ref accepted = open_descriptor::adopt(result);
    if (peer != nullptr) *peer = address::from_native(&name, sizeof(sockaddr_in6));  // room for both kinds
    return {std::move(accepted), 0};
  }
}

int set_flag(int fd, int level, int name, bool wanted) noexcept {
  const int on = 1;
  return wanted ? outcome_of([&] { return ::setsockopt(fd, level, name, &on, sizeof on); }) : 0;
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
  if (result == 0) result = outcome_of([&] { return ::bind(fd, native(where), native_size(where)); });
  return result == 0 ? outcome_of([&] { return ::listen(fd, how.backlog); }) : result;
}

}  // namespace

descriptor_ref listening_socket::listen_at(socket_kind kind, const address& where, const listen_options& how,
                                           const char* what, std::error_code* ec) {
  expect_kind(kind, where, what);
  opened made = open_socket(native_family(where), SOCK_STREAM);
  if (made.error == 0) made.error = made.fd->with_fd([&](int fd) { return begin_to_listen(fd, where, how); });
  if (made.error != 0) made.fd = {};
  return value_of(std::move(made), ec, what);
}

descriptor_ref listening_socket::accept_one(address* peer, const char* what, std::error_code* ec, deadline until) {
  for (growing_pause pause;;) {
    opened next = accept_next(descriptor(), peer, until);
    if (ec != nullptr || !is_shortage(next.error)) return value_of(std::move(next), ec, what);
    if (!pause.wait(until)) throw_io_error(-ETIMEDOUT, what);
  }
}

}  // namespace ramie::io_internal
