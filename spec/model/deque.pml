/* SPDX-License-Identifier: BSL-1.0
 *
 * The deque of runtime/src/sched/deque.hpp: its owner pushes and pops at both ends, thieves take half from the
 * old end into their own rings, a full ring sheds its older half.
 *
 * Shown
 *   D1   steal <= real <= tail <= steal + capacity: asserted after every step that changes one of them.
 *   DQ1  Every entry is taken exactly once (take) and none is left when every worker has gone home (init).
 *   DQ2  No slot is written while a thief still has to copy it (writes).
 *   D8   follows: the owner's pops without an RMW are among those that DQ1 counts.
 *
 * Steps, and what they stand for
 *   push         try_push, push_full, shed_half       pop_old, pop_young   the functions of that name
 *   steal        steal, copy_from, release_claim: load head, load tail, claim, copy slot by slot, publish, release
 * Every load, store and RMW of shared memory is a step of its own. A CAS loop that retries until it succeeds is one
 * step that acts on the value it finds.
 *
 * A pop of the young end without an RMW (D8) stores the tail and then loads the head, but what it loads may be as old as the
 * owner's last RMW (knows, same): the load may have been performed before the store, and before the pushes ahead of it. A
 * heavy fence ends that: what the owner loads from then on is as new as the head that the thief has seen. What its RMW of
 * the young end left (seen_head_) is kept as its `real` (seen), and as whether the head is still that one (same).
 *
 * Left out: other weak memory (the explorer has it). push_batch (a push of several whose room was looked at before).
 * Indices have 4 bits and start at 13, so all of them wrap: with 16 bits and 256 slots nothing else happens. (3 bits
 * would be too few: the length must be known with its sign, so an index must count to more than twice the capacity.)
 * The tag does not wrap: 2^31 pops while a thief is between its load and its CAS are not part of the protocol.
 *
 * A worker may try to steal TRY times, from the ring VICTIM. Each ring begins as if its owner had just popped the only entry by
 * an RMW, and then pushed FILL. Without membarrier (NO_MEMBARRIER) every pop has an RMW.
 *
 * run: one ring, two thieves            -DFILL0=2 -DPUSH0=1 -DTRY1=2 -DTRY2=1
 * run: a full ring sheds                -DFILL0=4 -DPUSH0=1 -DTRY1=1 -DTRY2=1
 * run: a thief is stolen from           -DFILL0=3 -DFILL1=4 -DTRY1=1 -DTRY2=1 -DVICTIM2=1
 * run: two workers steal from each other  -DFILL0=2 -DFILL1=2 -DTRY0=1 -DTRY1=1
 * run: four entries, three thefts       -DFILL0=4 -DTRY1=2 -DTRY2=1
 * run: without membarrier               -DNO_MEMBARRIER -DFILL0=2 -DPUSH0=1 -DTRY1=2 -DTRY2=1
 *
 * mutant: bump_first         -DNO_MEMBARRIER -DFILL0=2 -DTRY1=1: the young end's tag is bumped before the tail is lowered
 * mutant: no_tag             -DFILL0=2 -DTRY1=1: nothing bumps the tag
 * mutant: no_interrupt       -DFILL0=3 -DTRY1=1 -DTRY2=1: a second thief does not interrupt the owner
 * mutant: two_looks          -DFILL0=2 -DPUSH0=1 -DTRY1=1 -DTRY2=1: a second thief that sees no entry does not interrupt the owner, and looks again
 * mutant: unsigned_length    -DFILL0=1 -DTRY1=1 -DTRY2=1: a tail below real is taken for a long ring
 * mutant: release_by_store   -DFILL0=4 -DTRY1=1: the release writes the head as the claim left it, over the pops of the owner
 * mutant: tail_before_head   -DFILL0=2 -DTRY1=1: the thief loads the tail first
 * mutant: room_from_real     -DFILL0=4 -DPUSH0=1 -DTRY1=1: a push asks real, not steal, whether there is room
 * mutant: two_copiers        -DFILL0=4 -DPUSH0=1 -DTRY1=1 -DTRY2=1: a thief does not ask whether another one is copying
 * mutant: no_room_check      -DRESULT_ONLY -DFILL0=3 -DFILL1=4 -DTRY1=1 -DTRY2=1 -DVICTIM2=1: a thief copies over what another thief has claimed in its ring
 * mutant: never_stolen       -DFILL0=3 -DTRY1=1 -DTRY2=1: a claim does not set the mark, so that nobody interrupts the owner
 * mutant: fence_after_tail   -DFILL0=3 -DTRY1=1 -DTRY2=1: a second thief loads the tail, then interrupts the owner
 * mutant: one_too_far        -DFILL0=3 -DTRY1=1: the owner's half is rounded up, too
 * mutant: longest_not_raised -DFILL0=3 -DTRY1=1: what is pushed does not count for the longest
 * mutant: head_not_compared  -DFILL0=3 -DTRY1=1 -DTRY2=1: a pop without an RMW does not look whether the head has moved
 *
 * RESULT_ONLY leaves D1 and DQ2 out, so that a counterexample goes on until an entry is taken twice or lost.
 * Equivalent, so no mutant: a release that keeps the owner's real but puts the tag back to that of the claim. real only
 * grows, so no thief that loaded the head before the claim can find that head again. (A wrap of real would take 65,536
 * pops while that thief is held up; the code keeps the tag against that.)
 * Also equivalent: an owner's RMW that leaves the mark `stolen` (the next thief interrupts the owner for nothing), and one that
 * keeps the old `longest` (it is never too small for a shorter ring: the owner has an RMW sooner than it needs).
 */
