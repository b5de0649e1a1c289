// SPDX-License-Identifier: BSL-1.0

use crate::{ns_each, on, require, Found, Sizes};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, Notify, OnceCell, Semaphore};
use tokio::task::JoinHandle;

pub fn mutex_shared(workers: usize, s: &Sizes) -> Found {
    let (fibers, each) = (s.get("fibers"), s.get("each"));
    on(workers, async move {
        let counter = Arc::new(Mutex::new(0));
        let add = |counter: Arc<Mutex<usize>>| async move {
            for _ in 0..each {
                *counter.lock().await += 1;
            }
        };
        let start = Instant::now();
        let all: Vec<JoinHandle<()>> = (0..fibers).map(|_| tokio::spawn(add(counter.clone()))).collect();
        for t in all {
            t.await.unwrap();
        }
        let ns = ns_each(fibers * each, start);
        require(*counter.lock().await == fibers * each, "counter");
        Found::ns(ns)
    })
}

pub fn mutex_alone(workers: usize, s: &Sizes) -> Found {
    let count = s.get("count");
    on(workers, async move {
        let m = Mutex::new(());
        let start = Instant::now();
        for _ in 0..count {
            drop(m.lock().await);
        }
        Found::ns(ns_each(count, start))
    })
}

pub fn semaphore_alone(workers: usize, s: &Sizes) -> Found {
    let count = s.get("count");
    on(workers, async move {
        let permits = Semaphore::new(1);
        let start = Instant::now();
        for _ in 0..count {
            drop(permits.acquire().await.unwrap());
        }
        Found::ns(ns_each(count, start))
    })
}

async fn round_trips(there: &Notify, back: &Notify, count: usize) {
    for _ in 0..count {
        there.notify_one();
        back.notified().await;
    }
}

pub fn notify_in_turns(workers: usize, s: &Sizes) -> Found {
    let rounds = s.get("rounds");
    on(workers, async move {
        let (there, back) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (asked, answer) = (there.clone(), back.clone());
        tokio::spawn(async move {
            loop {
                asked.notified().await;
                answer.notify_one();
            }
        });
        round_trips(&there, &back, 1000).await;
        let start = Instant::now();
        round_trips(&there, &back, rounds).await;
        Found::ns(ns_each(rounds, start))
    })
}

pub fn once_get(workers: usize, s: &Sizes) -> Found {
    let count = s.get("count");
    on(workers, async move {
        let cell = OnceCell::new();
        cell.get_or_init(|| async { 1 }).await;
        let mut sum = 0;
        let start = Instant::now();
        for _ in 0..count {
            sum += cell.get().unwrap();
        }
        let ns = ns_each(count, start);
        require(sum == count, "once");
        Found::ns(ns)
    })
}
