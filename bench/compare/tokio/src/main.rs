// SPDX-License-Identifier: BSL-1.0

//! Tokio's side of bench/compare, as its users would write it fast:
//!   - One worker is whichever runtime is faster: current_thread, and multi_thread for trees of tasks, where its
//!     last-in-first-out slot tells. The program itself is a task, not block_on's future, so that it runs on a worker.
//!   - Tasks are joined by their handles; recursion is boxed, as async recursion has to be.
//!   - tokio::sync::mpsc where there is one receiver; async-channel, the usual companion, where there are more.
//!     Neither has a rendezvous: capacity 1 stands in for 0.
//!   - Locks are tokio::sync's, which may be held across an await: that is what a fiber's lock is compared with.
//!   - A parked task waits for a oneshot: one receiver each is what Tokio's own channels offer.
//!
//! Same command line and output as the others, see ../../program.hpp.

mod channels;
mod fork_join;
mod locks;
mod net;
mod time;
mod waiting;

use std::collections::HashMap;
use std::fmt::Write;
use std::future::Future;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

pub struct Sizes(HashMap<String, usize>);

impl Sizes {
    pub fn get(&self, key: &str) -> usize {
        *self.0.get(key).unwrap_or_else(|| fail(&format!("missing size: {key}")))
    }
}

pub struct Found {
    pub value: f64,
    pub unit: &'static str,
    pub extra: Vec<(&'static str, f64)>,
}

impl Found {
    pub fn ns(value: f64) -> Found {
        Found { value, unit: "ns", extra: vec![] }
    }
}

type Run = fn(usize, &Sizes) -> Found;

const ALL: &[(&str, usize, Run)] = &[
    ("yield", 1, fork_join::yields),
    ("spawn-join", 2, fork_join::spawn_join),
    ("spawn-all", 1, fork_join::spawn_all),
    ("fib", 2, fork_join::fib),
    ("skynet-channels", 2, channels::skynet),
    ("skynet-join", 2, fork_join::skynet),
    ("ping-pong", 2, channels::ping_pong),
    ("channel", 2, channels::stream),
    ("ring", 2, channels::ring),
    ("sieve", 2, channels::sieve),
    ("parked", 1, waiting::parked),
    ("wake", 2, waiting::wake),
    ("idle", 2, waiting::idle),
    ("sleepers", 2, time::sleepers),
    ("watch", 2, channels::watch_in_turns),
    ("mutex", 2, locks::mutex_shared),
    ("mutex-alone", 1, locks::mutex_alone),
    ("semaphore", 1, locks::semaphore_alone),
    ("notify", 2, locks::notify_in_turns),
    ("once", 1, locks::once_get),
    ("blocking", 1, time::blocking_call),
    ("echo", 2, net::echo),
];

pub fn fail(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(3)
}

pub fn require(good: bool, what: &str) {
    if !good {
        fail(&format!("wrong result: {what}"));
    }
}

pub fn ns_each(operations: usize, start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// Runs `main` as a task of a runtime with that many workers.
pub fn on<F>(workers: usize, main: F) -> Found
where
    F: Future<Output = Found> + Send + 'static,
{
    if workers > 1 {
        return on_stealing(workers, main);
    }
    run(Builder::new_current_thread().enable_time().build().unwrap(), main)
}

/// The same with the scheduler that has the last-in-first-out slot, also for one worker: faster for trees of tasks.
pub fn on_stealing<F>(workers: usize, main: F) -> Found
where
    F: Future<Output = Found> + Send + 'static,
{
    run(Builder::new_multi_thread().worker_threads(workers).enable_time().build().unwrap(), main)
}

pub fn run<F>(runtime: Runtime, main: F) -> Found
where
    F: Future<Output = Found> + Send + 'static,
{
    let found = runtime.block_on(async { tokio::spawn(main).await.unwrap() });
    std::mem::forget(runtime); // what still waits need not be unwound: the process ends
    found
}

/// A number of kilobytes in /proc/self/status.
fn status_kb(word: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut words = text.split_whitespace().skip_while(|w| *w != word).skip(1);
    words.next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

pub fn resident_bytes() -> f64 {
    status_kb("VmRSS:") * 1024.0
}

pub fn peak_mb() -> f64 {
    status_kb("VmHWM:") / 1024.0
}

fn list() {
    for (name, max_workers, _) in ALL {
        for n in 1..=*max_workers {
            println!("{name} {n}");
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        return list();
    }
    if arguments.len() < 2 {
        fail("usage: PROGRAM --list | PROGRAM WORKLOAD WORKERS KEY=NUMBER …");
    }
    let workers: usize = arguments[1].parse().unwrap_or(0);
    let mut sizes = Sizes(HashMap::new());
    for a in &arguments[2..] {
        match a.split_once('=').map(|(key, value)| (key, value.parse())) {
            Some((key, Ok(number))) => sizes.0.insert(key.to_string(), number),
            _ => fail(&format!("not KEY=NUMBER: {a}")),
        };
    }
    for (name, max_workers, run) in ALL {
        if *name != arguments[0] {
            continue;
        }
        if workers < 1 || workers > *max_workers {
            fail("not with so many workers");
        }
        let found = run(workers, &sizes);
        let mut extra = String::new();
        for (key, value) in &found.extra {
            let comma = if extra.is_empty() { "" } else { ", " };
            write!(extra, "{comma}\"{key}\": {value:.4}").unwrap();
        }
        println!(
            "{{\"workload\": \"{name}\", \"workers\": {workers}, \"value\": {:.4}, \"unit\": \"{}\", \"extra\": {{{extra}}}}}",
            found.value, found.unit
        );
        return;
    }
    fail(&format!("no such workload: {}", arguments[0]));
}
