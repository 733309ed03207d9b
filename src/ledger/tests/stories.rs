//! Each case is a little story: one step per line, `<time> <who> <verb> …`,
//! and what each step was told. Times are seconds, or hours as `6h`, added up
//! as in `6h+1`. Every name is a process of its own, with a connection of its
//! own to one file; that of `dead` has ended. The only code that knows the API
//! is `story::check`.

use super::story::check;

#[test]
fn second_claim_waits_for_the_expiry() {
    check(
        "0      watcher consolidate background
         3599   person  consolidate by-hand
         3600   person  consolidate by-hand",
        "until 3600
         running until 3600
         until 7200",
    );
}

#[test]
fn late_renewal_is_fine_if_nobody_took_over() {
    check(
        "0      watcher consolidate background
         90     watcher renew
         9000   watcher renew
         9000   person  consolidate by-hand",
        "until 3600
         until 3690
         until 12600
         running until 12600",
    );
}

#[test]
fn every_write_after_a_takeover_says_that_the_lease_is_lost() {
    check(
        "0      watcher consolidate background
         3700   person  consolidate by-hand
         3701   watcher renew
         3701   watcher done 1
         3701   watcher fail
         3701   watcher park
         3701   watcher release
         3702   person  renew
         3703   person  done 1
         3704   person  renew",
        "until 3600
         until 7300
         the lease on `consolidate v1` ran out and another process took it
         the lease on `consolidate v1` ran out and another process took it
         the lease on `consolidate v1` ran out and another process took it
         the lease on `consolidate v1` ran out and another process took it
         the lease on `consolidate v1` ran out and another process took it
         until 7302
         ok
         the lease on `consolidate v1` ran out and another process took it",
    );
}

#[test]
fn a_holder_that_is_provably_gone_is_taken_over_at_once() {
    check(
        "0      dead    consolidate background
         1      jobs
         1      person  consolidate background
         2      dead    renew
         2      dead    extract a @1
         3      person  extract a @1",
        "until 3600
         consolidate abandoned
         until 3601
         the lease on `consolidate v1` ran out and another process took it
         until 3602
         until 3603",
    );
}

#[test]
fn a_lease_further_ahead_than_a_lease_is_long_comes_from_a_clock_that_jumped() {
    check(
        "9000   watcher consolidate background
         8800   person  consolidate by-hand
         8000   person  consolidate by-hand",
        "until 12600
         running until 12600
         until 11600",
    );
}

#[test]
fn success_cools_background_passes_for_six_hours_but_no_person() {
    check(
        "0      watcher consolidate background
         10     watcher done 1
         11     jobs
         6h+9   watcher consolidate background
         6h+9   person  consolidate by-hand
         6h+9   person  release
         6h+10  watcher consolidate background",
        "until 3600
         ok
         consolidate done, cools until 21610
         cooldown until 21610
         until 25209
         ok
         until 25210",
    );
}

#[test]
fn cooldown_follows_success_only_and_ends_to_the_second() {
    check(
        "0      watcher consolidate background
         10     watcher done 1
         6h+9   watcher consolidate background
         6h+10  watcher consolidate background
         6h+20  watcher fail
         7h+20  watcher consolidate background",
        "until 3600
         ok
         cooldown until 21610
         until 25210
         ok
         until 28820",
    );
}

#[test]
fn nothing_to_do_neither_begins_nor_ends_a_cooldown() {
    check(
        "0      watcher consolidate background
         10     watcher idle 1
         20     watcher consolidate background
         30     watcher done 1
         1h     person  consolidate by-hand
         1h     person  idle 1
         1h     jobs
         2h     person  consolidate by-hand
         2h     person  release
         6h+29  watcher consolidate background
         6h+30  watcher consolidate background",
        "until 3600
         ok
         until 3620
         ok
         until 7200
         ok
         consolidate done, cools until 21630
         until 10800
         ok
         cooldown until 21630
         until 25230",
    );
}

