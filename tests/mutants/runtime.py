# SPDX-License-Identifier: BSL-1.0
"""Flaws of the runtime's ends, proxies, empty joins, guards, descriptors and what is beside them.

(name, file, [(text, replacement)], how); read by the runner in this folder.
"""

RUNTIME, BLOCKING = "runtime/src/runtime.cpp", "runtime/src/blocking/blocking.cpp"
PROXIES, JOIN, NURSERY = "runtime/src/wait/self.cpp", "runtime/src/sched/join.cpp", "nursery/src/nursery.cpp"
STACKS, URING, POOL = "platform/src/stack_pool.cpp", "platform/src/io/uring.cpp", "runtime/src/blocking/pool.cpp"
SIGNALS, REPLACEMENT = "io/src/process/signals.cpp", "io/src/fs/replacement.cpp"
WRITER = "io/src/stream/buffered_writer.cpp"

OWN_FIBER = "a runtime that is destroyed by one of its own fibers ends the program and says what to do"
EXIT = "std::exit in a fiber of a static runtime ends the program and says what to do"
THREAD_EXIT = "pthread_exit in a fiber ends the program and says what to do"
CALL_EXIT = "pthread_exit in a blocking call ends the program and says what to do"
OBJECTS = "threads that wait in destructors of thread-local objects lose no proxy"
VALUES = "threads whose values wait when they are destroyed lose no proxy"
KEYS = "threads that wait in destructors of thread-specific data lose no proxy"
EMPTY = "joining empty nurseries in a loop lets others have their turn"
SOCKETS = "sockets are closed on exec, however they come into being"
CONNECTS = "what connects to several addresses is closed on exec"
FILES = "files, directories and pipes are closed on exec"
REPLACED = "what is open only while a file is replaced is closed on exec"
CHILDREN = "what belongs to child processes is closed on exec"
OUTPUT = "what reads a child's output is closed on exec"
MOMENT = "what is open only for a moment is closed on exec"