#ifndef FILL1
#define FILL1 0
#endif
#ifndef PUSH0
#define PUSH0 0
#endif
#ifndef TRY0
#define TRY0 0
#endif
#ifndef TRY2
#define TRY2 0
#endif
#ifndef VICTIM2
#define VICTIM2 0
#endif
#define CAP 4
#define BITS 15                      /* indices are modulo 16 */
#define START 13
#define SHED 2                       /* overflow_batch */
#define ITEMS (FILL0 + PUSH0 + FILL1)
#define dist(a, b) (((a) - (b)) & BITS)

typedef ring {
  byte steal; byte real; byte tag; bit stolen; byte tail; byte slot[CAP];
  bit knows, same;                   /* the owner may load the head its RMW left; that is still the head */
  byte seen, longest                 /* its `real`; longest_. 0 without `knows`: nothing is decided by them then */
};
ring q[3];
byte copied[3], claimed[3];          /* ghosts: [copied, claimed) is what a thief still has to copy */
short taken = 0;                     /* ghost: a bit an entry */
byte fresh;                          /* the next entry to be pushed */
byte at_work = 3;

inline take(x) { d_step { assert(x != 0 && !(taken & (1 << x))); taken = taken | (1 << x); x = 0 } }

#ifdef RESULT_ONLY
#define d1(r) skip
#define d3(r, at) skip
#else
/* D1; while the owner pops the young end the tail may be one below real. */
#define d1(r) assert(dist(q[r].real, q[r].steal) <= dist(q[r].tail + 1, q[r].steal) && \
                     dist(q[r].tail + 1, q[r].steal) <= CAP + 1)
/* DQ2: not a slot that a thief has claimed and not copied. */
#define d3(r, at) assert(dist(at, copied[r]) % CAP >= dist(claimed[r], copied[r]))
#endif
#ifdef MUTANT_no_tag
#define bump(r) skip
#else
#define bump(r) q[r].tag++
#endif
inline forget(r) { q[r].knows = 0; q[r].same = 0; q[r].seen = 0; q[r].longest = 0 }
inline heavy_fence(r) { d_step { if :: !q[r].same -> forget(r) :: else fi } }
#if defined(MUTANT_no_interrupt) || defined(MUTANT_fence_after_tail)
#define fence_first(r) skip
#else
#define fence_first(r) heavy_fence(r)
#endif
#ifdef MUTANT_never_stolen
#define mark(r) skip
#else
#define mark(r) q[r].stolen = 1
#endif
#ifdef MUTANT_one_too_far
#define in_younger_half(older, longest) (2 * (older) + 1 >= longest)
#else
#define in_younger_half(older, longest) (2 * (older) >= longest)
#endif
inline writes(r, at, x) { d_step { d3(r, at); q[r].slot[(at) % CAP] = x } }

