/* SPDX-License-Identifier: BSL-1.0
 *
 * Who sleeps, who searches, who must be woken: runtime/src/sched/idle_set.hpp, and sleep, found_work, next
 * (idle.cpp), signal, wake_one and wake_claimed (worker_pool.hpp, worker_pool.cpp).
 *
 * Shown
 *   I1  Nobody is counted in or out twice: no count goes below zero, and at the end each worker is counted once.
 *   I3  No entry stays queued while a worker sleeps and no other searches. (Also when one fiber or several hold their workers
 *       for as long as others are queued, HOLD. An end in which entries are left is a deadlock to Spin, "invalid end state".)
 *   Every entry is run once.
 *
 * The StoreLoad is explicit. An entry that a thread publishes is first in that thread's store buffer (buf), where only
 * it sees it; it gets to memory (ring, injection) at any later moment, at the thread's next RMW on the counts, or at a
 * fence. There are two kinds of fences (platform/fence.hpp):
 *   FULL        light_fence and heavy_fence empty the caller's buffer.
 *   otherwise   membarrier: light_fence does nothing, heavy_fence empties the buffers of all threads, one after another.
 *
 * Steps: every load and RMW of counts, bitmap, a queue's length, a token is a step of its own.
 * Left out: what is in the queues but their lengths (deque.pml), the LIFO slot (nobody is woken for it: its owner comes
 * to it next, or the monitor opens it), promotion and retirement, the number of rounds a searcher makes (one here),
 * attention but for the stop at the end. Counts and bitmap are sequentially consistent, as in the code.
 *
 * run: membarrier                         -DNW=2 -DNP=1 -DSPAWNS=2 -DHOLD=1
 * run: full fences                        -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=1 -DFULL
 * run: three workers, searcher limit      -DNW=3 -DNP=1 -DSPAWNS=0 -DHOLD=0 -DFULL
 * run: threads that can't start           -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=0 -DUNSTARTED=1 -DFAILS=2 -DFULL
 * run: no cycle without progress          -DLIVE -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=0 -DFULL
 *
 * mutant: no_light_fence     -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=1 -DFULL: a producer does not order its entry before its look
 * mutant: no_heavy_fence     -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=1: a sleeper looks again without the fence
 * mutant: signal_first       -DNW=2 -DNP=1 -DSPAWNS=0 -DHOLD=0: a producer looks for sleepers, then publishes
 * mutant: look_once          -DNW=2 -DNP=1 -DSPAWNS=0 -DHOLD=0: a sleeper does not look again after it has announced itself
 * mutant: no_outside_fence   -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=1: a thread outside orders as lightly as a worker
 * mutant: never_interrupts   -DNW=3 -DNP=1 -DSPAWNS=2 -DHOLD=2: the last searcher interrupts nobody though another worker runs
 * mutant: no_last_searcher   -DNW=2 -DNP=2 -DSPAWNS=1 -DHOLD=1: the last searcher does not look again
 * mutant: bit_first          -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=0: a sleeper sets its bit before it counts itself in
 * mutant: claim_not_counted  -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=0: a claimed worker is not counted as searching
 * mutant: no_self_count      -DNW=2 -DNP=1 -DSPAWNS=1 -DHOLD=0: a worker that is woken without a claim does not count itself out
 * mutant: no_signal_for_rest -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=1: a worker that takes a batch wakes no other for the rest
 * mutant: failed_start_unseen  -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=0 -DUNSTARTED=1 -DFAILS=1 -DFULL: after a claim is given back the queues are not checked again
 * mutant: second_failure_unseen  -DNW=2 -DNP=2 -DSPAWNS=0 -DHOLD=0 -DUNSTARTED=1 -DFAILS=2 -DFULL: the same in the second pass
 */
#ifndef UNSTARTED
#define UNSTARTED 0                    /* how many of the workers, from the last, have no thread yet */
#endif
#ifndef FAILS
#define FAILS 0                        /* how often a thread can't be started */
#endif
#define THREADS (NW + NP)              /* workers, then producers outside */
#define has(mask, i) ((mask) & (1 << (i)))

byte ring[NW], injection;              /* lengths, in memory */
byte buf[THREADS];                     /* entries in store buffers: a worker's are for its ring */
byte parked, searching, bitmap;        /* counts_ and bitmap_ */
bool stop, token[NW];                       /* thread_parker */
byte threads = (1 << (NW - UNSTARTED)) - 1;  /* has_thread */
byte live = 0, fails = FAILS;
byte made = 0, done = 0, spawns = SPAWNS, holds = HOLD, held = 0, producing = NP, at_work = NW;
#define all_done (producing == 0 && made == done)

