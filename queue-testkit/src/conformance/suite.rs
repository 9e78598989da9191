//! The list of all cases, and the macro that makes a test of each.
//!
//! Every case stands here once; whatever is made of the cases takes them from here. A test below
//! compares the list with the functions in the families' files, so that a case that was written
//! cannot be left out.

/// Makes one test of every case of the suite, in a module named after the store.
///
/// Takes the module's name, an expression that gives a fresh
/// [`Fixture`](crate::conformance::Fixture), and after a semicolon the families that only some
/// stores promise: `wakes`, `durable`.
#[macro_export]
macro_rules! conformance_suite {
    ($store:ident, $fixture:expr $(; $($family:ident),+)?) => {
        mod $store {
            #[allow(unused_imports, reason = "the fixture may name anything of the outer module")]
            use super::*;

            fn fixture() -> impl $crate::conformance::Fixture {
                $fixture
            }

            $crate::conformance_families!([conformance_tests]);
            $($($crate::conformance_family!([conformance_tests] $family);)+)?
        }
    };
}

/// Hands each family that is asked of every store to a macro; see
/// [`conformance_family!`](crate::conformance_family).
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_families {
    ($to:tt) => {
        $crate::conformance_family!($to insert);
        $crate::conformance_family!($to schedule);
        $crate::conformance_family!($to claim);
        $crate::conformance_family!($to claim_order);
        $crate::conformance_family!($to lease);
        $crate::conformance_family!($to settle);
        $crate::conformance_family!($to stale);
        $crate::conformance_family!($to exchange);
        $crate::conformance_family!($to cancel);
        $crate::conformance_family!($to dead_letter);
        $crate::conformance_family!($to replay_with);
        $crate::conformance_family!($to dedupe);
        $crate::conformance_family!($to dedupe_key);
        $crate::conformance_family!($to dedupe_follow);
        $crate::conformance_family!($to dedupe_window);
        $crate::conformance_family!($to idempotency);
        $crate::conformance_family!($to idempotency_window);
        $crate::conformance_family!($to versions);
        $crate::conformance_family!($to admin);
        $crate::conformance_family!($to waiting);
        $crate::conformance_family!($to verify);
        $crate::conformance_family!($to prune);
        $crate::conformance_family!($to races);
        $crate::conformance_family!($to races_settle);
    };
}