inline pops_old(r, n) {              /* head_view::popped_old: steal goes along unless a thief is copying */
  if :: q[r].steal == q[r].real -> q[r].steal = (q[r].steal + n) & BITS :: else fi;
  q[r].real = (q[r].real + n) & BITS;
  q[r].stolen = 0; forget(r);
  bump(r)
}
inline out_of_reach(r, t, n) {       /* pop_young_quick, count_longest */
  if
  :: !q[r].knows -> n = 0            /* the head is not that one, so an RMW follows whatever this says */
  :: else ->
     n = dist(t - 1, q[r].seen);
     if
     :: n < q[r].longest -> n = in_younger_half(n, q[r].longest)
     :: n >= q[r].longest && (n == 0 || n >= CAP) -> n = 0
     :: else ->
#ifndef MUTANT_longest_not_raised
        q[r].longest = n + 1;
#endif
        n = 1
     fi
  fi
}
#ifdef MUTANT_room_from_real
#define full_at(r, s, re) (dist(q[r].tail, re) >= CAP)
#else
#define full_at(r, s, re) (dist(q[r].tail, s) >= CAP)
#endif

proctype worker(byte me; byte pushes; byte tries; byte v) {
  byte x, y, s, r, g, t, n, i;    /* s, r, g: a head that was loaded */
  bit h;                          /* its mark */
  do
  :: pushes > 0 ->                                                        /* push */
     pushes--;
     d_step { x = fresh; fresh++ };
     do
     :: true -> d_step { s = q[me].steal; r = q[me].real; g = q[me].tag };  /* try_push */
        if
        :: !full_at(me, s, r) ->
           writes(me, q[me].tail, x);
           d_step { q[me].tail = (q[me].tail + 1) & BITS; d1(me); x = 0 };
           break
        :: else
        fi;
        d_step { s = q[me].steal; r = q[me].real; g = q[me].tag };        /* push_full */
        if
        :: s != r -> take(x); break                                       /* one to the injection queue */
        :: s == r && dist(q[me].tail, r) >= CAP ->                        /* shed_half */
           d_step {
             if
             :: q[me].steal == s && q[me].real == r && q[me].tag == g -> pops_old(me, SHED); d1(me); n = SHED
             :: else -> n = 0
             fi
           };
           if
           :: n == SHED ->
              y = q[me].slot[r % CAP]; take(y);
              y = q[me].slot[(r + 1) % CAP]; take(y);
              take(x); n = 0;
              break
           :: else
           fi
        :: else
        fi
     od;
     s = 0; r = 0; g = 0
  :: q[me].real != q[me].tail ->                                          /* pop_old */
     d_step {
       r = q[me].real;
       if :: r != q[me].tail -> pops_old(me, 1); d1(me); n = 1 :: else -> n = 0 fi
     };
     if :: n == 1 -> x = q[me].slot[r % CAP]; take(x); n = 0 :: else fi;
     r = 0
  :: q[me].real != q[me].tail || (q[me].knows && !q[me].same) ->          /* pop_young; the owner need not know it's empty */
     d_step { t = q[me].tail; out_of_reach(me, t, n) };
#ifndef MUTANT_bump_first
     q[me].tail = (t - 1) & BITS;
#endif
     if
     :: n == 1 ->                                                         /* load the head: is it still the same? */
#ifdef MUTANT_head_not_compared
        skip
#else
        atomic {
          if
          :: q[me].knows -> skip                                          /* it is, or the load returns what it was */
          :: !q[me].same -> forget(me); n = 0
          fi
        }
#endif
     :: else
     fi;
     if
     :: n == 1 ->
        x = q[me].slot[((t - 1) & BITS) % CAP]; take(x)
     :: else ->                                                           /* take_lowered */
        d_step {
          if
          :: q[me].real == t ->
             if :: !q[me].same && q[me].seen != t -> forget(me) :: else fi
          :: else ->
             bump(me); q[me].stolen = 0; n = 1;
#ifndef NO_MEMBARRIER
             q[me].knows = 1; q[me].same = 1; q[me].seen = q[me].real; q[me].longest = dist(t - 1, q[me].real)
#endif
          fi
        };
        if
        :: n == 1 ->
#ifdef MUTANT_bump_first
           q[me].tail = (t - 1) & BITS;
#endif
           x = q[me].slot[((t - 1) & BITS) % CAP]; take(x)
        :: else ->
           d_step { q[me].tail = t; d1(me) }                              /* a thief took the last one */
        fi
     fi;
     n = 0; t = 0
  :: tries > 0 && q[me].real == q[me].tail ->                             /* steal */
     tries--;
#ifdef MUTANT_tail_before_head
     t = q[v].tail;
     d_step { s = q[v].steal; r = q[v].real; g = q[v].tag };
#else
     d_step { s = q[v].steal; r = q[v].real; g = q[v].tag; h = q[v].stolen };
     if
     :: h && s == r ->
        if
#ifdef MUTANT_two_looks
        :: q[v].tail == r -> t = q[v].tail
#else
        :: q[v].tail == r -> t = r                                        /* nothing to take */
#endif
        :: else -> fence_first(v); t = q[v].tail
        fi
     :: else -> t = q[v].tail
     fi;
#ifdef MUTANT_fence_after_tail
     if :: h -> heavy_fence(v) :: else fi;
#endif
     h = 0;
#endif
     d_step {
       n = dist(t, r);
#ifndef MUTANT_unsigned_length
       if :: n > BITS / 2 -> n = 0 :: else fi;
#endif
       n = n - n / 2;
#ifndef MUTANT_two_copiers
       if :: s != r -> n = 0 :: else fi;
#endif
       i = CAP - dist(q[me].tail, q[me].steal);                           /* into.free_slots() */
#ifndef MUTANT_no_room_check
       if :: n > i + 1 -> n = i + 1 :: else fi;
#endif
       i = 0
     };
     d_step {                                                             /* claim */
       if
       :: n != 0 && q[v].steal == s && q[v].real == r && q[v].tag == g ->
          q[v].real = (q[v].real + n) & BITS; bump(v); mark(v); q[v].same = 0; g = q[v].tag; copied[v] = r; claimed[v] = q[v].real; d1(v)
       :: else -> n = 0
       fi;
       s = 0
     };
     if
     :: n > 0 ->
        d_step { x = q[v].slot[r % CAP]; copied[v] = (r + 1) & BITS };    /* to be run at once */
        i = 1;
        do
        :: i < n ->
           d_step { y = q[v].slot[(r + i) % CAP]; copied[v] = (r + i + 1) & BITS };
           writes(me, (q[me].tail + i - 1) & BITS, y);
           i++; y = 0
        :: else -> break
        od;
        if :: n > 1 -> d_step { q[me].tail = (q[me].tail + n - 1) & BITS; d1(me) } :: else fi;
        d_step {                                                          /* release_claim */
          q[v].steal = q[v].real; q[v].same = 0; copied[v] = 0; claimed[v] = 0;
#ifdef MUTANT_release_by_store
          q[v].real = (r + n) & BITS; q[v].steal = q[v].real; q[v].tag = g;
#endif
          d1(v)
        };
        take(x)
     :: else
     fi;
     d_step { i = 0; n = 0; r = 0; g = 0; t = 0 }
  :: pushes == 0 && q[me].real == q[me].tail -> break                     /* home, with nothing of its own */
  od;
  at_work--
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < 3 ->
       q[i].steal = START; q[i].real = START; q[i].tail = START;
#ifndef NO_MEMBARRIER
       q[i].knows = 1; q[i].same = 1; q[i].seen = START;
#endif
       i++
    :: else -> break
    od;
    fresh = 1; i = 0;
    do :: i < FILL0 -> q[0].slot[(START + i) % CAP] = fresh; fresh++; i++ :: else -> break od;
    q[0].tail = (START + FILL0) & BITS; i = 0;
    do :: i < FILL1 -> q[1].slot[(START + i) % CAP] = fresh; fresh++; i++ :: else -> break od;
    q[1].tail = (START + FILL1) & BITS; i = 0;
    run worker(0, PUSH0, TRY0, 1); run worker(1, 0, TRY1, 0); run worker(2, 0, TRY2, VICTIM2)
  };
  at_work == 0 -> assert(taken == (1 << (ITEMS + 1)) - 2)                 /* DQ1 */
}
