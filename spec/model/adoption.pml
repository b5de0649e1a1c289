/* SPDX-License-Identifier: BSL-1.0
 *
 * Stacks are adopted, and joins run work in place: runtime/src/sched/{runner,join}.cpp, runner.hpp (depart, arrive,
 * commit_park), worker.hpp, runtime/internal/ramie/runtime/join.hpp; design §4.
 *
 * Shown
 *   AD1  At most one worker is on a stack (goes_to). Who takes a spare stack finds nobody's frames on it.
 *   AD2  A fiber is resumed on the stack it left, where it runs at the top (resumes). F1.
 *   AD3  Who is covered stays RUNNING, is in no list, and is nobody's to wake (ends).
 *   AD4  A loop frame acts for the worker whose thread it is on, also when a fiber that was resumed elsewhere returns
 *        into it (loop).
 *   AD5  No stack is lost: when all is over each is spare or a worker's (init).
 *   AD6  All fibers end: a join or get that can't go on because of who sits above it is an "invalid end state".
 *   AD7  A join returns when the last fiber of its nursery has ended, not before.
 *
 * Fibers run little scripts (the table in init). Nursery 0 is opened by fiber 0, nursery 1 by fiber 1, inside it.
 *   SCENARIO 1  0: spawns 1, 2; joins. 1: spawns 3 into its own nursery; waits for E0; joins. 2: sets E0; waits for E1.
 *               3: sets E1; waits for E0.                                          adoption, nested joins in place
 *   SCENARIO 2  0: spawns 1; joins inside with_timeout; after that sets E0; joins. 1: waits for E0.               J2
 *   SCENARIO 3  0: spawns 1, 2; joins. 1: gets 2 inside with_timeout; sets E0. 2: waits for E0.                   J4
 *   SCENARIO 4  0: spawns 1, 2; joins. 1: spawns 3 into its own nursery; joins it; sets E0. 2: waits for E0.      J6
 *
 * Steps, and what they stand for
 *   loop      scheduler::loop, next_plan, start_here: takes any queued fiber (deque and idle are other models)
 *   leaves    park_fiber, depart: to the stack of a runnable fiber, or to a loop on a spare stack
 *   goes_to   switch_to; what arrive does comes after it: commit_park, keep_spare
 *   in place  run_descendants, fits, start_in_place: pops any entry or none; one that does not fit is handed off to
 *   ends      conclude, retire; then the return into the frame below
 * Wakes are one step (park_wake.pml has more). Left out: size classes and stack bytes (J7), the native stack and stacks that
 * can't be had, yields and budgets, the split of the live count.
 *
 * run: adoption, nested joins             -DSCENARIO=1 -DWORKERS=2
 * run: a stranger                        -DSCENARIO=4 -DWORKERS=2 -DCANCEL
 * run: join inside with_timeout           -DSCENARIO=2 -DWORKERS=2 -DTIMER=0
 * run: get of a sibling, with_timeout     -DSCENARIO=3 -DWORKERS=2 -DTIMER=1
 *
 * mutant: commit_first        -DSCENARIO=1 -DWORKERS=2: the park is committed before the switch
 * mutant: spare_first         -DSCENARIO=1 -DWORKERS=2: a loop gives its stack away before it has left it
 * mutant: park_frees_stack    -DSCENARIO=1 -DWORKERS=2: the stack of a fiber that parks is spare
 * mutant: old_worker          -DSCENARIO=1 -DWORKERS=2: the loop below does not look up anew which worker it runs on
 * mutant: any_scope           -DSCENARIO=2 -DWORKERS=2 -DTIMER=0: a join runs work in place whatever scope is open (J2)
 * mutant: get_in_place        -DSCENARIO=3 -DWORKERS=2 -DTIMER=1: get() calls its task in place (J4)
 * mutant: stranger_in_place   -DSCENARIO=4 -DWORKERS=2: a join calls a fiber that is not a descendant (J6)
 * mutant: started_in_place    -DSCENARIO=1 -DWORKERS=2: a join calls a fiber that has a stack already (J5)
 * mutant: published_covered   -DSCENARIO=1 -DWORKERS=2 -DCANCEL: a joiner can be woken while a child runs above it
 * mutant: join_leaves_early   -DSCENARIO=4 -DWORKERS=2 -DCANCEL: a cancelled join returns while fibers live (J3)
 */