inline drain(t) {
  if :: (t) < NW -> ring[((t) < NW -> (t) : 0)] = ring[((t) < NW -> (t) : 0)] + buf[t]
     :: else -> injection = injection + buf[t] fi;
  buf[t] = 0
}
inline light() {
#if defined(FULL) && !defined(MUTANT_no_light_fence)
  d_step { drain(me) }
#else
  skip
#endif
}
inline heavy() {
#ifdef FULL
  d_step { drain(me) }
#else
  i = 0;
  do :: i < THREADS -> d_step { drain(i); i++ } :: else -> i = 0; break od
#endif
}
#define leave_parked assert(parked > 0); parked--
#define leave_searching assert(searching > 0); searching--

inline look_at_all() {               /* work_visible: into `found` */
  found = (injection > 0);
  i = 0;
  do
  :: i < NW && !found ->
     d_step { if :: has(threads, i) && (ring[i] > 0 || (i == me && buf[me] > 0)) -> found = true :: else fi; i++ }
  :: else -> i = 0; break
  od
}

#ifdef MUTANT_second_failure_unseen
#define wanted(first) (255 << (first))
#else
#define wanted(first) ((255 << (first)) & (pass == 0 -> 255 : threads))
#endif
/* claim_parked from `first` on: into `who`, or NW. */
inline claim_parked(first) {
  bits = bitmap & wanted(first);
  do
  :: d_step { who = 0; do :: who < NW && !has(bits, who) -> who++ :: else -> break od };
     if :: who == NW -> break :: else fi;
     d_step { drain(me); won = (has(bitmap, who) != 0); bits = bitmap & wanted(first) & ~(1 << who); bitmap = bitmap & ~(1 << who) };
     if
     :: won ->
        d_step {
          leave_parked;
#ifndef MUTANT_claim_not_counted
          searching++
#endif
        };
        break
     :: else
     fi
  od;
  won = false; bits = 0
}

inline announce(sleeper, was_searching) {
#ifdef MUTANT_bit_first
  d_step { drain(me); bitmap = bitmap | (1 << sleeper) };
#endif
  d_step { drain(me); parked++; if :: was_searching -> leave_searching :: else fi };
#ifndef MUTANT_bit_first
  bitmap = bitmap | (1 << sleeper)
#endif
}

/* The last pass claims only workers that have a thread: such a claim is never given back, so nobody relies on it in
 * vain. (The code claims any worker in its second pass and looks no more: mutant second_failure_unseen.) */
inline wake_one() {
  pass = 0;
  do
  :: gave_back = false;
     claim_parked(0);
     do
     :: who == NW -> break
     :: who < NW && has(threads, who) -> token[who] = true; who = NW; pass = 9; break
     :: who < NW && !has(threads, who) ->                                       /* rouse: start_thread */
        if
        :: atomic { threads = threads | (1 << who); live++; who = NW; pass = 9 }; break
        :: atomic { fails > 0 -> fails-- }; announce(who, true); gave_back = true; claim_parked(who + 1)
        fi
     od;
#ifdef MUTANT_failed_start_unseen
     gave_back = false;
#endif
#ifdef MUTANT_second_failure_unseen
     if :: pass == 1 -> gave_back = false :: else fi;
#endif
     if
     :: pass < 9 && gave_back -> heavy(); look_at_all(); if :: found -> pass = 1 :: else -> break fi
     :: else -> break
     fi
  od;
  pass = 0; gave_back = false; found = false; who = 0
}

inline signal() {
  light();
  d_step { found = (searching == 0 && parked > 0) };
  if :: found -> wake_one() :: else fi
}

inline publish_and_signal(n) {
#ifdef MUTANT_signal_first
  signal();
  buf[me] = buf[me] + n
#else
  buf[me] = buf[me] + n;
  signal()
#endif
}

inline take_from_injection() {       /* one to run: got; the rest to the ring */
  if
  :: injection > 0 ->
     d_step { n = injection; injection = 0 };                             /* under its mutex */
     if
     :: n > 1 ->
#ifdef MUTANT_no_signal_for_rest
        buf[me] = buf[me] + n - 1
#else
        publish_and_signal(n - 1)
#endif
     :: else
     fi;
     got = (n > 0); n = 0
  :: else
  fi
}

inline cancel_sleep() {
  d_step { won = (has(bitmap, me) != 0); bitmap = bitmap & ~(1 << me) };
  if :: won -> d_step { leave_parked; searching++ } :: else fi
}

