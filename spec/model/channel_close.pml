/* SPDX-License-Identifier: BSL-1.0
 *
 * A channel that is closed while fibers send, receive and wait: channel/src/core.cpp and operations.cpp.
 *
 * Shown, with the numbers of core.hpp
 *   C1  Nothing is admitted after the close: no send finds a receiver, a slot or the list (admits, lists).
 *   C2  Elements of one sender are received in the order they were sent (delivers).
 *   C3  Nobody who can be claimed waits for what is there (settled, after every critical section).
 *   C4  A partner is told exactly once, after it was claimed (tells).
 *   C6  After the second step of the close no sender is listed, nor a receiver: everybody ends, or it is an "invalid end state".
 *   Every element whose send said true is received exactly once, every other one never (init). No element is received
 *   after a receiver was told "closed" (delivers).
 *
 * Steps, and what they stand for
 *   an atomic block   a critical section under the channel's lock. Attempts before publish (send_slowly, try_send, the
 *                     quick paths) are the same section without the list, and what looks without the lock (may_send,
 *                     may_recv) only decides whether to make one: nothing new, so here everybody publishes at once.
 *   tells             wake_batch, after the lock: one step a partner.
 *   sends, receives   send_slowly, recv_slowly, *_until: attempt, publish, wait, unpublish
 *   closes            close, in its two critical sections; the block for the elements may not be had (ALLOC_FAILS)
 *   disturber         timers and cancellations: wakes for nothing. The fiber tries again, or gives up.
 * Waits are those park_wake.pml has shown: PARKED, claimed (WAKING) and told, or woken for nothing; a fiber that is still
 * PARKING is claimed like a PARKED one. Left out: moves that throw, select, abandon, the biased lock.
 *
 * run: rendezvous                   -DSENDERS=2 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=1 -DDISTURB=2
 * run: buffer of one, two closers   -DSENDERS=2 -DEACH=2 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=2 -DDISTURB=0
 * run: two receivers, disturbed     -DSENDERS=1 -DEACH=2 -DRECEIVERS=2 -DCAP=1 -DCLOSERS=1 -DDISTURB=1
 * run: no memory for the elements   -DSENDERS=3 -DEACH=1 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=1 -DDISTURB=0 -DALLOC_FAILS
 *
 * mutant: skip_senders       -DSENDERS=1 -DEACH=1 -DRECEIVERS=0 -DCAP=0 -DCLOSERS=1 -DDISTURB=0: close forgets senders that wait
 * mutant: skip_receivers     -DSENDERS=0 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=1 -DDISTURB=0: close forgets receivers that wait
 * mutant: publish_blindly    -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=1 -DDISTURB=0: publish does not look at closed
 * mutant: admits_unlocked    -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=1 -DDISTURB=0: a send looks at closed before it takes the lock
 * mutant: close_unclaimed    -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=1 -DDISTURB=1: close wakes listed waiters without a claim
 * mutant: buffer_first       -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=0 -DDISTURB=0: a send takes the buffer although a receiver waits
 * mutant: no_refill          -DSENDERS=2 -DEACH=1 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=1 -DDISTURB=0: waiting senders do not move up
 * mutant: closed_first       -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=1 -DDISTURB=0: a receive looks at closed before the buffer
 * mutant: behind_first       -DSENDERS=1 -DEACH=2 -DRECEIVERS=1 -DCAP=1 -DCLOSERS=1 -DDISTURB=0: what was put behind the buffer is received before it
 * mutant: closes_twice       -DSENDERS=1 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=2 -DDISTURB=0: a second close does it all again
 * mutant: shelter_drops      -DSENDERS=2 -DEACH=1 -DRECEIVERS=1 -DCAP=0 -DCLOSERS=1 -DDISTURB=1: a send whose element did not fit behind the buffer returns true
 */
#define FIBERS (SENDERS + RECEIVERS)
#define ELEMENTS (SENDERS * EACH)

mtype = { NONE, DONE, CLOSED };         /* meeting */
mtype = { RUNNING, PARKED, WAKING };
mtype state[FIBERS], outcome[FIBERS];
byte element[FIBERS], place[FIBERS];    /* of the node */

bool closed;
byte places;
chan buffer = [CAP + 1] of { byte };
chan behind = [SENDERS + 1] of { byte };
chan senders = [SENDERS + 2] of { byte, byte };      /* place, fiber; sorted by place */
chan receivers = [RECEIVERS + 2] of { byte, byte };