#[test]
fn what_a_killed_process_left_is_cleared_up_without_waiting_for_the_cooldown() {
    check(
        "0      watcher consolidate background
         10     watcher done 1
         3h     person  consolidate by-hand
         4h-1   watcher consolidate background
         4h     watcher consolidate background",
        "until 3600
         ok
         until 14400
         running until 14400
         until 18000",
    );
}

#[test]
fn a_service_that_asks_for_patience_is_given_it_up_to_a_day() {
    check(
        "0      w consolidate background
         0      w fail-until 5h
         5h-1   w consolidate background
         5h     w consolidate background
         5h     w fail-until 5h+10
         5h     jobs
         7h     w consolidate by-hand
         7h     w fail-until 100h
         7h     jobs
         0      w extract a @5
         0      w fail-until 9h
         9h-1   w extract a @5
         9h     w extract a @5",
        "until 3600
         ok
         retry later at 18000
         until 21600
         ok
         consolidate waiting at 25200 model_unavailable
         until 28800
         ok
         consolidate parked at 111600 model_unavailable
         until 3600
         ok
         retry later at 32400
         until 36000",
    );
}

#[test]
fn the_watcher_ignores_the_cooldown_for_notes_but_not_the_retry_delay() {
    check(
        "0      watcher consolidate background
         10     watcher done 1
         20     watcher consolidate notes
         30     watcher fail
         40     watcher consolidate notes
         50     person  consolidate by-hand
         60     watcher consolidate notes",
        "until 3600
         ok
         until 3620
         ok
         retry later at 3630
         until 3650
         running until 3650",
    );
}

#[test]
fn consolidation_waits_grow_to_a_day_and_an_empty_budget_parks_without_blocking() {
    check(
        "0      w consolidate background
         0      w fail
         1      jobs
         1h-1   w consolidate background
         1h     w consolidate background
         1h     w fail
         3h-1   w consolidate background
         3h     w consolidate background
         3h     w fail
         4h     jobs
         7h-1   w consolidate background
         7h     w consolidate background
         7h     w fail
         15h    w consolidate background
         15h    w fail
         31h    w consolidate background
         31h    w fail
         55h-1  w consolidate background
         55h    w consolidate background
         55h    w done 1
         55h    jobs",
        "until 3600
         ok
         consolidate waiting at 3600 loss_guard
         retry later at 3600
         until 7200
         ok
         retry later at 10800
         until 14400
         ok
         consolidate parked at 25200 loss_guard
         retry later at 25200
         until 28800
         ok
         until 57600
         ok
         until 115200
         ok
         retry later at 198000
         until 201600
         ok
         consolidate done, cools until 219600",
    );
}

#[test]
fn a_parked_attempt_waits_the_longest_and_new_input_lifts_it() {
    check(
        "0      w consolidate background
         0      w park
         1      jobs
         23h    w consolidate background
         23h    enqueue @5
         23h    jobs
         23h    w consolidate background",
        "until 3600
         ok
         consolidate parked at 86400 head_moved
         retry later at 86400
         ok
         consolidate pending head_moved, input 5
         until 86400, input 5",
    );
}

#[test]
fn asking_lifts_the_retry_delay_but_not_the_cooldown() {
    check(
        "0      w consolidate background
         0      w fail
         10     w consolidate background
         10     enqueue @100
         10     w consolidate background
         20     w done 100
         30     enqueue @50
         30     jobs
         30     w consolidate background
         6h+20  w consolidate background
         6h+20  enqueue @900
         6h+21  jobs",
        "until 3600
         ok
         retry later at 3600
         ok
         until 3610, input 100
         ok
         ok
         consolidate pending, input 101, success 100
         cooldown until 21620
         until 25220, input 101
         ok
         consolidate running until 25220, input 900, success 100",
    );
}

