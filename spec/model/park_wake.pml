/* SPDX-License-Identifier: BSL-1.0
 *
 * Park and wake: runtime/src/task/state.hpp, wait/wait.cpp, wait/wake.cpp, cancel/scope.cpp, and commit_park in
 * sched/runner.hpp. One frame, which is recycled for LIVES fibers one after another; each waits ROUNDS times.
 *
 * Shown
 *   PW1  One enqueue per transition to RUNNABLE, by whoever made it; never queued twice (enqueue). F2, F4.
 *   PW2  Nobody is on the stack of a fiber that is resumed (resume). F1, F5.
 *   PW3  It is not resumed while a partner moves its element (resume); user code never runs while its node is listed.
 *   PW4  A claim claims the wait its node was listed for (partner).
 *   PW5  A wake that begins after its wait is over changes nothing. One that begins before may end a later wait only if
 *        the low bits of the ticket have come round meanwhile; then it is a wake for nothing, and harmless (waker).
 *   PW6  No wake, element or cancellation is lost: each fiber ends, and every element is received or still there.
 *        (What waits in vain is an "invalid end state".) Nobody is woken for nothing for ever (LIVE).
 *
 * Steps, and what they stand for
 *   waits        wait_as_fiber, enter_parking, park_fiber     commits   scheduler::commit_park, fiber_word::commit_park
 *   waker        fiber_wake, fiber_word::wake                 partner   claim_first, claim, complete (any waitable)
 *   timer, arm   timekeeper, wait_timer                       canceller cancel_once, sweep, wake_for_cancel
 *   ends         conclude, finish; the next spawn's prepare   stale     a waker kept longer than its wait
 * A CAS loop is one step that acts on the word it finds. The ticket in the word has 2 bits; the frame's does not wrap.
 *
 * Left out: memory orders (the explorer has them), plain threads (they commit on their own stack,
 * which nobody else resumes), which queue an entry is in, scopes other than the fiber's own.
 *
 * run: a partner, three workers          -DWORKERS=3 -DLIVES=1 -DROUNDS=2 -DSENDS=2 -DSTALE=2
 * run: partner, timer, stale holder      -DWORKERS=2 -DLIVES=2 -DROUNDS=1 -DSENDS=2 -DSTALE=1 -DTIMER
 * run: the ticket wraps                  -DWORKERS=1 -DLIVES=2 -DROUNDS=3 -DSENDS=0 -DSTALE=2 -DTIMER
 * run: partner and canceller             -DWORKERS=2 -DLIVES=2 -DROUNDS=1 -DSENDS=1 -DSTALE=0 -DCANCELS=2
 * run: partner, timer and canceller      -DWORKERS=2 -DLIVES=1 -DROUNDS=2 -DSENDS=1 -DSTALE=0 -DTIMER -DCANCELS=1
 * run: no cycle without progress         -DLIVE -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=1 -DSTALE=0 -DTIMER -DCANCELS=1 -DSHIELDED
 *
 * mutant: separate_pending   -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DTIMER: wake_pending in a byte beside the state
 * mutant: no_ticket          -DWORKERS=1 -DLIVES=1 -DROUNDS=2 -DSENDS=2 -DSTALE=1: wakes compare no ticket
 * mutant: ticket_outside     -DWORKERS=1 -DLIVES=1 -DROUNDS=2 -DSENDS=2 -DSTALE=1: the ticket is compared, then the state is changed
 * mutant: no_full_ticket     -DWORKERS=1 -DLIVES=2 -DROUNDS=3 -DSENDS=0 -DSTALE=1 -DTIMER: only the low bits are compared
 * mutant: ticket_reset       -DWORKERS=1 -DLIVES=2 -DROUNDS=1 -DSENDS=2 -DSTALE=1: a recycled frame starts again with ticket 0
 * mutant: early_commit       -DWORKERS=2 -DLIVES=1 -DROUNDS=1 -DSENDS=1 -DSTALE=0: the park is committed before the switch
 * mutant: plain_commit       -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=1 -DSTALE=0: the commit looks, then stores
 * mutant: enqueue_parking    -DWORKERS=2 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DTIMER: a waker enqueues a PARKING fiber
 * mutant: two_claims         -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=1 -DSTALE=0 -DTIMER: a PARKING fiber can be claimed twice
 * mutant: complete_first     -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=1 -DSTALE=0: the partner is let run before its element has moved
 * mutant: claim_unlocked     -DWORKERS=1 -DLIVES=1 -DROUNDS=5 -DSENDS=1 -DSTALE=0 -DTIMER: the node is found under the lock, claimed without it
 * mutant: no_unpublish       -DWORKERS=1 -DLIVES=1 -DROUNDS=2 -DSENDS=1 -DSTALE=0 -DTIMER: a fiber that is woken spuriously stays listed
 * mutant: no_epoch_check     -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DCANCELS=1: the committer does not look at the epoch
 * mutant: epoch_read_late    -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DCANCELS=1: the fiber looks at its scopes, then reads the epoch
 * mutant: sweep_first        -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DCANCELS=1: the canceller sweeps, then moves the epoch
 * mutant: epoch_read_once    -DLIVE -DWORKERS=1 -DLIVES=1 -DROUNDS=1 -DSENDS=0 -DSTALE=0 -DTIMER -DCANCELS=1 -DSHIELDED: a fiber that is woken spuriously does not read the epoch again, and is woken for ever
 */