byte at_work = FIBERS;
byte disturbs = DISTURB;
/* ghosts */
bool said_true[ELEMENTS + 1], received[ELEMENTS + 1];
byte last[SENDERS + 1];                 /* received from each sender */
bool told_closed;

#define number(s, k) ((s) * EACH + (k) + 1)
#define sender_of(e) (((e) - 1) / EACH)

inline delivers(e) {
  assert(e != 0 && !received[e] && !told_closed);
  received[e] = true;
  assert(e > last[sender_of(e)]);       /* C2 */
  last[sender_of(e)] = e
}
#define admits assert(!closed)          /* C1 */

/* wait_list::claim_first: into `who`, or 255. Drops who can't be claimed. */
inline claim_first(list) {
  who = 255;
  do
  :: who == 255 && len(list) > 0 ->
     list ? _, who;
     if :: state[who] == PARKED -> state[who] = WAKING :: else -> who = 255 fi
  :: else -> break
  od
}
inline settle(f, how) { outcome[f] = how; later = later | (1 << (f)) }
inline tells() {
  do
  :: later == 0 -> break
  :: later != 0 ->
     atomic {
       i = 0;
       do :: !(later & (1 << i)) -> i++ :: else -> break od;
       assert(state[i] == WAKING); state[i] = RUNNING;                    /* C4 */
       later = later & ~(1 << i); i = 0
     }
  od
}

inline meets_receiver(e) {
  claim_first(receivers);
  if :: who != 255 -> admits; delivers(e); element[who] = e; settle(who, DONE); how = DONE :: else fi
}
inline takes_slot(e) { if :: how == NONE && len(buffer) < CAP -> admits; buffer ! e; how = DONE :: else fi }

inline try_send(e) {
  how = NONE;
#if !defined(MUTANT_admits_unlocked)
  if :: closed -> how = CLOSED :: else fi;
#endif
#ifdef MUTANT_buffer_first
  takes_slot(e);
  if :: how == NONE -> meets_receiver(e) :: else fi
#else
  if :: how == NONE -> meets_receiver(e) :: else fi;
  takes_slot(e)
#endif
}

inline refill() {
  do
  :: len(buffer) < CAP && len(senders) > 0 ->
     claim_first(senders);
     if :: who != 255 -> buffer ! element[who]; settle(who, DONE) :: else fi
  :: else -> break
  od
}
inline takes(from) { from ? e; delivers(e); how = DONE }
inline try_recv() {
  how = NONE;
#ifdef MUTANT_closed_first
  if :: closed -> how = CLOSED :: else fi;
#endif
#ifdef MUTANT_behind_first
  if :: len(behind) > 0 -> takes(behind) :: else fi;
#endif
  if :: how == NONE && len(buffer) > 0 ->
        takes(buffer);
#ifndef MUTANT_no_refill
        refill()
#endif
     :: else
  fi;
  if :: how == NONE && len(behind) > 0 -> takes(behind) :: else fi;
  if :: how == NONE ->
        claim_first(senders);
        if :: who != 255 -> e = element[who]; delivers(e); settle(who, DONE); how = DONE :: else fi
     :: else
  fi;
  if :: how == NONE && closed -> how = CLOSED :: else fi;
  if :: how == CLOSED -> told_closed = true :: else fi
}

/* PARKING, then listed, in its place if it has one. */
inline lists(list) {
  assert(!closed);                      /* C1 */
  if :: place[me] == 0 -> places++; place[me] = places :: else fi;
  outcome[me] = NONE; state[me] = PARKED;
  list !! place[me], me
}
inline unlists(list) {
  if :: list ?? [_, eval(me)] -> list ?? _, eval(me) :: else fi
}

/* C3. A sender on a closed channel may wait for the second step of close. */
inline settled() {
  claimable_sender = false; claimable_receiver = false; i = 0;
  do
  :: i < FIBERS ->
     if :: state[i] == PARKED && i < SENDERS -> claimable_sender = true
        :: state[i] == PARKED && i >= SENDERS -> claimable_receiver = true
        :: else fi;
     i++
  :: else -> break
  od;
  assert(!claimable_receiver || (len(buffer) == 0 && len(behind) == 0 && !claimable_sender));
  assert(!claimable_sender || len(buffer) == CAP);
  i = 0; who = 0; claimable_sender = false; claimable_receiver = false
}

