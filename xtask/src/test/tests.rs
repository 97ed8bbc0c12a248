//! The printed summary, and the selection of steps and targets.

use super::*;

#[test]
fn steps_after_a_failure_are_marked_as_not_run() {
    let steps = selected_steps(&["fmt".to_owned(), "unit".to_owned(), "crash".to_owned()]).unwrap();
    let times = [Duration::from_millis(840), Duration::from_secs(75)];
    let want =
        "  fmt      ok          0.8 s\n  unit     FAILED   1 m 15 s\n  crash    not run\n  all      FAILED   1 m 15 s";
    assert_eq!(summary(&steps, &times, false), want);
}

#[test]
fn without_names_all_steps_are_selected() {
    assert_eq!(selected_steps(&[]).unwrap().len(), STEPS.len());
}

#[test]
fn an_unknown_step_is_rejected_with_the_list_of_steps() {
    let error = selected_steps(&["units".to_owned()]).err().unwrap();
    assert!(error.contains("units") && error.contains("fmt, clippy, tidy, unit, golden, crash, interop"), "{error}");
}

#[test]
fn test_targets_are_read_from_a_manifest() {
    let manifest = "[package]\nname = \"x\"\n[[test]]\nname = \"crash\"\npath = \"../../tests/crash.rs\"\n[[bench]]\nname = \"b\"\n";
    assert_eq!(targets::by_manifest(manifest), ["crash"]);
}
