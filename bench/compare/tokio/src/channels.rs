// SPDX-License-Identifier: BSL-1.0

use crate::{ns_each, on, on_stealing, require, Found, Sizes};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::sync::{mpsc, watch};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

fn tree(up: mpsc::Sender<usize>, first: usize, size: usize) -> Boxed {
    Box::pin(async move {
        if size == 1 {
            up.send(first).await.unwrap();
            return;
        }
        let (tx, mut rx) = mpsc::channel(1);
        for i in 0..10 {
            tokio::spawn(tree(tx.clone(), first + i * (size / 10), size / 10));
        }
        let mut sum = 0;
        for _ in 0..10 {
            sum += rx.recv().await.unwrap();
        }
        up.send(sum).await.unwrap();
    })
}

async fn skynet_sum(leaves: usize) -> usize {
    let (tx, mut rx) = mpsc::channel(1);
    tree(tx, 0, leaves).await;
    rx.recv().await.unwrap()
}

pub fn skynet(workers: usize, s: &Sizes) -> Found {
    let leaves = s.get("leaves");
    on_stealing(workers, async move {
        require(skynet_sum(1000).await == 499_500, "skynet");
        let start = Instant::now();
        let sum = skynet_sum(leaves).await;
        let ns = ns_each(leaves, start);
        require(sum == leaves * (leaves - 1) / 2, "skynet");
        Found::ns(ns)
    })
}

async fn round_trips(there: &mpsc::Sender<usize>, back: &mut mpsc::Receiver<usize>, count: usize) {
    for i in 0..count {
        there.send(i).await.unwrap();
        require(back.recv().await == Some(i), "echo");
    }
}

pub fn ping_pong(workers: usize, s: &Sizes) -> Found {
    let rounds = s.get("rounds");
    on(workers, async move {
        let (there, mut inbox) = mpsc::channel(1);
        let (outbox, mut back) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(v) = inbox.recv().await {
                outbox.send(v).await.unwrap();
            }
        });
        round_trips(&there, &mut back, 1000).await;
        let start = Instant::now();
        round_trips(&there, &mut back, rounds).await;
        Found::ns(ns_each(rounds, start))
    })
}

async fn one_to_one(capacity: usize, messages: usize) -> usize {
    let (tx, mut rx) = mpsc::channel(capacity);
    let receiver = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(v) = rx.recv().await {
            sum += v;
        }
        sum
    });
    tokio::spawn(async move {
        for i in 0..messages {
            tx.send(i).await.unwrap();
        }
    });
    receiver.await.unwrap()
}

async fn many_to_many(capacity: usize, senders: usize, receivers: usize, each: usize) -> usize {
    let (tx, rx) = async_channel::bounded(capacity);
    let mut all = Vec::new();
    for _ in 0..receivers {
        let rx = rx.clone();
        all.push(tokio::spawn(async move {
            let mut sum = 0;
            while let Ok(v) = rx.recv().await {
                sum += v;
            }
            sum
        }));
    }
    for _ in 0..senders {
        let tx = tx.clone();
        tokio::spawn(async move {
            for i in 0..each {
                tx.send(i).await.unwrap();
            }
        });
    }
    drop(tx);
    let mut total = 0;
    for t in all {
        total += t.await.unwrap();
    }
    total
}

pub fn stream(workers: usize, s: &Sizes) -> Found {
    let (capacity, senders, receivers) = (s.get("capacity"), s.get("senders"), s.get("receivers"));
    let each = s.get("messages") / senders;
    on(workers, async move {
        let start = Instant::now();
        let total = if senders == 1 && receivers == 1 {
            one_to_one(capacity, each).await
        } else {
            many_to_many(capacity, senders, receivers, each).await
        };
        let ns = ns_each(each * senders, start);
        require(total == senders * (each * (each - 1) / 2), "sum of messages");
        Found::ns(ns)
    })
}

pub fn ring(workers: usize, s: &Sizes) -> Found {
    let (members, laps) = (s.get("members"), s.get("laps"));
    on(workers, async move {
        let (front, mut last) = mpsc::channel::<usize>(1);
        for _ in 1..members {
            let (tx, rx) = mpsc::channel(1);
            let mut inbox = std::mem::replace(&mut last, rx);
            tokio::spawn(async move {
                while let Some(v) = inbox.recv().await {
                    tx.send(v + 1).await.unwrap();
                }
            });
        }
        let mut start = Instant::now();
        for lap in 0..=laps {
            if lap == 1 {
                start = Instant::now(); // everybody has started and waits
            }
            front.send(lap).await.unwrap();
            require(last.recv().await == Some(lap + members - 1), "ring");
        }
        Found::ns(ns_each(members * laps, start))
    })
}

fn nth_prime(n: usize) -> usize {
    let mut primes: Vec<usize> = Vec::new();
    let mut i = 2;
    while primes.len() < n {
        if primes.iter().all(|p| i % p != 0) {
            primes.push(i);
        }
        i += 1;
    }
    primes[n - 1]
}

pub fn sieve(workers: usize, s: &Sizes) -> Found {
    let primes = s.get("primes");
    on(workers, async move {
        let start = Instant::now();
        let (tx, mut rx) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut i = 2;
            while tx.send(i).await.is_ok() {
                i += 1;
            }
        });
        let mut last = 0;
        for _ in 0..primes {
            let prime = rx.recv().await.unwrap();
            last = prime;
            let (tx, next) = mpsc::channel(1);
            let mut inbox = std::mem::replace(&mut rx, next);
            tokio::spawn(async move {
                while let Some(v) = inbox.recv().await {
                    if v % prime != 0 && tx.send(v).await.is_err() {
                        break;
                    }
                }
            });
        }
        let value = start.elapsed().as_nanos() as f64 / 1e6;
        require(last == nth_prime(primes), "sieve");
        Found { value, unit: "ms", extra: vec![] }
    })
}

async fn watch_round_trips(there: &watch::Sender<usize>, back: &mut watch::Receiver<usize>, count: usize) {
    for i in 1..=count {
        there.send(i).unwrap();
        back.changed().await.unwrap();
        require(*back.borrow() == i, "watch");
    }
}

pub fn watch_in_turns(workers: usize, s: &Sizes) -> Found {
    let rounds = s.get("rounds");
    on(workers, async move {
        let (there, mut asked) = watch::channel(0);
        let (answer, mut back) = watch::channel(0);
        tokio::spawn(async move {
            while asked.changed().await.is_ok() {
                let v = *asked.borrow();
                answer.send(v).unwrap();
            }
        });
        watch_round_trips(&there, &mut back, 1000).await;
        let start = Instant::now();
        watch_round_trips(&there, &mut back, rounds).await;
        Found::ns(ns_each(rounds, start))
    })
}