#ifndef CANCELS
#define CANCELS 0                       /* fibers 1 … CANCELS are cancelled */
#endif
#ifdef SHIELDED                         /* the wait is not a cancellation point: joins, shields */
#define must_end false
#else
#define must_end (requested == life)
#endif
#define low(t) ((t) & 3)

mtype = { RUNNABLE, RUNNING, PARKING, PARKED, WAKING, DONE };

/* the word */
mtype state = RUNNABLE;
byte low_ticket;
bool notified, claimed;
bool pending;                           /* only of the mutant separate_pending */
byte ticket;                            /* the frame's, in full */

/* the node, on the fiber's stack; listed: under the waitable's lock */
bool listed, outcome;
byte node_ticket;

/* the timer: there, with somebody to wake, and fired. Under the timekeeper's mutex. */
bool timer_set, timer_armed, fired;
byte timer_ticket, timer_wait;

bool lock, scope_lock;
byte in_store, sent, received;          /* elements */
byte epoch, requested;                  /* requested: the life that was cancelled */
bool linked;

/* the fiber between two runs */
byte life = 1, rounds = ROUNDS;
byte accounted, seen = 255;
bool waits_for_wake;                    /* where it goes on when it is resumed */

/* ghosts */
byte queued = 1, on_stack, wait;        /* wait: numbers all waits of the frame, and is never reset */
bool moving, over;

inline enqueue() { d_step { assert(state == RUNNABLE && queued == 0); queued++ } }
inline acquire(l) { atomic { !l -> l = true } }

#if defined(MUTANT_no_full_ticket) || defined(MUTANT_no_ticket)
#define looks_current(t) true
#else
#define looks_current(t) (ticket == (t))
#endif
/* fiber_wake with the full ticket t, of the wait w */
inline waker(t, w) {
  d_step { current = (wait == w); must = false };
  if
  :: looks_current(t) ->
     wake_word(low(t));
     if
     :: must ->
        if
        :: wait == w
        :: wait != w -> assert(current && low(wait) == low(w))            /* PW5: the low bits came round */
        fi;
        enqueue(); must = false
     :: else
     fi
  :: else
  fi;
  current = false
}

/* fiber_word::wake */
#if defined(MUTANT_no_ticket) || defined(MUTANT_ticket_outside)
#define same(t) true
#else
#define same(t) (low_ticket == (t))
#endif
#ifdef MUTANT_two_claims
#define claimable (state == PARKING)
#else
#define claimable (state == PARKING && !claimed)
#endif
inline wake_word(t) {
#ifdef MUTANT_separate_pending
  if
  :: state == PARKING -> pending = true
  :: state == PARKED -> atomic { if :: state == PARKED -> state = RUNNABLE; must = true :: else fi }
  :: else
  fi
#else
  d_step {
    if
    :: same(t) && state == PARKED -> state = RUNNABLE; must = true
    :: same(t) && claimable ->
#ifdef MUTANT_enqueue_parking
       state = RUNNABLE; must = true
#else
       claimed = true; notified = true
#endif
    :: else
    fi
  }
#endif
}

