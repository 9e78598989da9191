//! Jobs that `#[job]` accepts: each file under `ui/pass` is a program whose `main` says what holds.
//!
//! They are modules of one binary, since linking each alone took longer than all other suites
//! together. Programs that need a crate of their own are under `ui/pass_alone`.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "programs written to be whole crates"
)]
#![allow(
    clippy::duplicate_mod,
    clippy::drop_non_drop,
    clippy::let_underscore_future,
    reason = "each program loads what it shares, and says only what its point needs"
)]

macro_rules! accepted {
    ($($path:literal $name:ident;)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        /// The names of the listed programs.
        const LISTED: &[&str] = &[$(stringify!($name)),*];

        mod compiles_and_does_what_it_says {
            $(
                #[test]
                fn $name() {
                    super::$name::main();
                }
            )*
        }
    };
}

accepted! {
    "../ui/pass/a_cached_job.rs" a_cached_job;
    "../ui/pass/a_job_from_macro_rules.rs" a_job_from_macro_rules;
    "../ui/pass/a_job_in_a_function_body.rs" a_job_in_a_function_body;
    "../ui/pass/a_mut_argument.rs" a_mut_argument;
    "../ui/pass/a_payload_with_serde_derives.rs" a_payload_with_serde_derives;
    "../ui/pass/a_result_type_called_refreshed.rs" a_result_type_called_refreshed;
    "../ui/pass/an_argument_called_queue.rs" an_argument_called_queue;
    "../ui/pass/an_argument_type_with_serde_alone.rs" an_argument_type_with_serde_alone;
    "../ui/pass/an_inject_type_of_the_users.rs" an_inject_type_of_the_users;
    "../ui/pass/arguments_that_only_a_key_uses.rs" arguments_that_only_a_key_uses;
    "../ui/pass/attributes_on_the_job.rs" attributes_on_the_job;
    "../ui/pass/classified_errors.rs" classified_errors;
    "../ui/pass/derived_debug_shows_values.rs" derived_debug_shows_values;
    "../ui/pass/digits_and_suffixes_in_names.rs" digits_and_suffixes_in_names;
    "../ui/pass/every_kind_of_error.rs" every_kind_of_error;
    "../ui/pass/every_option.rs" every_option;
    "../ui/pass/keys_in_every_form.rs" keys_in_every_form;
    "../ui/pass/no_arguments_and_injected_only.rs" no_arguments_and_injected_only;
    "../ui/pass/options_on_arguments.rs" options_on_arguments;
    "../ui/pass/raw_identifiers.rs" raw_identifiers;
    "../ui/pass/retry_if_takes_any_path.rs" retry_if_takes_any_path;
    "../ui/pass/shadowed_std_names.rs" shadowed_std_names;
    "../ui/pass/the_librarys_own_types_as_arguments.rs" the_librarys_own_types_as_arguments;
    "../ui/pass/the_reference_job.rs" the_reference_job;
}

#[test]
fn every_program_in_the_folder_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/ui/pass");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("a folder can be listed").file_name())
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    found.sort();
    assert_eq!(found, LISTED);
    assert!(found.len() >= 12, "only {} programs", found.len());
}