#define FIBERS 4
#define STACKS (WORKERS + 3)
#define NOBODY 9
#define bit(i) (1 << (i))

mtype = { NEW, RUNNABLE, RUNNING, PARKING, PARKED, OVER };
mtype = { END, SPAWN, WAIT, SET, JOIN, TIMED_JOIN, TIMED_GET };

typedef fiber { mtype state; bool notified; bool only_parks; byte stack; byte below; byte at };
fiber f[FIBERS];
hidden mtype script_op[FIBERS * 5];      /* never change: no part of the state */
hidden byte script_arg[FIBERS * 5];
byte top[STACKS], on[STACKS], serves[STACKS];
byte spares, queued, live[2];
/* Conditions: 0, 1: events; 2, 3: a nursery is empty; 4…7: a fiber is over. */
byte truth = 12, waiting[8];
bool timed_out;
byte at_work = WORKERS;

#define home(x) ((x) == 3 -> 1 : 0)
#define inside(x, n) (n == 0 || home(x) == n)

inline enqueue(z) { assert(f[z].state == RUNNABLE && !(queued & bit(z))); queued = queued | bit(z) }
inline wake(y1) {
  if
  :: f[y1].state == PARKED -> f[y1].state = RUNNABLE; enqueue(y1)
  :: f[y1].state == PARKING -> f[y1].notified = true
  :: else
  fi
}
inline comes_true(cond) {
  truth = truth | bit(cond);
  i = 0;
  do
  :: i < FIBERS -> if :: waiting[cond] & bit(i) -> wake(i) :: else fi; i++
  :: else -> break
  od;
  waiting[cond] = 0; i = 0
}

/* W1, AD1 */
inline goes_to(t) { d_step { assert(on[s] == 1 && on[t] == 0); on[s] = 0; on[t] = 1; old = s; s = t } }
inline commits(y2) {
  d_step {
    assert(f[y2].state == PARKING);
    if :: f[y2].notified -> f[y2].state = RUNNABLE; f[y2].notified = false; enqueue(y2) :: else -> f[y2].state = PARKED fi
  }
}
inline resumes(y3) { d_step { assert(f[y3].state == RUNNABLE && top[s] == y3 && f[y3].stack == s); f[y3].state = RUNNING } }  /* AD2 */

/* Any queued fiber that `fits`, or nobody: into `next`. */
inline pops() {
  atomic {
    next = NOBODY;
    if
    :: queued & 1 -> next = 0
    :: queued & 2 -> next = 1
    :: queued & 4 -> next = 2
    :: queued & 8 -> next = 3
    :: true
    fi;
    if :: next != NOBODY -> queued = queued & ~bit(next) :: else fi
  }
}
inline takes_stack() {
  atomic {
    to = 0;
    do :: to < STACKS && !(spares & bit(to)) -> to++ :: else -> break od;
    assert(to < STACKS && top[to] == NOBODY);                             /* AD1 */
    spares = spares & ~bit(to)
  }
}
inline calls(y, under) {                 /* start_here, start_in_place */
  d_step { assert(f[y].state == RUNNABLE && f[y].stack == NOBODY); f[y].state = RUNNING; f[y].below = under; top[s] = y }
}

