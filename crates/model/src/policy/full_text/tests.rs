//! The messages here are the ones that the SDKs' own tests compare.

use super::super::testing::{body, check_rejected, check_returned, create};
use super::*;

#[track_caller]
fn check(policy: &str) {
    check_returned(&format!(r#""fullTextPolicy":{policy}"#), "fullTextPolicy", policy);
}

#[track_caller]
fn check_policy_rejected(policy: &str, message: &str) {
    check_rejected(&format!(r#""fullTextPolicy":{policy}"#), message);
}

fn indexed(index: &str) -> String {
    let policy = r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract"}]}"#;
    format!(r#""fullTextPolicy":{policy},"indexingPolicy":{{"fullTextIndexes":[{index}]}}"#)
}

#[test]
fn policies_are_returned_as_sent() {
    check(r#"{"defaultLanguage":"en-US"}"#);
    check(r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract"}]}"#);
    check(r#"{"defaultLanguage":"fr-FR","fullTextPaths":[{"path":"/a/b","language":"pt-BR"}]}"#);
    check(r#"{"fullTextPaths":[{"path":"/abstract","language":"de-DE"}]}"#);
    check(r#"{"defaultLanguage":"1033","fullTextPaths":[{"path":"/abstract","language":"1033"}]}"#);
}

#[test]
fn the_language_code_1033_is_english() {
    let policy = r#"{"defaultLanguage":"fr-FR","fullTextPaths":[{"path":"/a","language":"1033"},{"path":"/b"}]}"#;
    let policy = FullTextPolicy::parse(&crate::json::parse(policy.as_bytes()).unwrap()).unwrap();
    let language = |name: &str| policy.language(&[PathStep::Property(name.to_owned())]).as_str();
    assert_eq!((language("a"), language("b")), ("en-US", "fr-FR"));
    check_policy_rejected(r#"{"defaultLanguage":"1031"}"#, "unsupported language 1031");
}

#[test]
fn paths_and_languages_are_validated() {
    let path = "The Full Text Policy contains an invalid Path: abstract";
    check_policy_rejected(r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"abstract"}]}"#, path);
    check_policy_rejected(
        r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract/*"}]}"#,
        "an invalid Path: /abstract/*",
    );
    let language = "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: \"en-US\"";
    check_policy_rejected(r#"{"defaultLanguage":"spa-SPA"}"#, language);
    check_policy_rejected(
        r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/a","language":"spa-SPA"}]}"#,
        language,
    );
    check_policy_rejected(r#"{"defaultLanguage":"EN-us"}"#, "unsupported language EN-us");
    check_policy_rejected(r#"{"defaultLanguage":""}"#, "unsupported language . Supported");
    check_policy_rejected(r#"{"fullTextPaths":[{"path":"/a"}]}"#, "The Full Text Policy contains invalid syntax");
    check_policy_rejected(r#"{"defaultLanguage":7}"#, "One of the specified inputs is invalid");
    check_policy_rejected(r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/a"},{"path":"/a"}]}"#, "twice");
}

#[test]
fn an_index_needs_a_path_of_the_policy() {
    assert_eq!(create(&indexed(r#"{"path":"/abstract"}"#)).indexing.full_text.len(), 1);
    let elsewhere = "The path of the Full Text Index /path does not match the path specified in the Full Text Policy";
    check_rejected(&indexed(r#"{"path":"/path"}"#), elsewhere);
    check_rejected(r#""indexingPolicy":{"fullTextIndexes":[{"path":"/path"}]}"#, elsewhere);
    let wrong = "Full-text index specification at index (0) contains invalid path";
    check_rejected(&indexed(r#"{"path":"abstract"}"#), wrong);
    let missing = "Missing path in full-text index specification at index (1)";
    check_rejected(&indexed(r#"{"path":"/abstract"},{"not_path":"abstract"}"#), missing);
}

#[test]
fn a_replace_changes_paths_and_languages() {
    let old = create(&indexed(r#"{"path":"/abstract"}"#));
    let new = body(&indexed(r#"{"path":"/new"}"#).replace("/abstract", "/new").replace("en-US", "it-IT"));
    let new = old.replace(&new).expect("full-text policies may change");
    assert_eq!(new.indexing.full_text[0].path.as_str(), "/new");
}