/// Hands the cases of one family to a macro: its name in brackets, with whatever it wants besides.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_family {
    ($to:tt insert) => {
        $crate::conformance_handed! { $to insert:
            every_field_is_stored_as_it_was_given
            a_plain_job_has_no_key_and_no_history
            a_batch_is_answered_in_its_order
            an_empty_batch_stores_nothing
            a_repeated_id_is_new_again_and_changes_nothing
            a_repeated_id_with_its_keys_is_new_and_not_its_own_duplicate
            a_repeated_id_leaves_a_running_job_alone
            a_repeated_id_does_not_run_a_final_job_again
            one_id_twice_in_a_batch_is_one_job
            a_batch_that_is_sent_twice_is_stored_once
            a_payload_survives_byte_for_byte
            a_payload_of_a_mebibyte_survives
            numbers_at_their_bounds_survive
            a_large_batch_is_stored_whole
            a_dropped_insert_can_be_repeated
            jobs_inserted_later_are_dated_later
        }
    };
    ($to:tt schedule) => {
        $crate::conformance_handed! { $to schedule:
            a_delayed_job_is_not_a_millisecond_early
            a_job_due_at_an_instant_waits_for_it
            an_instant_that_has_passed_means_at_once
            a_delay_beyond_the_end_of_time_waits_for_ever
            a_deadline_counts_from_the_insert_not_from_the_due_time
            a_job_past_its_deadline_is_still_handed_out
            a_retry_waits_for_its_delay_from_the_settlement
            a_retry_without_delay_is_due_at_once
            a_snooze_beyond_the_end_of_time_waits_for_ever
            nothing_is_due_next_in_an_empty_store
            the_next_due_time_counts_down_to_zero_and_stays_there
            only_claimable_jobs_are_due_next
            the_next_due_time_is_of_the_queues_and_types_that_were_named
            asking_for_the_next_due_time_changes_nothing
        }
    };
    ($to:tt claim) => {
        $crate::conformance_handed! { $to claim:
            a_claim_starts_an_attempt_under_a_lease
            a_claim_hands_out_everything_that_was_stored
            a_limit_of_zero_claims_nothing
            a_claim_takes_no_more_than_its_limit
            the_limit_counts_over_all_queues
            a_limit_without_bound_claims_what_there_is
            other_queues_stay_untouched
            unknown_types_stay_untouched
            a_schema_above_the_readers_stays_untouched
            each_type_has_a_schema_bound_of_its_own
            a_worker_of_many_types_is_served
            a_running_job_is_not_claimed_again
            a_job_whose_lease_ran_out_is_not_claimed_before_its_rescue
            final_jobs_are_not_claimed
            the_job_waiting_behind_its_key_is_not_claimed
            tokens_rise_from_claim_to_claim_over_all_jobs
            a_token_is_not_reused_after_its_job_is_gone
            every_claim_counts_an_attempt
            a_lease_lasts_as_long_as_its_request_says
        }
    };
    ($to:tt claim_order) => {
        $crate::conformance_handed! { $to claim_order:
            queues_are_served_in_the_order_of_the_request
            a_higher_priority_runs_first
            priority_counts_before_the_due_time
            the_job_that_was_due_first_runs_first
            jobs_due_together_run_in_the_order_of_their_ids
            a_small_limit_takes_the_first_in_order
            a_crowd_of_unknown_types_at_the_head_hides_nobody
            a_crowd_of_future_jobs_at_the_head_hides_nobody
            a_crowd_of_waiting_reruns_at_the_head_hides_nobody
            suspects_beyond_their_limit_make_way_for_others
            a_claim_without_suspects_neither_takes_nor_waits_for_one
            a_job_one_crash_short_of_a_suspect_is_none
        }
    };
    ($to:tt lease) => {
        $crate::conformance_handed! { $to lease:
            a_renewed_lease_ends_one_lease_from_now
            a_shorter_renewal_shortens_the_lease
            a_renewal_with_a_token_that_never_was_is_lost
            a_renewal_of_a_job_that_is_not_running_is_lost
            a_renewal_by_a_worker_that_was_replaced_is_lost
            renewals_are_answered_in_their_order
            renewing_no_lease_answers_nothing
            a_lease_that_ran_out_can_be_renewed_until_its_rescue
            a_renewal_hears_of_a_cancel_and_still_renews
            a_lease_runs_out_at_its_end_and_not_before
            the_lease_that_ran_out_first_is_listed_first
            only_running_jobs_can_expire
            only_a_running_job_shows_a_lease
            a_rescued_job_waits_again_and_counts_the_crash
            a_rescue_can_end_a_job_that_keeps_crashing
            a_rescue_before_the_lease_ran_out_is_refused
            a_rescue_of_a_lease_renewed_a_moment_ago_is_refused
            a_refused_rescue_does_not_hinder_the_others
            a_second_rescue_of_one_lease_changes_nothing
            a_rescue_with_an_old_token_does_not_take_the_next_run
            two_workers_never_hold_one_job
            leases_of_many_jobs_are_renewed_in_one_call
        }
    };
    ($to:tt settle) => {
        $crate::conformance_handed! { $to settle:
            a_success_is_done
            a_retry_waits_with_its_error
            a_dead_letter_keeps_its_reason
            a_run_that_was_called_off_is_cancelled
            a_snooze_gives_its_attempt_back
            a_run_that_is_handed_back_costs_nothing
            every_outcome_is_remembered_by_its_word
            the_counters_are_those_of_the_settlement
            the_counters_of_a_success_are_those_of_its_settlement
            a_settlement_without_error_keeps_the_last_one
            a_newer_error_replaces_the_last_one
            an_error_text_survives_byte_for_byte
            settlements_are_answered_in_their_order
            settling_nothing_answers_nothing
            a_run_whose_lease_ran_out_can_settle_until_its_rescue
            a_thousand_settlements_fit_one_call
            a_requeued_job_keeps_everything_it_was_given
        }
    };
    ($to:tt stale) => {
        $crate::conformance_handed! { $to stale:
            stale_token_cannot_settle
            a_token_of_another_job_cannot_settle
            a_late_settle_from_a_rescued_run_changes_nothing
            a_settlement_that_is_sent_twice_is_applied_once
            the_second_settlement_of_a_batch_for_one_run_is_stale
            a_job_that_is_not_running_cannot_be_settled
            no_settlement_leads_out_of_a_final_state
        }
    };
    ($to:tt exchange) => {
        $crate::conformance_handed! { $to exchange:
            an_exchange_settles_and_then_claims
            an_exchange_claims_what_its_settlements_made_due
            an_exchange_claims_also_when_its_settlement_is_stale
            an_exchange_of_nothing_is_a_claim
        }
    };
    ($to:tt cancel) => {
        $crate::conformance_handed! { $to cancel:
            a_waiting_job_is_cancelled_at_once
            a_scheduled_job_is_cancelled_at_once
            a_retrying_job_is_cancelled_at_once
            a_running_job_is_only_asked_to_stop
            a_second_request_keeps_the_time_of_the_first
            a_final_job_cannot_be_cancelled
            cancelling_nothing_leaves_no_mark
            a_success_after_the_request_is_done
            a_failure_for_good_after_the_request_is_a_dead_letter
            a_stop_after_the_request_is_cancelled
            a_retry_after_the_request_is_cancelled
            a_snooze_after_the_request_is_cancelled
            a_hand_back_after_the_request_is_cancelled
            a_rescue_after_the_request_is_cancelled
            a_request_survives_a_renewal
            a_cancelled_job_frees_its_dedupe_key
            cancelling_a_retrying_job_lets_the_one_behind_it_run
            cancelling_the_one_behind_leaves_the_running_job_alone
        }
    };
    ($to:tt dead_letter) => {
        $crate::conformance_handed! { $to dead_letter:
            a_replayed_dead_letter_waits_again
            a_replayed_cancelled_job_waits_again
            a_replayed_job_is_due_at_once
            a_replay_starts_the_counters_from_zero
            a_replayed_job_keeps_its_history
            only_a_replay_as_new_raises_the_generation
            a_job_in_any_other_state_is_not_replayable
            replaying_nothing_is_not_found
            a_second_replay_changes_nothing
            a_run_from_before_the_replay_cannot_settle
            a_dead_letter_stays_while_a_waiting_job_holds_its_key
            a_dead_letter_stays_while_a_running_job_holds_its_key
            a_dead_letter_stays_while_a_retrying_job_holds_its_key
            a_dead_letter_stays_while_two_jobs_hold_its_key
            a_dead_letter_can_be_replayed_once_its_key_is_free
            a_cancelled_job_from_behind_comes_back_as_the_live_one
            a_cancel_request_does_not_outlive_its_replay
        }
    };
    ($to:tt replay_with) => {
        $crate::conformance_handed! { $to replay_with:
            an_edited_dead_letter_waits_with_its_new_payload
            an_edited_cancelled_job_waits_with_its_new_payload
            only_an_edit_as_new_raises_the_generation
            an_untyped_edit_leaves_every_key_as_stored
            a_typed_edit_sets_the_dedupe_key_and_the_cache_entry
            a_typed_edit_without_keys_takes_them_away
            an_edited_job_holds_its_new_key_and_not_the_old_one
            a_dead_letter_stays_while_a_live_job_holds_the_key_of_its_edit
            a_dead_letter_stays_while_a_live_job_holds_its_unedited_key
            a_live_job_under_the_old_key_hinders_no_edit_of_the_key
            a_key_of_an_edit_is_given_up_when_the_edit_says_so
            a_window_is_neither_asked_nor_opened_by_an_edit
            an_edit_raises_the_version_and_never_lowers_it
            a_request_is_answered_by_the_edited_job
            an_edit_for_another_type_changes_nothing
            an_edit_for_any_of_its_names_is_taken
            a_job_in_any_other_state_is_not_edited
            editing_nothing_is_not_found
            one_of_many_edits_takes_place
            an_edit_and_a_newcomer_never_both_take_the_key
        }
    };
    ($to:tt dedupe) => {
        $crate::conformance_handed! { $to dedupe:
            keep_drops_a_newcomer_while_the_job_waits
            keep_drops_a_newcomer_while_the_job_runs
            keep_drops_a_newcomer_while_the_job_retries
            keep_answers_with_the_running_job_and_not_the_one_behind
            replace_rewrites_a_job_that_waits
            replace_waits_behind_a_job_that_runs
            replace_rewrites_a_job_that_retries_and_keeps_its_counters
            replace_rewrites_the_one_behind
            replace_rewrites_the_one_behind_a_job_that_retries
            rerun_drops_a_newcomer_while_the_job_waits
            rerun_waits_behind_a_job_that_runs
            rerun_drops_a_newcomer_while_the_job_retries
            rerun_keeps_only_one_behind
            rerun_keeps_the_one_behind_a_job_that_retries
            replace_rewrites_a_job_that_holds_its_key_until_the_start
            a_replaced_job_keeps_its_place_and_its_due_time
        }
    };
    ($to:tt dedupe_key) => {
        $crate::conformance_handed! { $to dedupe_key:
            a_final_job_frees_its_key
            a_key_is_held_through_retry_rescue_and_hand_back
            a_key_belongs_to_its_job_type
            a_key_is_the_same_in_every_queue
            keys_are_compared_byte_for_byte
            equal_payload_texts_do_not_differ
            equal_keys_in_one_batch_see_each_other
            one_batch_can_fill_the_slot_behind_only_once
            a_key_held_until_the_start_is_free_at_the_first_claim
            a_retry_does_not_take_a_started_key_again
            jobs_without_a_key_are_never_duplicates
        }
    };
    ($to:tt dedupe_follow) => {
        $crate::conformance_handed! { $to dedupe_follow:
            a_success_lets_the_one_behind_run
            a_dead_letter_lets_the_one_behind_run
            a_cancelled_run_lets_the_one_behind_run
            a_cancel_request_and_a_retry_let_the_one_behind_run
            a_retry_keeps_the_one_behind_waiting
            a_rescue_keeps_the_one_behind_waiting
            the_one_behind_keeps_its_own_due_time
        }
    };
    ($to:tt dedupe_window) => {
        $crate::conformance_handed! { $to dedupe_window:
            a_window_answers_to_its_end_and_no_longer
            a_window_counts_from_the_job_that_was_stored
            a_window_outlives_its_job_in_every_state
            a_window_answers_for_a_job_that_was_pruned
            a_window_job_stores_no_dedupe_key
            replace_rewrites_a_waiting_job_within_its_window
            replace_leaves_a_running_or_final_job_of_a_window_alone
            rerun_stores_no_second_job_within_a_window
            a_window_belongs_to_its_job_type
            equal_window_keys_in_one_batch_see_each_other
            each_newcomer_brings_its_own_window
        }
    };
    ($to:tt idempotency) => {
        $crate::conformance_handed! { $to idempotency:
            a_repeated_request_is_answered_by_its_job_in_every_state
            a_job_shows_its_key_in_every_state
            a_repeated_request_hears_of_a_dead_letter_and_of_a_cancel
            a_repeated_request_is_known_by_its_fingerprint_not_its_text
            another_request_under_the_key_is_a_conflict_that_names_fields_only
            a_conflict_names_fields_that_only_one_request_has
            a_conflict_is_answered_also_after_the_job_is_final_and_gone
            a_conflict_does_not_raise_a_version
            a_key_belongs_to_its_job_type
            keys_are_compared_byte_for_byte
            equal_requests_in_one_batch_are_one_job
            a_key_is_bound_to_the_job_that_answers_by_dedupe
            the_idempotency_key_answers_before_the_dedupe_key
        }
    };
    ($to:tt idempotency_window) => {
        $crate::conformance_handed! { $to idempotency_window:
            a_key_answers_to_the_end_of_its_window_and_no_longer
            a_window_counts_from_the_insert
            a_key_outlives_its_window_while_the_job_is_unfinished
            a_pruned_job_still_answers_within_its_window
            a_job_cancelled_while_it_waits_closes_its_key
            a_replayed_job_holds_its_key_again
            a_replayed_job_does_not_take_its_key_back
            a_bound_key_closes_with_the_job_it_was_bound_to
            a_key_bound_to_a_final_job_lasts_its_window
            a_prune_removes_keys_whose_window_has_passed_and_no_others
            a_prune_removes_no_more_keys_than_its_limit
        }
    };
    ($to:tt versions) => {
        $crate::conformance_handed! { $to versions:
            an_unknown_cache_key_has_no_version
            a_version_rises_and_never_falls
            version_zero_is_a_version
            each_cache_key_has_a_version_of_its_own
            a_batch_leaves_the_highest_version
            a_duplicate_raises_the_version
            a_repeated_request_raises_the_version
            a_repeated_id_does_not_raise_a_version
            a_version_outlives_its_job
            a_job_is_handed_out_with_the_version_it_was_made_for
        }
    };
    ($to:tt admin) => {
        $crate::conformance_handed! { $to admin:
            every_job_is_counted_once
            an_unknown_job_has_no_record_and_no_history
            the_history_of_a_hard_life_is_complete
            a_running_attempt_is_open_in_the_history
            histories_of_jobs_are_kept_apart
            every_change_moves_the_time_of_the_last_change
            the_time_is_the_stores_clock
            a_second_migration_changes_nothing
            a_closed_store_says_so
            a_store_can_be_closed_twice
            final_jobs_are_listed_page_by_page_the_newest_end_first
            a_state_that_is_not_final_has_no_final_jobs
        }
    };
    ($to:tt waiting) => {
        $crate::conformance_handed! { $to waiting:
            nothing_has_to_be_read_in_an_empty_store
            what_may_still_be_read_is_counted_by_type_queue_and_schema
            a_sample_has_what_was_counted_and_nothing_else
            a_sample_is_read_page_by_page_in_the_order_of_ids
            what_nobody_reads_is_counted_by_type_and_schema
            what_nobody_reads_is_counted_in_the_queues_that_are_asked_about
            a_crowd_that_nobody_reads_is_counted_to_a_bound
            many_shapes_that_nobody_reads_are_counted_to_a_bound
        }
    };
    ($to:tt verify) => {
        $crate::conformance_handed! { $to verify:
            an_empty_store_is_sound
            a_store_after_a_lively_history_is_sound
            counters_that_no_history_explains_are_found
            a_job_that_waits_for_one_attempt_too_many_is_found
            no_more_than_the_limit_is_listed_of_a_rule
            a_lease_that_nobody_takes_back_is_a_warning
            a_look_while_everybody_works_finds_nothing
        }
    };
    ($to:tt prune) => {
        $crate::conformance_handed! { $to prune:
            each_final_state_has_a_retention_of_its_own
            retention_counts_from_when_a_job_became_final
            a_prune_removes_the_oldest_up_to_its_limit
            a_pruned_job_takes_its_history_along
            a_prune_never_touches_a_live_job
            a_prune_in_an_empty_store_finds_nothing
            a_prune_counts_each_kind_for_itself
            a_prune_keeps_its_limit_for_each_kind
        }
    };
    ($to:tt races) => {
        $crate::conformance_handed! { $to races:
            a_hundred_equal_requests_are_one_job
            a_hundred_equal_dedupe_keys_are_one_live_job
            a_hundred_reruns_leave_one_behind_the_running_job
            a_batch_sent_by_ten_callers_is_stored_once
            ten_claimers_take_each_job_once
            no_sample_misses_a_job_or_counts_it_twice
            a_crowd_of_everybody_leaves_a_sound_store
        }
    };
    ($to:tt races_settle) => {
        $crate::conformance_handed! { $to races_settle:
            one_of_many_settlements_of_a_run_is_applied
            a_renewal_and_a_rescue_never_both_win
            a_settlement_and_a_rescue_never_both_win
            many_rescuers_rescue_each_job_once
            a_cancel_and_a_claim_agree_on_who_was_first
            one_of_many_replays_takes_place
            a_replay_and_a_newcomer_never_both_take_the_key
            a_rerun_asked_for_while_the_job_ends_is_never_lost
        }
    };
    ($to:tt wakes) => {
        $crate::conformance_handed! { $to wakes:
            silence_is_not_a_hint
            an_insert_wakes_every_listener
            a_job_that_is_due_again_at_once_wakes
            a_rescue_wakes
            the_end_of_a_job_wakes_for_the_one_behind_it
            a_cancel_wakes_for_the_one_behind
            a_replay_wakes
            an_edit_wakes
        }
    };
    ($to:tt durable) => {
        $crate::conformance_handed! { $to durable:
            every_job_and_its_history_is_there_again
            a_lease_outlives_the_process_and_its_token_still_holds
            tokens_still_rise
            keys_and_windows_still_answer
            versions_are_still_known
            a_started_key_is_still_given_up_at_the_first_claim
        }
    };
}

