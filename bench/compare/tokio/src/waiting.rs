// SPDX-License-Identifier: BSL-1.0

use crate::{ns_each, on, require, resident_bytes, Found, Sizes};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Spawns tasks that wait, and returns when all of them do (or are about to).
async fn park(fibers: usize) -> Vec<(oneshot::Sender<u8>, JoinHandle<()>)> {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut all = Vec::with_capacity(fibers);
    for i in 0..fibers {
        let (tx, rx) = oneshot::channel();
        let inside = inside.clone();
        let task = tokio::spawn(async move {
            inside.fetch_add(1, Ordering::Relaxed);
            let _ = rx.await;
        });
        all.push((tx, task));
        if i % 1000 == 999 {
            tokio::task::yield_now().await;
        }
    }
    while inside.load(Ordering::SeqCst) != fibers {
        tokio::task::yield_now().await;
    }
    all
}

pub fn parked(workers: usize, s: &Sizes) -> Found {
    let fibers = s.get("fibers");
    on(workers, async move {
        let before = resident_bytes();
        let mut start = Instant::now();
        let all = park(fibers).await;
        let value = ns_each(fibers, start);
        let bytes = (resident_bytes() - before) / fibers as f64;
        start = Instant::now();
        let mut tasks = Vec::with_capacity(fibers);
        for (tx, task) in all {
            let _ = tx.send(1);
            tasks.push(task);
        }
        for t in tasks {
            t.await.unwrap();
        }
        let wake = ns_each(fibers, start);
        Found { value, unit: "ns", extra: vec![("bytes", bytes), ("wake", wake)] }
    })
}

pub fn wake(workers: usize, s: &Sizes) -> Found {
    let rounds = s.get("rounds");
    on(workers, async move {
        let (tx, mut rx) = mpsc::channel::<Instant>(1);
        let caller = std::thread::spawn(move || {
            for _ in 0..rounds {
                std::thread::sleep(Duration::from_millis(1));
                tx.blocking_send(Instant::now()).unwrap();
            }
        });
        let mut late = Vec::with_capacity(rounds);
        while let Some(called) = rx.recv().await {
            late.push(called.elapsed().as_nanos() as f64 / 1e3);
        }
        caller.join().unwrap();
        require(late.len() == rounds, "wakes");
        late.sort_by(|a, b| a.total_cmp(b));
        let at = |p: f64| late[(p * (rounds - 1) as f64) as usize];
        Found { value: at(0.5), unit: "us", extra: vec![("p99", at(0.99)), ("max", at(1.0))] }
    })
}

pub fn cpu_ms() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 * 1e3 + t.tv_nsec as f64 / 1e6
}

pub fn idle(workers: usize, s: &Sizes) -> Found {
    let (fibers, ms) = (s.get("fibers"), s.get("ms"));
    on(workers, async move {
        let all = park(fibers).await;
        let (tx, rx) = oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let before = cpu_ms();
            std::thread::sleep(Duration::from_millis(ms as u64));
            let _ = tx.send(cpu_ms() - before);
        });
        let value = rx.await.unwrap();
        drop(all);
        Found { value, unit: "ms", extra: vec![] }
    })
}
