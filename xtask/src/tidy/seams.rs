//! Words that a part of the source must not contain: protocol code reaches data through `engine` only, only the HTTP
//! code of an API knows HTTP, and below `wire` there is no header and no protocol's words.
//!
//! Guarantees: tests do not count. Words of code are looked for outside comments and string literals; words of texts
//! anywhere in the file.

use super::modules::is_module;
use super::rust;
use super::tree::SourceTree;

/// A rule for the files whose paths begin with one of `parts`, those below `except` excluded.
struct SeamRule {
    parts: &'static [&'static str],
    except: Option<&'static str>,
    words: SeamWords,
    why: &'static str,
}

enum SeamWords {
    /// Paths and names, as the source writes them.
    Code(&'static [&'static str]),
    /// Parts of comments and string literals.
    Text(&'static [&'static str]),
}

const RULES: [SeamRule; 6] = [
    SeamRule {
        parts: &["crates/wire/src/"],
        except: None,
        words: SeamWords::Code(&["Arc<Partition>", "CatalogTree", "pleiad_partition", "pleiad_storage"]),
        why: "protocols reach data through `engine`, with an `Admitted`",
    },
    SeamRule {
        parts: &["crates/wire/src/nosql/"],
        except: Some("crates/wire/src/nosql/http"),
        words: SeamWords::Code(&[
            "HeaderMap",
            "HeaderName",
            "HeaderValue",
            "http::Method",
            "http::Request",
            "http::StatusCode",
        ]),
        why: "operations and replies are independent of the transport; HTTP is decoded and encoded in nosql/http",
    },
    SeamRule {
        parts: &["crates/wire/src/management"],
        except: Some("crates/wire/src/management/http"),
        words: SeamWords::Code(&["HeaderMap", "HeaderName", "HeaderValue", "http::Method", "http::Request", "hyper"]),
        why: "the management API is independent of the transport; HTTP is decoded in management/http.rs",
    },
    SeamRule {
        parts: &["crates/wire/src/transport"],
        except: None,
        words: SeamWords::Code(&["hyper", "http::"]),
        why: "the transport knows no protocol",
    },
    SeamRule {
        parts: &["crates/wire/src/account"],
        except: None,
        words: SeamWords::Code(&["HeaderMap", "HeaderValue", "http::Request", "hyper"]),
        why: "credentials are verified for every protocol",
    },
    SeamRule {
        parts: &[
            "crates/engine/src/",
            "crates/script/src/",
            "crates/partition/src/",
            "crates/storage/src/",
            "crates/model/src/",
        ],
        except: None,
        words: SeamWords::Text(&["x-ms-", "x-pleiad-", "aka.ms/"]),
        why: "headers and a protocol's sentences are in `wire`; errors that need them are facts",
    },
];

pub fn check(tree: &SourceTree) -> Vec<String> {
    let files: Vec<_> = tree.files().filter(|(path, _)| is_module(path)).collect();
    let of_file =
        |(path, text): &(&str, &str)| RULES.iter().flat_map(|rule| broken(rule, path, text)).collect::<Vec<_>>();
    files.iter().flat_map(of_file).collect()
}

/// Parts that no file is in: their rules check nothing.
pub fn check_parts(tree: &SourceTree) -> Vec<String> {
    let is_there = |part: &str| tree.files().any(|(path, _)| path.starts_with(part));
    let parts = RULES.iter().flat_map(|rule| rule.parts).filter(|part| !is_there(part));
    parts.map(|part| format!("xtask/src/tidy/seams.rs: no file begins with {part}")).collect()
}

fn broken(rule: &SeamRule, path: &str, text: &str) -> Vec<String> {
    let is_part = rule.parts.iter().any(|part| path.starts_with(part));
    if !is_part || rule.except.is_some_and(|except| path.starts_with(except)) {
        return Vec::new();
    }
    let product = |text: &str| text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    let (words, searched) = match rule.words {
        SeamWords::Code(words) => (words, product(&rust::lex(text).code)),
        SeamWords::Text(words) => (words, product(text)),
    };
    let found = words.iter().filter(|word| searched.contains(**word));
    found.map(|word| format!("{path}: `{word}`; {}", rule.why)).collect()
}