/// Calls the macro that the cases are for.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_handed {
    ([$to:ident $($with:tt)*] $($cases:tt)*) => {
        $crate::$to! { [$($with)*] $($cases)* }
    };
}

/// Makes the test functions of a list of cases.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ([] $family:ident: $($case:ident)+) => {
        mod $family {
            $(
                #[test]
                fn $case() {
                    $crate::conformance::run(
                        super::fixture(),
                        $crate::conformance::$family::$case,
                    );
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Lists the names in a text that follow `before` on a line and end at `end`.
    fn names<'a>(text: &'a str, before: &str, end: &str) -> Vec<&'a str> {
        let name = |line: &'a str| line.strip_prefix(before)?.split_once(end);
        text.lines()
            .filter_map(name)
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn every_case_that_was_written_is_in_the_list() {
        // Cargo's word at run time: checkouts may share one target folder.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs its tests");
        let folder = Path::new(&here).join("src/conformance");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a source file");
        let list = read("suite.rs");
        let modules = read("mod.rs");
        for family in names(&modules, "pub mod ", ";") {
            let written = names(
                &read(&format!("{family}.rs")),
                "pub async fn ",
                "(s: &Subject)",
            )
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
            if written.is_empty() {
                continue; // Not a family: what the cases share.
            }
            let start = format!("conformance_handed! {{ $to {family}:\n");
            let (_, listed) = list
                .split_once(&start)
                .expect("every family is in the list");
            let (listed, _) = listed.split_once('}').expect("the list of a family ends");
            let listed: Vec<&str> = listed.split_whitespace().collect();
            assert_eq!(listed, written, "the list of {family}.rs");
        }
    }
}
