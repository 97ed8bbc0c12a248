//! Each check on a tree of a few lines: what it finds, and what it accepts.

use super::*;

#[track_caller]
fn finds(findings: Vec<String>, want: &[&str]) {
    assert_eq!(findings.len(), want.len(), "{findings:#?}");
    for (found, want) in findings.iter().zip(want) {
        assert!(found.contains(want), "`{found}` does not contain `{want}`");
    }
}

// ---- arrows

#[test]
fn a_dependency_that_is_not_allowed_is_found() {
    let tree = SourceTree::of(&[
        (
            "crates/sql/Cargo.toml",
            "[dependencies]\npleiad-model.workspace = true\n[dev-dependencies]\npleiad-storage = { path = \"../storage\" }",
        ),
        ("crates/engine/Cargo.toml", "[dependencies]\npleiad-sql.workspace = true\nserde_json = \"1\""),
    ]);
    let found = "crates/sql/Cargo.toml: sql imports storage; it may import only spatial, text, vector, model";
    finds(arrows::check(&tree), &[found]);
}

// ---- seams

#[test]
fn protocol_code_that_reaches_past_the_engine_is_found() {
    let tree = SourceTree::of(&[
        ("crates/wire/src/nosql/items.rs", "use pleiad_engine::catalog::CatalogTree;\nfn f(m: &http::Method) {}\n"),
        ("crates/wire/src/nosql/http/decode.rs", "fn f(m: &http::Method) {}\n"),
        (
            "crates/wire/src/mongo.rs",
            "//! Not a CatalogTree.\nconst A: &str = \"CatalogTree\";\nuse a::Arc<Partition>;\n",
        ),
        ("crates/wire/src/transport/accept.rs", "#[cfg(test)]\nmod tests {\n    use hyper::Request;\n}\n"),
        ("crates/wire/src/nosql/items/tests.rs", "use http::HeaderMap;\n"),
        ("crates/wire/src/management/http.rs", "fn f(m: &http::Method) {}\n"),
        ("crates/wire/src/management/jobs.rs", "fn f(m: &http::Method) {}\n"),
        ("crates/engine/src/feed.rs", "use crate::catalog::CatalogTree;\n"),
    ]);
    let found = [
        "items.rs: `CatalogTree`",
        "items.rs: `http::Method`",
        "jobs.rs: `http::Method`",
        "mongo.rs: `Arc<Partition>`",
    ];
    let mut findings = seams::check(&tree);
    findings.sort_by_key(|found| !found.contains("items.rs"));
    finds(findings, &found);
}

#[test]
fn a_crate_missing_in_the_table_is_found() {
    let tree =
        SourceTree::of(&[("crates/common/Cargo.toml", "[dependencies]\n"), ("tests/interop/rust/Cargo.toml", "")]);
    finds(arrows::check(&tree), &["`common` has no row"]);
}