proctype sender(byte me) {
  byte k, e, i, who, later;
  bool claimable_sender, claimable_receiver;
  mtype how = NONE;
next:
  atomic { if :: k == EACH -> goto home :: else -> e = number(me, k); k++; place[me] = 0; how = NONE fi };
again:
#ifdef MUTANT_admits_unlocked
  if :: closed -> how = CLOSED; goto sent :: else fi;
#endif
  atomic {                                                                /* publish */
#ifdef MUTANT_publish_blindly
    how = NONE;
#else
    try_send(e);
#endif
    if :: how == NONE -> element[me] = e; lists(senders) :: else fi;
    settled()
  };
  tells();
  if
  :: how == NONE ->
     atomic { state[me] == RUNNING -> how = outcome[me] };
     if
     :: how == NONE ->                                                    /* woken for nothing, cancelled, too late */
        atomic { unlists(senders); settled() };
        if :: goto again :: goto next fi
     :: else
     fi
  :: else
  fi;
sent:
  atomic { if :: how == DONE -> said_true[e] = true :: else fi; e = 0; goto next };
home:
  at_work--
}

proctype receiver(byte me) {
  byte e, i, who, later;
  bool claimable_sender, claimable_receiver;
  mtype how = NONE;
next:
  atomic { place[me] = 0; e = 0; if :: how == CLOSED -> goto home :: else fi };
again:
  atomic { try_recv(); if :: how == NONE -> lists(receivers) :: else fi; settled() };
  tells();
  if
  :: how == NONE ->
     atomic { state[me] == RUNNING -> how = outcome[me] };
     if :: how == NONE -> atomic { unlists(receivers); settled() }; if :: goto again :: goto next fi :: else fi
  :: else
  fi;
  goto next;
home:
  at_work--
}

/* What close does with one who waits; `can`: it was claimed. */
inline claims_for_close(list) {
#ifdef MUTANT_close_unclaimed
  if :: len(list) > 0 -> list ? _, who; state[who] = WAKING :: else -> who = 255 fi
#else
  claim_first(list)
#endif
}

proctype closer() {
  byte i, n, who, later;
  bool claimable_sender, claimable_receiver, first;
  atomic {
    first = !closed;
#ifdef MUTANT_closes_twice
    first = true;
#endif
    if
    :: first ->
       closed = true;
#ifndef MUTANT_skip_receivers
       do
       :: claims_for_close(receivers);
          if :: who == 255 -> break :: else -> told_closed = true; settle(who, CLOSED) fi
       od;
#endif
       n = len(senders);
       settled()
    :: else
    fi
  };
  tells();
#ifndef MUTANT_skip_senders
  if
  :: first && n > 0 ->
#ifdef ALLOC_FAILS
     if :: true :: n = 0 fi;                                              /* operator new */
#endif
     atomic {
#ifdef MUTANT_closes_twice
       do :: len(behind) > 0 -> behind ? _ :: else -> break od;            /* behind_.use */
#endif
#ifdef MUTANT_shelter_drops
       n = n - 1;
#endif
       do
       :: claims_for_close(senders);
          if
          :: who == 255 -> break
          :: who != 255 && len(behind) < n -> behind ! element[who]; settle(who, DONE)
#ifdef MUTANT_shelter_drops
          :: who != 255 && len(behind) >= n -> settle(who, DONE)
#else
          :: who != 255 && len(behind) >= n -> settle(who, CLOSED)
#endif
          fi
       od;
       settled()
     };
     tells()
  :: else
  fi
#endif
}

proctype disturber() {
  byte i;
  do
  :: disturbs == 0 -> break
  :: at_work == 0 -> break
  :: disturbs > 0 ->
     disturbs--;
     select(i : 0 .. FIBERS - 1);
     atomic { if :: state[i] == PARKED -> state[i] = RUNNING :: else fi; i = 0 }
  od
}

init {
  byte i;
  atomic {
    i = 0;
    do :: i < FIBERS -> state[i] = RUNNING; outcome[i] = NONE; i++ :: else -> break od;
    i = 0;
#if SENDERS > 0
    do :: i < SENDERS -> run sender(i); i++ :: else -> break od;
#endif
    do :: i < FIBERS -> run receiver(i); i++ :: else -> break od;
    i = 0;
    do :: i < CLOSERS -> run closer(); i++ :: else -> break od;
#if DISTURB > 0
    run disturber();
#endif
    i = 1
  };
  _nr_pr == 1;
  assert(len(senders) == 0 && len(receivers) == 0);
#if RECEIVERS > 0
  do
  :: i <= ELEMENTS -> assert(said_true[i] == received[i]); i++
  :: else -> break
  od
#endif
}