proctype worker(byte me) {
  byte s = me, old, to, x, next = NOBODY, i, c;
  bool fits;
  mtype op;
  byte arg;

loop:
  assert(top[s] == NOBODY && serves[s] == me);                            /* AD4 */
  if
  :: next == NOBODY -> if :: queued != 0 -> pops(); if :: next == NOBODY -> goto loop :: else fi
                          :: f[0].state == OVER -> goto home fi
  :: else
  fi;
  x = next; next = NOBODY;
  if
  :: f[x].stack == NOBODY -> calls(x, NOBODY)
  :: else ->
     to = f[x].stack;
#ifdef MUTANT_spare_first
     spares = spares | bit(s);
     goes_to(to);
#else
     goes_to(to);
     spares = spares | bit(old);
#endif
     resumes(x)
  fi;

user_code:
  atomic {
    x = top[s];
    assert(on[s] == 1 && f[x].state == RUNNING);
    op = script_op[x * 5 + f[x].at]; arg = script_arg[x * 5 + f[x].at]
  };
  if
  :: op == END -> goto ends
  :: op == SPAWN ->
     atomic {
       c = home(arg);
       live[c]++; truth = truth & ~bit(2 + c);
       f[arg].state = RUNNABLE; enqueue(arg); f[x].at++; c = 0
     };
     goto user_code
  :: op == SET -> atomic { comes_true(arg); f[x].at++ }; goto user_code
  :: op == WAIT -> c = arg; goto waits
  :: op == TIMED_GET ->
     c = 4 + arg;
#ifdef MUTANT_get_in_place
     atomic { if :: (queued & bit(arg)) && f[arg].stack == NOBODY -> queued = queued & ~bit(arg); next = arg :: else fi };
     if :: next != NOBODY -> to = next; next = NOBODY; calls(to, x); goto user_code :: else fi;
#endif
     goto waits
  :: op == TIMED_JOIN ->
     c = 2 + arg;
#ifdef MUTANT_any_scope
     goto joins
#else
     goto waits                                                           /* J2: join_from_within */
#endif
  :: op == JOIN -> c = 2 + arg; goto joins
  fi;

joins:                                                                    /* run_descendants */
  if
  :: f[x].only_parks || (truth & bit(c)) -> goto waits
  :: else
  fi;
  pops();
  if
  :: next == NOBODY -> f[x].only_parks = true; goto waits
  :: else
  fi;
  fits = true;
#ifndef MUTANT_started_in_place
  fits = fits && f[next].stack == NOBODY;                                 /* J5 */
#endif
#ifndef MUTANT_stranger_in_place
  fits = fits && inside(next, arg);                                   /* J6 */
#endif
  if
  :: fits ->
     to = next; next = NOBODY; fits = false;
     calls(to, x);
#ifdef MUTANT_published_covered
     d_step { f[x].state = PARKED; waiting[c] = waiting[c] | bit(x) };
#endif
     goto user_code
  :: else -> f[x].only_parks = true                                       /* it goes first when the joiner parks */
  fi;

waits:                                                                    /* wait_as_fiber; `next` may be somebody already */
  atomic {
    waiting[c] = waiting[c] & ~bit(x);                                    /* unpublish, after a wake */
    if
    :: truth & bit(c) -> f[x].at++; f[x].only_parks = false; c = 0; goto given_back
    :: (op == TIMED_JOIN || op == TIMED_GET) && timed_out -> f[x].at++; f[x].only_parks = false; c = 0; goto given_back
#ifdef MUTANT_join_leaves_early
    :: op == JOIN && timed_out -> f[x].at++; f[x].only_parks = false; c = 0; goto given_back
#endif
    :: else -> f[x].state = PARKING; waiting[c] = waiting[c] | bit(x)
    fi
  };
  c = 0;
  if :: next == NOBODY -> pops() :: else fi;
  f[x].stack = s;                                                         /* depart */
  if
  :: next != NOBODY && f[next].stack != NOBODY -> to = f[next].stack
  :: else -> takes_stack()
  fi;
#ifdef MUTANT_commit_first
  commits(x);
  goes_to(to);
#else
  goes_to(to);
#ifdef MUTANT_park_frees_stack
  spares = spares | bit(old);
#endif
  commits(x);                                                             /* arrive */
#endif
  if
  :: next != NOBODY && f[next].stack == s -> resumes(next); next = NOBODY; goto user_code
  :: else -> serves[s] = me; goto loop
  fi;

given_back:                                                               /* the wait is over, or was refused: give_back */
  if :: op == JOIN -> assert(live[arg] == 0) :: else fi;                  /* AD7 */
  if :: next != NOBODY -> d_step { enqueue(next); next = NOBODY } :: else fi;
  goto user_code;

ends:
  atomic {
    f[x].state = OVER; to = f[x].below; top[s] = to;
    c = home(x);
    if
    :: x != 0 -> live[c]--; if :: live[c] == 0 -> comes_true(2 + c) :: else fi
    :: else
    fi;
    comes_true(4 + x); c = 0;
    if
    :: to != NOBODY ->                                                    /* AD3: back in the join below */
#ifdef MUTANT_published_covered
       f[to].state = RUNNING;
#endif
       assert(f[to].state == RUNNING); goto user_code
    :: else
    fi
  };
#ifndef MUTANT_old_worker
  serves[s] = me;
#endif
  goto loop;
home:
  atomic { on[s] = 0; spares = spares | bit(s); at_work-- }
}