#[test]
fn waits_grow_over_new_input_until_a_success() {
    check(
        "0      w consolidate background
         0      w fail
         1      enqueue @0
         1      w consolidate background
         1      w fail
         2      w consolidate background
         2      enqueue @0
         2      w consolidate background
         2      w done 1
         6h+2   w consolidate background
         6h+2   w fail
         6h+3   w consolidate background",
        "until 3600
         ok
         ok
         until 3601
         ok
         retry later at 7201
         ok
         until 3602, input 2
         ok
         until 25202, input 2
         ok
         retry later at 25202",
    );
}

#[test]
fn a_claim_takes_over_the_watermark_and_success_never_lowers_it() {
    check(
        "0      enqueue @500
         0      w consolidate background
         0      w done 300
         1      jobs
         6h     w consolidate background
         6h     w done 700
         6h     jobs",
        "ok
         until 3600, input 500
         ok
         consolidate done, cools until 21600, input 500, success 500
         until 25200, input 500
         ok
         consolidate done, cools until 43200, input 700, success 700",
    );
}

#[test]
fn an_unchanged_session_is_up_to_date_unless_a_person_names_it() {
    check(
        "0      w extract a @100
         1      w done
         2      w extract a @100
         2      w extract a @99
         2      w extract a @100 by-hand
         2      w extract a @101
         3      w done
         4      w extract a @101 anew",
        "until 3600
         ok
         up to date
         up to date
         up to date
         until 3602
         ok
         until 3604",
    );
}

#[test]
fn extraction_fails_three_times_an_hour_apart_and_then_only_newer_input_revives_it() {
    check(
        "0      w extract a @100
         0      w fail
         1      jobs
         1h-1   w extract a @100
         1h     w extract a @100
         1h     w fail
         2h     w extract a @100
         2h     w fail
         2h     jobs
         99h    w extract a @100
         99h    w extract a @99
         99h    w extract a @101
         99h    w fail
         99h    jobs",
        "until 3600
         ok
         a waiting at 3600 loss_guard, input 100
         retry later at 3600
         until 7200
         ok
         until 10800
         ok
         a exhausted loss_guard, input 100
         retry exhausted
         retry exhausted
         until 360000
         ok
         a waiting at 360000 loss_guard, input 101",
    );
}

#[test]
fn newer_input_does_not_wait_for_the_retry_and_a_person_does_not_either() {
    check(
        "0      w extract a @100
         0      w fail
         1      w extract a @101
         1      w fail
         2      w extract a @101
         2      w extract a @101 by-hand",
        "until 3600
         ok
         until 3601
         ok
         retry later at 3601
         until 3602",
    );
}

#[test]
fn the_running_cap_counts_all_processes_but_no_dead_ones_and_no_other_version() {
    check(
        "0      dead    extract a @1 of 2
         0      one     extract b @1 of 2
         0      two     extract c @1 of 2
         0      three   extract d @1 of 2
         0      three   extract b @1 of 2
         0      three   extract2 d @1 of 2
         1      one     done
         1      four    extract d @1 of 2
         1      five    extract e @1 of 2
         1h     six     extract e @1 of 2",
        "until 3600
         until 3600
         until 3600
         2 running
         running until 3600
         until 3600
         ok
         until 3601
         2 running
         until 7200",
    );
}

#[test]
fn a_job_given_back_untried_costs_nothing() {
    check(
        "0      w extract a @1
         0      w release
         0      jobs
         0      w extract a @1
         0      w renew",
        "until 3600
         ok
         a pending, input 1
         until 3600
         until 3600",
    );
}

#[test]
fn versions_do_not_hold_each_other_up() {
    check(
        "0      w extract a @1
         0      x extract2 a @1
         0      w done
         1      x extract a @1
         1      x extract2 a @1",
        "until 3600
         until 3600
         ok
         up to date
         running until 3600",
    );
}

#[test]
fn a_clock_that_jumped_back_cannot_stop_consolidation_for_long() {
    check(
        "900h   w consolidate background
         900h   w done 1
         1h     w consolidate background
         1h     w fail
         900h   w consolidate background
         900h   w fail
         1h     w consolidate background",
        "until 3243600
         ok
         until 7200
         ok
         until 3243600
         ok
         until 7200",
    );
}