#[test]
fn dependencies_are_found_in_every_notation() {
    let manifest = "\
[package]
name = \"pleiad-sql\"
[dependencies]
pleiad-model.workspace = true
store = { workspace = true, package = \"pleiad-storage\" }
rocksdb = { version = \"1\", features = [
  \"lz4\",
] }
[dependencies.pleiad-wire]
workspace = true
[target.'cfg(unix)'.build-dependencies]
\"pleiad-engine\" = { workspace = true }
[features]
x = [\"pleiad-script\"]";
    assert_eq!(
        arrows::dependencies(manifest),
        ["pleiad-model", "pleiad-storage", "rocksdb", "pleiad-wire", "pleiad-engine"]
    );
}

// ---- modules

#[test]
fn a_missing_header_and_a_long_module_are_found() {
    let long = format!("//! Long.\n{}", "\n".repeat(700));
    let tree = SourceTree::of(&[
        ("crates/model/src/etag.rs", "//! Etags.\n"),
        ("crates/model/src/bare.rs", "use std::fmt;\n"),
        ("crates/model/src/long.rs", &long),
        ("crates/model/src/long/tests.rs", &long[10..]),
        ("crates/model/benches/any.rs", "fn main() {}"),
    ]);
    finds(modules::check(&tree), &["bare.rs: has no", "long.rs: 701 lines"]);
}

// ---- paths

#[test]
fn a_path_that_does_not_exist_is_found_with_a_suggestion() {
    let page = "See `crates/partition/src/router.rs`, [the docs](docs/ru.md#prices) and [gone](gone.md).\n\
                ```\ntests/interop/{python,js}\n```\nNot code: crates/none. `tests/golden/**` `crates/*/src`";
    let tree = SourceTree::of(&[
        ("ARCHITECTURE.md", page),
        ("crates/partition/src/route.rs", ""),
        ("docs/ru.md", "[up](../ARCHITECTURE.md)"),
        ("tests/interop/python/x.py", ""),
        ("tests/golden/a", ""),
    ]);
    finds(
        paths::check(&tree),
        &[
            "links to gone.md",
            "names crates/partition/src/router.rs, which does not exist (route.rs?)",
            "names tests/interop/js, which does not exist",
        ],
    );
}

#[test]
fn a_missing_architecture_page_is_found() {
    finds(paths::check(&SourceTree::default()), &["ARCHITECTURE.md does not exist"]);
}

#[test]
fn paths_are_read_without_surrounding_punctuation() {
    let page = "`crates/a/src/b.rs:12` `tests/x.py::test_y`, (`docs/z.md#part`) `./docs/w.md.` `fuzz/<name>/x`";
    assert_eq!(paths::named_paths(page), ["crates/a/src/b.rs", "tests/x.py", "docs/z.md", "docs/w.md", "fuzz"]);
}

#[test]
fn edit_distances() {
    for (a, b, want) in [("", "", 0), ("router.rs", "route.rs", 1), ("abc", "", 3), ("kitten", "sitting", 3)] {
        assert_eq!(paths::distance(a, b), want, "{a} {b}");
    }
}

// ---- requirements

#[test]
fn an_unknown_requirement_number_is_found() {
    let tree = SourceTree::of(&[
        ("docs/requirements.md", "S170 S171\n"),
        ("crates/engine/src/item.rs", "struct S999;\n#[test] fn s0_never() {}"),
        ("crates/engine/src/item/tests.rs", "// S12, S300\nfn s12_ids() {}"),
        ("tests/golden/page", "# proves S1 and S204\nitem {\"id\":\"S500\"}\n"),
        ("tests/interop/python/test_x.py", "def test_s400_x():\n"),
        ("tests/interop/js/package-lock.json", "S700"),
    ]);
    finds(
        requirements::check(&tree),
        &[
            "crates/engine/src/item.rs:2: S0",
            "crates/engine/src/item/tests.rs:1: S300",
            "docs/requirements.md:1: S171",
            "tests/golden/page:1: S204",
            "tests/interop/python/test_x.py:1: S400",
        ],
    );
}

#[test]
fn a_named_test_that_does_not_exist_is_found() {
    let page = "S1 `engine::item::tests::s1_shapes` `engine::item::tests::s1_gone` `tests/interop/python/t.py::test_a` \
                `tests/interop/python/t.py::test_b` `Kind::Moved`";
    let tree = SourceTree::of(&[
        ("docs/requirements.md", page),
        ("crates/engine/src/item/tests.rs", "#[tokio::test]\nasync fn s1_shapes() {}"),
        ("tests/interop/python/t.py", "def test_a(container): ..."),
    ]);
    finds(requirements::check(&tree), &["there is no test s1_gone", "there is no test test_b"]);
}

#[test]
fn requirement_numbers_are_whole_words() {
    assert_eq!(requirements::numbers("(S12) S3, AS4 S5x S_6 s7 \"S8: x\""), [12, 3, 8]);
    assert_eq!(requirements::numbers_in_name("    pub async fn s45_and_s46_split() {"), [45, 46]);
    assert_eq!(requirements::numbers_in_name("func TestS3S15AContainerStays(t *testing.T) {"), [3, 15]);
    assert_eq!(requirements::numbers_in_name("func TestAWrongKeyIs401(t *testing.T) {"), [0u32; 0]);
    assert_eq!(requirements::named_test("tests/interop/go/x_test.go::TestX"), Some("TestX"));
    assert_eq!(requirements::named_test("a::b_c::d1"), Some("d1"));
    assert_eq!(requirements::named_test("a::B"), None);
}

// ---- settings

#[test]
fn undocumented_and_unknown_settings_are_found() {
    let page = "| Setting | Default |\n|---|---|\n| `port` | 8081 |\n| `gone` | 1 |\n\n| `other` | table |\n`data-dir`. `ttl.sweep`.";
    let names = ["port", "data-dir", "ttl.sweep", "ttl", "data"].map(str::to_owned);
    let tree = SourceTree::of(&[("docs/configuration.md", page)]);
    finds(
        settings::check(&tree, &names),
        &["mention the setting `ttl`", "mention the setting `data`", "documents `gone`"],
    );
    finds(settings::check(&SourceTree::default(), &names), &["does not exist"]);
}

// ---- golden

#[test]
fn golden_pages_without_answer_or_run_are_found() {
    let tree = SourceTree::of(&[
        ("tests/golden/README.md", ""),
        ("tests/golden/a", "query\nSELECT 1\n----\n1\n"),
        ("tests/golden/sql/b", "item {}\n"),
        ("tests/golden/sql/c", "values\n1 + 1   2\n"),
    ]);
    finds(golden::check(&tree), &["tests/golden/sql/b has neither `----` nor `values`"]);
    finds(golden::not_run(&tree, "/repo/tests/golden/a\nsql/b\nsql/c\n"), &[]);
    finds(golden::not_run(&tree, "a\nsql/c\n"), &["tests/golden/sql/b was not run"]);
}

// ---- item path

#[test]
fn words_of_a_protocol_on_the_item_path_are_found() {
    let tree = SourceTree::of(&[
        ("crates/partition/src/partition/checks.rs", "const X: &str = \"see https://aka.ms/x\";"),
        ("crates/engine/src/item.rs", "const X: &str = \"send x-ms-date\";"),
        ("crates/engine/src/query/route.rs", "const X: &str = \"send x-pleiad-cross-partition\";"),
        ("crates/engine/src/item/tests.rs", "const X: &str = \"send x-ms-date\";"),
        ("crates/wire/src/nosql/messages.rs", "const X: &str = \"send x-ms-date\";"),
    ]);
    finds(seams::check(&tree), &["item.rs: `x-ms-`", "route.rs: `x-pleiad-`", "checks.rs: `aka.ms/`"]);
    assert!(seams::check_parts(&tree).iter().any(|found| found.contains("crates/storage/src/")));
}

// ---- hosts

#[test]
fn registry_hosts_are_found() {
    let host = ["crates", "io"].join(".");
    let (bare, index) = (format!("see {host}, please"), format!("https://index.{host}/x"));
    let tree = SourceTree::of(&[
        ("Cargo.lock", &bare),
        ("README.md", &bare),
        ("deny.toml", &index),
        ("docs/other.md", &format!("my{host} {host}n")),
        ("tests/interop/js/package-lock.json", "{\"resolved\":\"\"}"),
    ]);
    finds(hosts::check(&tree), &["README.md names", "deny.toml names", "package-lock.json has `resolved`"]);
}

// ---- rust

#[test]
fn comments_and_code_are_separated() {
    let lexed = rust::lex(
        "let url = \"http://a\"; // reads\nlet c = '\"'; /* two\nlines */ fn f<'a>() { r#\"// no \" \"#; }\n",
    );
    let comments: Vec<(usize, &str)> = lexed.comments.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(comments, [(1, "// reads"), (2, "/* two"), (3, "lines */")]);
    assert_eq!(lexed.code, "let url = \"\"; \nlet c = \"\"; \n fn f<'a>() { \"\"; }\n");
}

// ---- language

#[test]
fn pronouns_in_comments_and_pages_are_found() {
    let tree = SourceTree::of(&[
        ("crates/a/src/lib.rs", "//! Whoever reads.\nlet x = \"who\"; // an item whose key is `who`\n"),
        ("docs/a.md", "Text.\n```\nnobody\n```\nNobody waits.\n"),
        ("tests/a.py", "# somebody\n"),
    ]);
    finds(language::check(&tree), &["crates/a/src/lib.rs:1: name the agent instead of `whoever`", "docs/a.md:5"]);
}

// ---- type names

#[test]
fn a_type_name_in_two_product_files_is_found() {
    let tree = SourceTree::of(&[
        ("crates/a/src/x.rs", "pub(crate) struct Step(u8);\nimpl T for Step {\n    type Item = u8;\n}\n"),
        ("crates/b/src/y.rs", "enum Step {}\npub type Result<T> = T;\nimpl U for Step {\n    type Item = u8;\n}\n"),
        ("crates/b/src/z.rs", "// struct Other;\npub struct Other;\npub type Result<T> = T;\n"),
        ("crates/b/src/z/tests.rs", "struct Other;\n"),
    ]);
    finds(type_names::check(&tree), &["`Step` is defined in crates/a/src/x.rs, crates/b/src/y.rs"]);
}

// ---- cycles

#[test]
fn a_cycle_between_modules_is_found() {
    let tree = SourceTree::of(&[
        ("crates/a/src/lib.rs", "mod x;\npub mod y;\npub use y::Name;\n"),
        ("crates/a/src/x.rs", "use crate::Name;\n"),
        ("crates/a/src/y/inner.rs", "use super::super::x::f;\n"),
    ]);
    finds(cycles::check(&tree), &["`x` is in a cycle: y → x", "`y` is in a cycle: x → y"]);
}

#[test]
fn a_module_that_is_declared_before_what_it_uses_is_found() {
    let tree = SourceTree::of(&[
        ("crates/a/src/lib.rs", "mod x;\nmod y;\nmod z;\n"),
        ("crates/a/src/x.rs", "use crate::{z::{f, y}, std};\n"),
        ("crates/a/src/y.rs", "use crate::x;\n#[cfg(test)]\nmod tests {\n    use crate::z;\n}\n"),
        ("crates/a/src/y/tests.rs", "use crate::z;\n"),
    ]);
    finds(cycles::check(&tree), &["`x` uses `z` and is declared before it"]);
}

#[test]
fn a_listed_module_that_left_its_cycle_is_found() {
    let tree = SourceTree::of(&[("crates/script/src/lib.rs", "mod runtime;\nmod session;\n")]);
    finds(cycles::check(&tree), &["`runtime` is in no cycle any more", "`session` is in no cycle any more"]);
}

// ---- commits

#[test]
fn commit_subjects_are_short_and_name_an_area() {
    let line = |subject: &str| commits::of_commit(&format!("abc123 {subject}"));
    assert_eq!(line("sql: reject NaN in LIMIT"), None);
    assert_eq!(line("engine/query, sql: plan once"), None);
    assert!(line("Reject NaN in LIMIT").is_some_and(|found| found.contains("names no area")));
    assert!(line("Note: this").is_some());
    assert!(line(&format!("sql: {}", "x".repeat(68))).is_some_and(|found| found.contains("73 characters")));
}

// ---- manifests

#[test]
fn dependencies_have_one_version_and_a_use() {
    let tree = SourceTree::of(&[
        (
            "Cargo.toml",
            "[workspace.dependencies]\nbytes = \"1\"\nhttp-body = \"1\"\nring = \"1\"\n\n[profile.release]\n",
        ),
        (
            "crates/a/Cargo.toml",
            "[dependencies]\nbytes.workspace = true\nhttp-body = { workspace = true }\nold = \"1\"\n",
        ),
        ("crates/a/src/lib.rs", "use http_body::Body; // bytes\nuse old::x;\n"),
    ]);
    let found = ["no crate uses `ring`", "`bytes` is not used in crates/a/", "`old = \"1\"` has a version of its own"];
    finds(manifests::check(&tree), &found);
}
