"""Threads that share the calls of a table, in LLVM IR: Python's lock is not taken between two pieces, nor to begin one.

define void @team.step(ptr %job)          calls all rows of a job's table (`cpu_steps.CHAIN`), in any order, by this thread and a team
define void @team.begin(ptr %team)        prepares the memory of a team
define void @team.work(ptr %team)         a thread of the team: takes rows of each job; returns when the team ends
define void @team.end(ptr %team)          ends it

    job    team, table, rows, parts, runs left to time (below 0: until they are timed again), nanoseconds alone, nanoseconds together,
           number of the clock, parts that are faster, runs until they are timed again
    team   TICKET  job's number << 40 | rows << 20 | the next row to take            TABLE   of the job
           DONE    rows that are done                                                BUSY    whether a job runs
           SLEEPERS, END, a mutex, a condition

A thread takes a row by exchanging the ticket, so that it takes it once, and from the table that belongs to the ticket: a job begins after
all rows of the one before are done. While a job runs, others are called by their own threads alone. Whoever waits yields the processor; a
thread of the team that found nothing to do SPINS times sleeps, and is woken by the next job.
The first runs of a job are timed, together, then alone, and the faster way stays: how long rows take is not known before, a kernel
may touch one row of a large array, and threads that share what fits a core's cache wait for each other's lines. They are timed again after
FIRST_WAIT runs, four times as many, and so on, and the least times of all trials count: the first one may have met a busy core.
Source: POSIX, pthread_cond_wait, sched_yield, clock_gettime; LLVM's language reference, atomic orderings.
"""

from __future__ import annotations

from xla_emitters.lowering.cpu.cpu_steps import CHAIN, CHAIN_ROW, ENTRY

TEAM = "team"
"""The name of the function that runs a job."""
JOB_WORDS = 10
"""Numbers of a job."""
LEFT, TOGETHER, CHOSEN = 4, 6, 8
"""Their places: runs left to time, nanoseconds together, parts that are faster."""
TEAM_BYTES, TEAM_ALIGNMENT = 1024, 64
"""Memory of a team: what threads write often is on cache lines of its own."""
MOST_ROWS = (1 << 20) - 1
"""Of a job: as many as the ticket can count."""
SPINS = 100
"""How often a thread that finds nothing to do yields before it sleeps: some 40 us, in which the next call of a program mostly comes."""
TIMED_RUNS = 8
"""Of a job whose rows may be faster in one thread: half of them together, one behind the other, so that the team is as awake as in a
program that is called again and again; then half of them alone."""
FIRST_WAIT, LAST_WAIT = 100, 1 << 20
"""Runs between two trials, at first and at most."""
_TABLE, _DONE, _BUSY, _SLEEPERS, _END, _MUTEX, _CONDITION = 64, 128, 192, 256, 320, 384, 640


def _word(name: str, place: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %team, i64 {place}\n"


TEAM_IR = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)

define void @"{TEAM}.begin"(ptr %team) {{
{_word("mutex", _MUTEX)}{_word("condition", _CONDITION)}
  call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}}

