//! The printed summary, and the selection of steps and targets.

use super::*;

#[test]
fn a_failure_leaves_the_rest_marked_as_not_run() {
    let steps = chosen(&["fmt".to_owned(), "unit".to_owned(), "crash".to_owned()]).unwrap();
    let times = [Duration::from_millis(840), Duration::from_secs(75)];
    let want =
        "  fmt      ok          0.8 s\n  unit     FAILED   1 m 15 s\n  crash    not run\n  all      FAILED   1 m 15 s";
    assert_eq!(summary(&steps, &times, false), want);
}

#[test]
fn no_names_means_every_step() {
    assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
}

#[test]
fn an_unknown_step_is_answered_with_the_known_ones() {
    let told = chosen(&["units".to_owned()]).err().unwrap();
    assert!(told.contains("units") && told.contains("fmt, clippy, tidy, unit, golden, crash, interop"), "{told}");
}

#[test]
fn test_targets_are_read_from_a_manifest() {
    let manifest = "[package]\nname = \"x\"\n[[test]]\nname = \"crash\"\npath = \"../../tests/crash.rs\"\n[[bench]]\nname = \"b\"\n";
    assert_eq!(targets::by_manifest(manifest), ["crash"]);
}
