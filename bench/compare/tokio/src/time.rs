// SPDX-License-Identifier: BSL-1.0

use crate::waiting::cpu_ms;
use crate::{ns_each, on, require, Found, Sizes};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Those of ../../sleeps.hpp.
struct SleepTimes(u64);

impl SleepTimes {
    fn next(&mut self) -> Duration {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        Duration::from_micros(1_000 + (z ^ (z >> 31)) % 99_001)
    }
}

/// The longest sum of one fiber's sleeps.
fn ideal_time(fibers: usize, sleeps: usize) -> Duration {
    let sum = |f: usize| -> Duration {
        let mut times = SleepTimes(f as u64);
        (0..sleeps).map(|_| times.next()).sum()
    };
    (0..fibers).map(sum).max().unwrap()
}

/// Relaxed stores are plain ones: the atomics are there for the compiler only.
async fn live(fiber: usize, sleeps: usize, late: Arc<Vec<AtomicI64>>) {
    let mut times = SleepTimes(fiber as u64);
    let mut now = Instant::now();
    for l in &late[fiber * sleeps..(fiber + 1) * sleeps] {
        let time = times.next();
        let due = now + time;
        tokio::time::sleep(time).await;
        now = Instant::now();
        let ns = match now.checked_duration_since(due) {
            Some(after) => after.as_nanos() as i64,
            None => -((due - now).as_nanos() as i64),
        };
        l.store(ns, Ordering::Relaxed);
    }
}

pub fn sleepers(workers: usize, s: &Sizes) -> Found {
    let (fibers, sleeps, in_a_row) = (s.get("fibers"), s.get("sleeps"), s.get("in_a_row"));
    let late: Arc<Vec<AtomicI64>> = Arc::new((0..fibers * sleeps).map(|_| AtomicI64::new(1)).collect());
    let ideal = ideal_time(fibers, sleeps);
    on(workers, async move {
        let mut all: Vec<JoinHandle<()>> = Vec::with_capacity(fibers);
        let before = cpu_ms();
        let start = Instant::now();
        for i in 0..fibers {
            all.push(tokio::spawn(live(i, sleeps, late.clone())));
            if i % in_a_row == in_a_row - 1 {
                tokio::task::yield_now().await;
            }
        }
        for t in all {
            t.await.unwrap();
        }
        let (wall, cpu) = (start.elapsed(), cpu_ms() - before);
        let mut late: Vec<i64> = late.iter().map(|l| l.load(Ordering::Relaxed)).collect();
        late.sort_unstable();
        let early = late.iter().filter(|l| **l < 0).count();
        let at = |p: f64| late[(p * (late.len() - 1) as f64) as usize] as f64 / 1e6;
        Found {
            value: wall.as_secs_f64() / ideal.as_secs_f64(),
            unit: "x",
            extra: vec![("p99_ms", at(0.99)), ("max_ms", at(1.0)), ("cpu_s", cpu / 1e3), ("early", early as f64)],
        }
    })
}

async fn blocking_calls(count: usize) {
    for i in 0..count {
        require(tokio::task::spawn_blocking(move || i).await.unwrap() == i, "blocking");
    }
}

pub fn blocking_call(workers: usize, s: &Sizes) -> Found {
    let rounds = s.get("rounds");
    on(workers, async move {
        blocking_calls(100).await;
        let start = Instant::now();
        blocking_calls(rounds).await;
        Found { value: ns_each(rounds, start) / 1e3, unit: "us", extra: vec![] }
    })
}
