# SPDX-License-Identifier: BSL-1.0
"""Flaws of sockets and names."""
MUTANTS = [
    ("the next address is not tried at once after a failure", "runtime/src/net/connect.cpp",
     [("    next_at_ = std::chrono::steady_clock::time_point::min();  // at once\n", "")],
     {"cases": ["an address that fails is followed by the next one at once"]}),
    ("the last address's error hides one that says more", "runtime/src/net/connect.cpp",
     [("if (!is_without_a_way(error) || is_without_a_way(error_) || error_ == 0) error_ = error;", "error_ = error;")],
     {"cases": ["if all addresses fail, the error is of one that there was a way to"]}),
    ("an address is found twice", "runtime/src/net/resolve.cpp",
     [("if (a.is_ip() && is_new)", "if (a.is_ip())")],
     {"cases": ["a name is looked up, figures are not"]}),
    ("IPv4 is tried before IPv6", "runtime/src/net/resolve.cpp",
     [("    if (i < sixes.size()) mixed.push_back(sixes[i]);\n    if (i < fours.size()) mixed.push_back(fours[i]);", "    if (i < fours.size()) mixed.push_back(fours[i]);\n    if (i < sixes.size()) mixed.push_back(sixes[i]);")],
     {"cases": ["IPv6 is tried first"]}),
    ("a listener for IPv6 alone takes IPv4", "runtime/src/net/listening_socket.cpp",
     [("how.ipv6_only && where", "false && where")],
     {"cases": ["a listener for IPv6 alone leaves its port to IPv4"]}),
    ("accept gives up when the machine is short of descriptors", "runtime/src/net/listening_socket.cpp",
     [("if (ec != nullptr || !is_shortage(next.error))", "if (true)")],
     {"cases": ["accept waits while there is no descriptor for another connection, and then goes on"]}),
]