MUTANTS = [
    # The end of a runtime.
    ("a runtime may be destroyed by its own fiber", RUNTIME,
     [("  runtime_internal::must_not_run_on(*scheduler_);\n", "")], {"cases": [OWN_FIBER, EXIT]}),
    ("a runtime may be destroyed in its own blocking call", RUNTIME,
     [("if (it.blocking.runs_caller()) {", "if (false) {")], {"cases": [OWN_FIBER]}),
    ("a callback of the clock counts as a plain thread", "runtime/src/task/extras.cpp",
     [("at.local == nullptr && helper_of == nullptr", "at.local == nullptr")], {"cases": ["a cancellation names a thread only if it was one"]}),
    ("a runtime may be destroyed in its own callback", "runtime/src/runtime.cpp",
     [("if (helper_of == &it.pool.monitor() || helper_of == &it.deadlines) {", "if (false) {")], {"cases": [OWN_FIBER]}),
    ("a runtime may not be destroyed by a fiber of another one", RUNTIME,
     [("if (w == nullptr || &w->sched != &it) return;", "if (w == nullptr) return;")],
     {"cases": ["a runtime may be made, used and destroyed on a fiber of another one"]}),
    ("a fiber takes the end of its thread for an exception", "runtime/src/cancel/cancelled.cpp",
     [("  } catch (const platform::forced_unwind&) {\n    thread_ended_in_fiber();\n", "")], {"cases": [THREAD_EXIT]}),
    ("a blocking call takes the end of its thread for an exception", BLOCKING,
     [("      job.call(job.data);\n    } catch (const platform::forced_unwind&) {\n      thread_ended_in_call();\n",
       "      job.call(job.data);\n")], {"cases": [CALL_EXIT]}),
    ("a detachable call takes the end of its thread for an exception", BLOCKING,
     [("      job.work->call();\n    } catch (const platform::forced_unwind&) {\n      thread_ended_in_call();\n",
       "      job.work->call();\n")], {"cases": [CALL_EXIT]}),
    # Proxies.
    ("a proxy is given back with the thread-local objects", PROXIES,
     [("    if (thread_proxy != nullptr) drop_extras(thread_proxy->own_record);\n", "    give_back_proxy(nullptr);\n"),
      ("    if (::pthread_setspecific(key_, idle_) != 0) throw std::bad_alloc();\n", "")], {"cases": [OBJECTS]}),
    ("values end when their thread has no proxy any more", PROXIES,
     [("  drop_extras(proxy->own_record);  // the next thread starts with none\n  thread_proxy = nullptr;\n",
       "  thread_proxy = nullptr;\n  drop_extras(proxy->own_record);\n"),
      ("    if (thread_proxy != nullptr) drop_extras(thread_proxy->own_record);\n", "")], {"cases": [VALUES]}),
    ("a proxy that was taken again is kept", PROXIES,
     [("    if (::pthread_setspecific(key_, idle_) != 0) throw std::bad_alloc();\n",
       "    if (idle_->wait_ticket.load() == 0 && ::pthread_setspecific(key_, idle_) != 0) throw std::bad_alloc();\n")],
     {"cases": [OBJECTS, KEYS]}),
    ("values of the main thread are not destroyed", PROXIES,
     [("    if (thread_proxy != nullptr) drop_extras(thread_proxy->own_record);\n", "")],
     {"cases": ["values of the main thread are destroyed when the program exits"]}),
    # Empty joins.
    ("an empty join costs no budget", JOIN, [("  here.budget.add(-1u);\n", "")], {"cases": [EMPTY]}),
    ("an empty join from within another scope costs no budget", NURSERY,
     [("  call_context at = current_context();\n  keep_to_budget(at);\n  join_from_within", "  join_from_within")], {"cases": [EMPTY]}),
    ("an empty nursery without a join costs no budget", NURSERY,
     [("  } else {\n    keep_to_budget(at);\n  }\n", "  }\n")], {"cases": [EMPTY]}),
    ("asking for a task that has ended costs no budget", "nursery/src/tasks.cpp",
     [("void await_task(const task_handle& handle) {\n  call_context at = current_context();\n  keep_to_budget(at);\n",
       "void await_task(const task_handle& handle) {\n  call_context at = current_context();\n")],
     {"cases": ["asking for a task that has ended in a loop lets others have their turn"]}),
    # Guards.
    ("a guard is believed in without a look", STACKS,
     [("guard_by_madvise(probe) && is_guarded(probe)", "guard_by_madvise(probe)")],
     {"cases": ["a guard that is granted and is none is found out"]}),
    ("every guard looks like none", STACKS, [("!= 0 && errno == EFAULT", "== 1 && errno == EFAULT")],
     {"cases": ["a guard that is granted and is none is found out"]}),
    # Beside them.
    ("a signal handler changes errno", SIGNALS, [("  errno = error;\n", "  (void)error;\n")],
     {"cases": ["a handler leaves errno alone"]}),
    ("a call counts on a thread that is only being started", POOL,
     [("threads_ - (starting_ ? 1 : 0) < limit_", "threads_ < limit_")],
     {"cases": ["a call that comes while a thread is started, in vain, gets one of its own"]}),
    ("the most threads at once are as many as there were last", POOL, [("peak_ = std::max(peak_, with_it);", "peak_ = with_it;")],
     {"cases": ["the most threads at once are told when they have long left"]}),
    ("who looks takes the bell of who sleeps", URING,
     [("    if (asleep_) return 0;  // the sleeper takes the completions; the bell's must not be taken from it\n", "")],
     {"cases": ["who looks takes nothing from who sleeps"]}),
    ("an operation that has ended is still to be cancelled", URING,
     [("    if (op.link != nullptr) uncancelled_.remove(op);\n", "")],
     {"cases": ["a cancellation that had no room is forgotten when its operation has ended"]}),
    ("a flush that succeeds leaves an earlier failure in force", WRITER,
     [("  failed_ = static_cast<bool>(ec);\n", "  failed_ = failed_ || ec;\n")],
     {"cases": ["what was not flushed is reported, unless that is no surprise"]}),
    ("a file takes its place before it is on the disk", REPLACEMENT,
     [("  auto result = sync_now(fd_);\n", "  std::int64_t result = 0;\n")], {"cases": ["a file that can't be synced does not replace another"]}),
    ("a directory is not synced after a file has taken its place in it", REPLACEMENT,
     [("    const auto result = sync_now(fd);\n", "    const std::int64_t result = 0;\n")],
     {"cases": ["a file that can't be synced does not replace another"]}),
    # Close on exec.
    ("a socket is inherited by other programs", "io/src/net/socket.cpp",
     [("::socket(family, type | SOCK_CLOEXEC, 0)", "::socket(family, type, 0)")], {"cases": [SOCKETS]}),
    ("a pair of sockets is inherited by other programs", "io/src/net/socket.cpp",
     [("::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends)", "::socketpair(AF_UNIX, type, 0, ends)")], {"cases": [SOCKETS]}),
    ("an accepted socket is inherited by other programs", "io/src/net/listening_socket.cpp",
     [("op.flags = SOCK_CLOEXEC;", "op.flags = 0;")], {"cases": [SOCKETS]}),
    ("a socket that is one of several attempts is inherited by other programs", "io/src/net/connect.cpp",
     [("SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK", "SOCK_STREAM | SOCK_NONBLOCK")], {"cases": [CONNECTS]}),
    ("the set of attempts to connect is inherited by other programs", "io/src/net/connect.cpp",
     [("::epoll_create1(EPOLL_CLOEXEC)", "::epoll_create1(0)")], {"cases": [CONNECTS]}),
    ("a file is inherited by other programs", "io/src/fs/file.cpp",
     [("int flags = O_CLOEXEC | O_NOCTTY;", "int flags = O_NOCTTY;")], {"cases": [FILES]}),
    ("a pipe is inherited by other programs", "io/src/process/pipe.cpp",
     [("::pipe2(both, O_CLOEXEC)", "::pipe2(both, 0)")], {"cases": [FILES]}),
    ("the bell of a signal is inherited by other programs", SIGNALS,
     [("EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK", "EFD_SEMAPHORE | EFD_NONBLOCK")], {"cases": [FILES]}),
    ("a file that is to replace another is inherited by other programs", REPLACEMENT,
     [("O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC", "O_RDWR | O_CREAT | O_EXCL")], {"cases": [REPLACED]}),
    ("a directory that is synced is inherited by other programs", REPLACEMENT,
     [("O_RDONLY | O_DIRECTORY | O_CLOEXEC", "O_RDONLY | O_DIRECTORY")], {"cases": [REPLACED]}),
    ("a pipe to a child is inherited by other programs", "io/src/process/spawn.cpp",
     [("F_DUPFD_CLOEXEC, 3", "F_DUPFD, 3")], {"cases": [CHILDREN]}),
    ("what a detached child is known by is inherited by other programs", "io/src/process/child.cpp",
     [("F_DUPFD_CLOEXEC, 0", "F_DUPFD, 0")], {"cases": [CHILDREN]}),
    ("the watcher's set is inherited by other programs", "io/src/watcher.cpp",
     [("::epoll_create1(EPOLL_CLOEXEC)", "::epoll_create1(0)")], {"cases": [CHILDREN]}),
    ("the set of a child's pipes is inherited by other programs", "io/src/process/exchange.cpp",
     [("::epoll_create1(EPOLL_CLOEXEC)", "::epoll_create1(0)")], {"cases": [OUTPUT]}),
    ("the bell of io_uring is inherited by other programs", URING,
     [("::eventfd(0, EFD_CLOEXEC)", "::eventfd(0, 0)")], {"cases": [SOCKETS]}),
    ("the bell of epoll and poll is inherited by other programs", "platform/src/io/readiness_sources.cpp",
     [("::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)", "::eventfd(0, EFD_NONBLOCK)")], {"cases": [SOCKETS]}),
    ("the set of a worker's descriptors is inherited by other programs", "platform/src/io/readiness_sources.cpp",
     [("::epoll_create1(EPOLL_CLOEXEC)", "::epoll_create1(0)")], {"cases": [SOCKETS]}),
    ("the bell of a thread's operations is inherited by other programs", "runtime/src/io/descriptor.cpp",
     [("::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)", "::eventfd(0, EFD_NONBLOCK)")], {"cases": ["what a plain thread waits with is closed on exec"]}),
    ("the set that a plain thread selects with is inherited by other programs", "io/src/net/readiness_watch.cpp",
     [("::epoll_create1(EPOLL_CLOEXEC)", "::epoll_create1(0)")], {"cases": ["what a plain thread selects with is closed on exec"]}),
    ("a directory that is listed is inherited by other programs", "io/src/fs/walk.cpp",
     [("O_RDONLY | O_DIRECTORY | O_CLOEXEC |", "O_RDONLY | O_DIRECTORY |")], {"cases": [MOMENT]}),
    ("a thread's meter is inherited by other programs", "platform/src/thread_meter.cpp", [("O_RDONLY | O_CLOEXEC", "O_RDONLY")],
     {"cases": ["what a thread is measured with is closed on exec"]}),
    ("what is copied is inherited by other programs", "io/src/fs/directory.cpp",
     [("O_RDONLY | O_CLOEXEC | O_NONBLOCK", "O_RDONLY | O_NONBLOCK")], {"cases": [MOMENT]}),
    ("a copy that is closed for what it has to tell is inherited by other programs", "io/src/fs/file.cpp",
     [("F_DUPFD_CLOEXEC, 0", "F_DUPFD, 0")], {"cases": [MOMENT]}),
    ("a pipe to a child is inherited by other programs until it is moved", "io/src/process/spawn.cpp",
     [("::pipe2(both, O_CLOEXEC)", "::pipe2(both, 0)")], {"cases": [MOMENT]}),
]
