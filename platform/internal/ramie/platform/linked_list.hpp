// SPDX-License-Identifier: BSL-1.0
// Doubly linked lists through members of their nodes: a pointer to the first node, null at both ends. For lists whose
// order does not matter, or where the newest comes first. Who may call is up to the owner of the list: no locks here.
//
// Not for wait lists, which know their last node and whether a node is listed, and whose instructions are counted
// (tools/test perf); nor for those of cancel scopes, which are rings, so that a node is unlinked without its list.
#pragma once

namespace ramie::platform {

template <class Node>
void put_first(Node*& first, Node& node, Node* Node::*next, Node* Node::*previous) noexcept {
  node.*previous = nullptr;
  node.*next = first;
  if (first != nullptr) first->*previous = &node;
  first = &node;
}

// The node is in the list. Its own pointers stay as they are.
template <class Node>
void take_out(Node*& first, Node& node, Node* Node::*next, Node* Node::*previous) noexcept {
  (node.*previous != nullptr ? (node.*previous)->*next : first) = node.*next;
  if (node.*next != nullptr) (node.*next)->*previous = node.*previous;
}

}  // namespace ramie::platform