proctype worker(byte me) {
  byte i, n, who, bits, pass, v;
  bool search, got, found, won, gave_back;
  if :: has(threads, me) :: stop && !has(threads, me) -> goto home fi;
  search = (me >= NW - UNSTARTED);     /* a worker that is started was claimed */
next:
  if                                                                      /* attend */
  :: stop -> d_step { if :: search -> leave_searching :: else fi; search = false }; goto home
  :: else
  fi;
  if                                                                      /* next_local */
  :: ring[me] + buf[me] > 0 ->
     d_step { drain(me); if :: ring[me] > 0 -> ring[me]--; got = true :: else fi }
  :: else -> take_from_injection()
  fi;
  if
  :: !got && !search ->                                                   /* try_become_searcher */
     if
     :: 2 * searching < live -> d_step { drain(me); searching++; search = true }
     :: else
     fi
  :: else
  fi;
  if
  :: !got && search ->
     v = 0;
     do
     :: v < NW && !got ->                                                 /* steal_somewhere */
        d_step { if :: v != me && has(threads, v) -> n = ring[v] - ring[v] / 2; ring[v] = ring[v] - n :: else fi };
        if :: n > 0 -> buf[me] = buf[me] + n - 1; d_step { drain(me); got = true; n = 0 } :: else fi;
        v++
     :: else -> v = 0; break
     od;
     if :: !got -> take_from_injection() :: else fi
  :: else
  fi;
  if
  :: got ->
     if
     :: search ->                                                         /* found_work */
        d_step { drain(me); search = false; leave_searching; found = (searching == 0); n = parked };
#ifndef MUTANT_no_last_searcher
        if
        :: found && n > 0 ->
#ifndef MUTANT_never_interrupts
           if :: n == NW - 1 -> skip :: else -> heavy() fi;             /* the RMW above was a full fence */
#endif
           look_at_all();
           if :: found -> wake_one() :: else fi
        :: else
        fi;
#endif
        found = false; n = 0
     :: else
     fi;
     do                                                                   /* the fiber */
     :: atomic { spawns > 0 -> spawns--; made++ }; publish_and_signal(1)
     :: atomic { holds > 0 -> holds--; held++ }; (producing == 0 && made == done + held); d_step { held--; done++ }; break
     :: done++; break
     od;
progress_ran:
     got = false;
     goto next
  :: else
  fi;
  announce(me, search);                                               /* sleep: 1 */
  search = true;
#ifndef MUTANT_no_heavy_fence
  heavy();                                                              /* 2 */
#endif
#ifndef MUTANT_look_once
  look_at_all();                                                        /* 3 */
#endif
  if
  :: found -> found = false; cancel_sleep(); if :: won -> won = false; goto next :: else fi
  :: else
  fi;
  token[me] -> token[me] = false;
#ifndef MUTANT_no_self_count
  cancel_sleep();
#endif
  won = false;
  goto next;
home:
  at_work--
}

proctype producer(byte me) {           /* schedule_outside */
  byte i, who, bits, pass;
  bool found, won, gave_back;
  made++;
#ifdef MUTANT_signal_first
  publish_and_signal(1);
#else
  buf[me] = buf[me] + 1;
#ifndef MUTANT_no_outside_fence
  d_step { drain(me) };                                                 /* full_fence */
#endif
  signal();
#endif
  d_step { drain(me) };
  producing--
}

proctype memory() {                    /* store buffers get to memory at any time */
  byte t;
end:
  do
  :: atomic { buf[0] > 0 -> t = 0; drain(t) }
  :: atomic { buf[1] > 0 -> t = 1; drain(t); t = 0 }
  :: atomic { buf[2] > 0 -> t = 2; drain(t); t = 0 }
#if NW + NP > 3
  :: atomic { buf[3] > 0 -> t = 3; drain(t); t = 0 }
#endif
  od
}

proctype shutdown() {                  /* ~scheduler: unparks everybody, without a claim */
  all_done;
  atomic { stop = true; token[0] = true; token[1] = true; token[NW - 1] = true }
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < NW ->
       if :: has(threads, i) -> live++ :: else -> parked++; bitmap = bitmap | (1 << i) fi;
       run worker(i); i++
    :: else -> break
    od;
    i = 0;
    do :: i < NP -> run producer(NW + i); i++ :: else -> break od;
    run memory(); run shutdown(); i = 0
  };
  at_work == 0 -> assert(searching == 0 && parked == NW - live)           /* I1 */
}