/* fiber_word::commit_park, and what the committer does next. */
inline commits() {
  d_step { mine = accounted; my_ticket = ticket; my_wait = wait; must = false };
#ifdef MUTANT_separate_pending
  state = PARKED;
  if
  :: pending -> pending = false; d_step { if :: state == PARKED -> state = RUNNABLE; must = true :: else fi }
  :: else
  fi;
#else
#ifdef MUTANT_plain_commit
  d_step { saw_notified = notified; saw_claimed = claimed };
  d_step { notified = saw_notified; claimed = saw_claimed;
#else
  d_step {
#endif
    if
    :: notified -> state = RUNNABLE; notified = false; claimed = false; must = true
    :: !notified && claimed -> state = WAKING
    :: else -> state = PARKED
    fi
  };
#endif
  if
  :: must -> enqueue(); must = false
  :: !must ->
#ifndef MUTANT_no_epoch_check
     if
     :: epoch != mine -> waker(my_ticket, my_wait)                        /* step 3 of cancel_scope.hpp */
     :: else
     fi
#else
     skip
#endif
  fi;
  d_step { mine = 0; my_ticket = 0; my_wait = 0 }
}

proctype worker() {
  byte mine, my_ticket, my_wait;
  bool must, current, saw_notified, saw_claimed;
idle:
  if
  :: atomic { queued > 0 -> queued--; assert(state == RUNNABLE && on_stack == 0 && !moving) }  /* PW1, PW2, PW3 */
  :: over -> goto home
  fi;
  d_step { on_stack++; state = RUNNING };                                 /* runnable_to_running */
  if :: waits_for_wake -> waits_for_wake = false; goto woken :: else fi;

next_wait:
#ifdef MUTANT_epoch_read_once
  accounted = epoch;
#endif
  atomic { timer_set = true; timer_armed = false; fired = false };
again:
#ifdef MUTANT_epoch_read_late
  if :: must_end -> goto ends :: else fi;
  accounted = epoch; seen = accounted;
#else
#ifndef MUTANT_epoch_read_once
  accounted = epoch;
#endif
  if
  :: seen != accounted -> if :: must_end -> goto ends :: else -> seen = accounted fi
  :: else
  fi;
#endif
  acquire(scope_lock); linked = true; scope_lock = false;
  d_step { ticket++; wait++; node_ticket = ticket; outcome = false };     /* enter_parking */
  d_step { state = PARKING; notified = false; claimed = false; pending = false; low_ticket = low(ticket) };
  acquire(lock);                                                          /* publish */
  assert(!listed);
  if
  :: in_store > 0 ->
     d_step { in_store--; received++ };
     lock = false;
     d_step { assert(notified || !claimed); state = RUNNING; notified = false; claimed = false };
     goto served
  :: else -> listed = true; lock = false
  fi;
#ifdef TIMER
  d_step { timer_ticket = ticket; timer_wait = wait; timer_armed = true; current = fired };  /* arm */
  if :: current -> waker(ticket, wait) :: else fi;
#endif
#ifndef MUTANT_separate_pending
  d_step {                                                                /* woken before it has left */
    if :: notified -> state = RUNNING; notified = false; claimed = false; must = true :: else -> must = false fi
  };
  if :: must -> must = false; goto woken :: else fi;
#endif
  waits_for_wake = true;
#ifdef MUTANT_early_commit
  commits();
  on_stack--;
#else
  on_stack--;                                                             /* the switch */
  commits();
#endif
  goto idle;

woken:
  if :: outcome -> received++; goto served :: else fi;
#ifndef MUTANT_no_unpublish
  acquire(lock); listed = false; lock = false;
#endif
  if :: fired -> goto served :: else -> goto again fi;                     /* too late, or for nothing */

served:
progress_served:
  assert(!listed);                                                        /* PW3: user code */
  d_step { timer_set = false; timer_armed = false; rounds-- };            /* ~wait_timer */
  if :: rounds > 0 -> goto next_wait :: else fi;

ends:
progress_ends:
  assert(!listed);
  d_step { timer_set = false; timer_armed = false };
  acquire(scope_lock); linked = false; scope_lock = false;
  d_step { state = DONE; on_stack-- };
  if
  :: life == LIVES -> over = true
  :: else ->                                                              /* the frame is somebody else's */
     d_step {
       life++; rounds = ROUNDS; seen = 255; waits_for_wake = false;
#ifdef MUTANT_ticket_reset
       ticket = 0;
#endif
       state = RUNNABLE; low_ticket = low(ticket); notified = false; claimed = false
     };
     enqueue()
  fi;
  goto idle;
home:
  skip
}

/* Brings SENDS elements: to who waits, else to the store. */
inline try_claim() {
  d_step {
    if
    :: low_ticket == low(mine) && state == PARKED -> state = WAKING; claimed = true; won = true
    :: low_ticket == low(mine) && claimable -> claimed = true; won = true
    :: else -> won = false
    fi;
    if :: won -> assert(my_wait == wait) :: else fi                       /* PW4 */
  }
}
inline completes() {
  d_step {
    if
    :: state == WAKING -> state = RUNNABLE; claimed = false; must = true
    :: else -> assert(state == PARKING); notified = true
    fi
  };
  if :: must -> must = false; enqueue() :: else fi
}
inline hands_over() { moving = true; d_step { moving = false; outcome = true } }

proctype partner() {
  byte sends = SENDS, mine, my_wait;
  bool won, must, held;
  do
  :: sends == 0 -> break
  :: else ->
     sends--; sent++;
     acquire(lock);
     held = true; won = false;
     if
     :: listed ->
        d_step { listed = false; mine = node_ticket; my_wait = wait };    /* claim_first */
#ifdef MUTANT_claim_unlocked
        lock = false; held = false;
#endif
        try_claim();
        if
        :: won ->
#ifdef MUTANT_complete_first
           moving = true; completes(); d_step { moving = false; outcome = true }
#else
           hands_over()
#endif
        :: else
        fi
     :: else
     fi;
     if :: !held -> acquire(lock) :: else fi;
     if :: !won -> in_store++ :: else fi;
     lock = false;
#ifndef MUTANT_complete_first
     if :: won -> completes() :: else fi;
#endif
     d_step { mine = 0; my_wait = 0; won = false; held = false }
  od
}

proctype stale() {                      /* takes a copy of a waker at any time, and uses it at any later time */
  byte t, w;
  bool must, current;
  if
  :: atomic { state == PARKING || state == PARKED -> t = ticket; w = wait }; waker(t, w)
  :: over
  fi
}

proctype timer() {
  byte t, w;
  bool must, current;
  do
  :: atomic { timer_set && !fired -> fired = true; if :: timer_armed -> t = timer_ticket; w = timer_wait :: else fi };
     if :: w != 0 -> waker(t, w) :: else fi;
     d_step { t = 0; w = 0 }
  :: over -> break
  od
}

proctype canceller() {
  byte whom = 1, t;
  bool must, current;
  do
  :: whom > CANCELS -> break
  :: whom <= CANCELS ->
     if :: life >= whom :: over -> break fi;
     requested = whom;                                                    /* 1 */
#ifndef MUTANT_sweep_first
     epoch++;                                                             /* 2 */
#endif
     acquire(scope_lock);                                                 /* 3 */
     if
     :: linked && life == whom ->
        t = low_ticket;
        wake_word(t);
        if :: must -> must = false; assert(life == whom); enqueue() :: else fi;
        t = 0
     :: else
     fi;
     scope_lock = false;
#ifdef MUTANT_sweep_first
     epoch++;
#endif
     whom++
  od
}

init {
  byte i;
  atomic {
    i = 0; do :: i < WORKERS -> run worker(); i++ :: else -> break od;
    i = 0; do :: i < STALE -> run stale(); i++ :: else -> break od;
    i = 0;
#if SENDS > 0
    run partner();
#endif
#ifdef TIMER
    run timer();
#endif
#if CANCELS > 0
    run canceller();
#endif
  };
  _nr_pr == 1 -> assert(over && queued == 0 && on_stack == 0 && !lock && sent == received + in_store)  /* PW6 */
}