define void @"{TEAM}.end"(ptr %team) {{
{_word("mutex", _MUTEX)}{_word("condition", _CONDITION)}{_word("ends", _END)}
  call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %ends seq_cst, align 8
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define internal i1 @{TEAM}.is_open(i64 %ticket) alwaysinline {{
  %next = and i64 %ticket, {MOST_ROWS}
  %above = lshr i64 %ticket, 20
  %rows = and i64 %above, {MOST_ROWS}
  %open = icmp ult i64 %next, %rows
  ret i1 %open
}}

; Takes a row of the job and calls it; false: none is left.
define internal i1 @{TEAM}.row(ptr %team) {{
entry:
{_word("table.at", _TABLE)}{_word("done", _DONE)}
  br label %look
look:
  %ticket = load atomic i64, ptr %team seq_cst, align 8
  %table = load atomic ptr, ptr %table.at seq_cst, align 8
  %open = call i1 @{TEAM}.is_open(i64 %ticket)
  br i1 %open, label %take, label %none
take:
  %after = add i64 %ticket, 1
  %exchanged = cmpxchg ptr %team, i64 %ticket, i64 %after seq_cst seq_cst, align 8
  %taken = extractvalue {{ i64, i1 }} %exchanged, 1
  br i1 %taken, label %call, label %look
call:
  %number = and i64 %ticket, {MOST_ROWS}
  %row = getelementptr [{CHAIN_ROW} x i64], ptr %table, i64 %number
  call void @"{CHAIN}{ENTRY}"(ptr %row, i64 1)
  %before = atomicrmw add ptr %done, i64 1 seq_cst, align 8
  ret i1 true
none:
  ret i1 false
}}

define void @"{TEAM}.work"(ptr %team) {{
entry:
{_word("mutex", _MUTEX)}{_word("condition", _CONDITION)}{_word("ends", _END)}{_word("sleepers", _SLEEPERS)}
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ 0, %look ], [ %spun, %wait ], [ 0, %awake ]
  %found = call i1 @{TEAM}.row(ptr %team)
  br i1 %found, label %look, label %idle
idle:
  %end = load atomic i64, ptr %ends seq_cst, align 8
  %ended = icmp ne i64 %end, 0
  br i1 %ended, label %out, label %tired
tired:
  %spun = add i64 %spins, 1
  %more = icmp ult i64 %spun, {SPINS}
  br i1 %more, label %wait, label %sleep
wait:
  call i32 @sched_yield()
  br label %look
sleep:
  call i32 @pthread_mutex_lock(ptr %mutex)
  %asleep = atomicrmw add ptr %sleepers, i64 1 seq_cst, align 8
  br label %dream
dream:
  %ticket = load atomic i64, ptr %team seq_cst, align 8
  %open = call i1 @{TEAM}.is_open(i64 %ticket)
  %last = load atomic i64, ptr %ends seq_cst, align 8
  %over = icmp ne i64 %last, 0
  %wake = or i1 %open, %over
  br i1 %wake, label %awake, label %rest
rest:
  call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %dream
awake:
  %left = atomicrmw sub ptr %sleepers, i64 1 seq_cst, align 8
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %look
out:
  ret void
}}

; All rows of the job by whoever is free; by this thread alone while the team has another job.
define internal void @{TEAM}.together(ptr %team, ptr %table, i64 %rows, i64 %parts) {{
entry:
{_word("mutex", _MUTEX)}{_word("condition", _CONDITION)}{_word("sleepers", _SLEEPERS)}
{_word("table.at", _TABLE)}{_word("done", _DONE)}{_word("busy", _BUSY)}
  %exchanged = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst, align 8
  %mine = extractvalue {{ i64, i1 }} %exchanged, 1
  br i1 %mine, label %publish, label %alone
alone:
  call void @"{CHAIN}{ENTRY}"(ptr %table, i64 %rows)
  ret void
publish:
  store atomic ptr %table, ptr %table.at seq_cst, align 8
  store atomic i64 0, ptr %done seq_cst, align 8
  %ticket = load atomic i64, ptr %team seq_cst, align 8
  %job = lshr i64 %ticket, 40
  %next.job = add i64 %job, 1
  %high = shl i64 %next.job, 40
  %middle = shl i64 %rows, 20
  %new = or i64 %high, %middle
  store atomic i64 %new, ptr %team seq_cst, align 8
  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8
  %others = sub i64 %parts, 1
  %wanted = call i64 @llvm.umin.i64(i64 %asleep, i64 %others)
  %any = icmp ne i64 %wanted, 0
  br i1 %any, label %lock, label %help
lock:
  call i32 @pthread_mutex_lock(ptr %mutex)
  br label %signal
signal:
  %woken = phi i64 [ 0, %lock ], [ %count, %signal ]
  call i32 @pthread_cond_signal(ptr %condition)
  %count = add i64 %woken, 1
  %again = icmp ult i64 %count, %wanted
  br i1 %again, label %signal, label %unlock
unlock:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %help
help:
  %found = call i1 @{TEAM}.row(ptr %team)
  br i1 %found, label %help, label %wait
wait:
  %ready = load atomic i64, ptr %done seq_cst, align 8
  %all = icmp eq i64 %ready, %rows
  br i1 %all, label %free, label %yield
yield:
  call i32 @sched_yield()
  br label %wait
free:
  store atomic i64 0, ptr %busy seq_cst, align 8
  ret void
}}

declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @{TEAM}.now(i64 %clock) {{
  %time = alloca [2 x i64]
  %number = trunc i64 %clock to i32
  call i32 @clock_gettime(i32 %number, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}

define void @"{TEAM}{ENTRY}"(ptr %job) {{
entry:
  %table.at = getelementptr i64, ptr %job, i64 1
  %rows.at = getelementptr i64, ptr %job, i64 2
  %parts.at = getelementptr i64, ptr %job, i64 3
  %left.at = getelementptr i64, ptr %job, i64 4
  %alone.at = getelementptr i64, ptr %job, i64 5
  %together.at = getelementptr i64, ptr %job, i64 6
  %clock.at = getelementptr i64, ptr %job, i64 7
  %chosen.at = getelementptr i64, ptr %job, i64 8
  %wait.at = getelementptr i64, ptr %job, i64 9
  %team = load ptr, ptr %job
  %table = load ptr, ptr %table.at
  %rows = load i64, ptr %rows.at
  %parts = load i64, ptr %parts.at
  %left = load i64, ptr %left.at
  %clock = load i64, ptr %clock.at
  %chosen = load i64, ptr %chosen.at
  %is.timed = icmp sgt i64 %left, 0
  %now.left = sub i64 %left, 1
  %second.half = icmp ult i64 %now.left, {TIMED_RUNS // 2}
  %one = icmp ult i64 %chosen, 2
  %by.one = select i1 %is.timed, i1 %second.half, i1 %one
  br i1 %is.timed, label %start, label %run
start:
  %began = call i64 @{TEAM}.now(i64 %clock)
  br label %run
run:
  %since = phi i64 [ %began, %start ], [ 0, %entry ]
  br i1 %by.one, label %single, label %several
single:
  call void @"{CHAIN}{ENTRY}"(ptr %table, i64 %rows)
  br label %done
several:
  call void @{TEAM}.together(ptr %team, ptr %table, i64 %rows, i64 %parts)
  br label %done
done:
  br i1 %is.timed, label %stop, label %count
count:
  %waits = icmp slt i64 %left, 0
  br i1 %waits, label %closer, label %out
closer:
  %still = add i64 %left, 1
  %again = icmp eq i64 %still, 0
  %next.left = select i1 %again, i64 {TIMED_RUNS}, i64 %still
  store i64 %next.left, ptr %left.at
  br label %out
stop:
  %ended = call i64 @{TEAM}.now(i64 %clock)
  %took = sub i64 %ended, %since
  %best.at = select i1 %second.half, ptr %alone.at, ptr %together.at
  %best = load i64, ptr %best.at
  %better = call i64 @llvm.umin.i64(i64 %best, i64 %took)
  store i64 %better, ptr %best.at
  store i64 %now.left, ptr %left.at
  %last = icmp eq i64 %now.left, 0
  br i1 %last, label %decide, label %out
decide:
  %alone = load i64, ptr %alone.at
  %together = load i64, ptr %together.at
  %faster = icmp ule i64 %alone, %together
  %kept = select i1 %faster, i64 1, i64 %parts
  store i64 %kept, ptr %chosen.at
  %wait = load i64, ptr %wait.at
  %until = sub i64 0, %wait
  store i64 %until, ptr %left.at
  %longer = mul i64 %wait, 4
  %next.wait = call i64 @llvm.umin.i64(i64 %longer, i64 {LAST_WAIT})
  store i64 %next.wait, ptr %wait.at
  br label %out
out:
  ret void
}}
"""