#ifdef TIMER
proctype timer() { atomic { timed_out = true; wake(TIMER) } }             /* TIMER: the fiber inside with_timeout */
#endif
#ifdef CANCEL
proctype canceller() { atomic { timed_out = true; wake(0) } }             /* of nursery 0: the join is not ended by it */
#endif

#define says(x, n, o, a) script_op[(x) * 5 + (n)] = o; script_arg[(x) * 5 + (n)] = a

init {
  byte i;
  atomic {
    i = 0;
    do :: i < FIBERS -> f[i].stack = NOBODY; f[i].below = NOBODY; f[i].state = NEW; i++ :: else -> break od;
    i = 0;
    do :: i < FIBERS * 5 -> script_op[i] = END; i++ :: else -> break od;
#if SCENARIO == 1
    says(0, 0, SPAWN, 1); says(0, 1, SPAWN, 2); says(0, 2, JOIN, 0);
    says(1, 0, SPAWN, 3); says(1, 1, WAIT, 0); says(1, 2, JOIN, 1);
    says(2, 0, SET, 0); says(2, 1, WAIT, 1);
    says(3, 0, SET, 1); says(3, 1, WAIT, 0);
#elif SCENARIO == 2
    says(0, 0, SPAWN, 1); says(0, 1, TIMED_JOIN, 0); says(0, 2, SET, 0); says(0, 3, JOIN, 0);
    says(1, 0, WAIT, 0);
#elif SCENARIO == 3
    says(0, 0, SPAWN, 1); says(0, 1, SPAWN, 2); says(0, 2, JOIN, 0);
    says(1, 0, TIMED_GET, 2); says(1, 1, SET, 0);
    says(2, 0, WAIT, 0);
#else
    says(0, 0, SPAWN, 1); says(0, 1, SPAWN, 2); says(0, 2, JOIN, 0);
    says(1, 0, SPAWN, 3); says(1, 1, JOIN, 1); says(1, 2, SET, 0);
    says(2, 0, WAIT, 0);
#endif
    i = 0;
    do
    :: i < STACKS ->
       top[i] = NOBODY;
       if :: i < WORKERS -> on[i] = 1; serves[i] = i; run worker(i) :: else -> spares = spares | bit(i) fi;
       i++
    :: else -> break
    od;
    i = 0;
    f[0].state = RUNNABLE; queued = 1;
#ifdef TIMER
    run timer();
#endif
#ifdef CANCEL
    run canceller();
#endif
  };
  _nr_pr == 1 -> assert(queued == 0 && spares == bit(STACKS) - 1)         /* AD5 */
}
