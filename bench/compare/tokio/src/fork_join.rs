// SPDX-License-Identifier: BSL-1.0

use crate::{ns_each, on, on_stealing, peak_mb, require, Found, Sizes};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::task::JoinHandle;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub fn yields(workers: usize, s: &Sizes) -> Found {
    let (fibers, turns) = (s.get("fibers"), s.get("turns"));
    on(workers, async move {
        let start = Instant::now();
        let turn = || async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        };
        let all: Vec<JoinHandle<()>> = (0..fibers).map(|_| tokio::spawn(turn())).collect();
        for t in all {
            t.await.unwrap();
        }
        Found::ns(ns_each(fibers * turns, start))
    })
}

async fn batch(at_once: usize, all: &mut Vec<JoinHandle<()>>) {
    all.extend((0..at_once).map(|_| tokio::spawn(async {})));
    for t in all.drain(..) {
        t.await.unwrap();
    }
}

pub fn spawn_join(workers: usize, s: &Sizes) -> Found {
    let (at_once, tasks) = (s.get("at_once"), s.get("tasks"));
    on(workers, async move {
        let mut all = Vec::new();
        batch(at_once, &mut all).await;
        let start = Instant::now();
        for _ in 0..tasks / at_once {
            batch(at_once, &mut all).await;
        }
        Found::ns(ns_each(tasks, start))
    })
}

pub fn spawn_all(workers: usize, s: &Sizes) -> Found {
    let tasks = s.get("tasks");
    on(workers, async move {
        let start = Instant::now();
        batch(tasks, &mut Vec::new()).await;
        let value = ns_each(tasks, start);
        Found { value, unit: "ns", extra: vec![("peak_mb", peak_mb())] }
    })
}

fn fork_fib(n: usize) -> Boxed<usize> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let half = tokio::spawn(fork_fib(n - 1));
        let other = fork_fib(n - 2).await;
        half.await.unwrap() + other
    })
}

fn serial_fib(n: usize) -> usize {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn spawns_of_fib(n: usize) -> usize {
    (2..=n).fold((0, 0), |(before, now), _| (now, now + before + 1)).1
}

pub fn fib(workers: usize, s: &Sizes) -> Found {
    let n = s.get("n");
    on_stealing(workers, async move {
        require(fork_fib(15).await == serial_fib(15), "fib");
        let start = Instant::now();
        let found = fork_fib(n).await;
        let ns = ns_each(spawns_of_fib(n), start);
        require(found == serial_fib(n), "fib");
        Found::ns(ns)
    })
}

fn tree(first: usize, size: usize) -> Boxed<usize> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let children: [JoinHandle<usize>; 10] =
            std::array::from_fn(|i| tokio::spawn(tree(first + i * (size / 10), size / 10)));
        let mut sum = 0;
        for c in children {
            sum += c.await.unwrap();
        }
        sum
    })
}

pub fn skynet(workers: usize, s: &Sizes) -> Found {
    let leaves = s.get("leaves");
    on_stealing(workers, async move {
        require(tree(0, 1000).await == 499_500, "skynet");
        let start = Instant::now();
        let sum = tree(0, leaves).await;
        let ns = ns_each(leaves, start);
        require(sum == leaves * (leaves - 1) / 2, "skynet");
        Found::ns(ns)
    })
}
