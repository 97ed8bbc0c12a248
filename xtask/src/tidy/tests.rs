//! Each check on a tree of a few lines: what it finds, and what it leaves in peace.

use super::*;

#[track_caller]
fn finds(findings: Vec<String>, want: &[&str]) {
    assert_eq!(findings.len(), want.len(), "{findings:#?}");
    for (found, want) in findings.iter().zip(want) {
        assert!(found.contains(want), "`{found}` does not say `{want}`");
    }
}

// ---- arrows

#[test]
fn an_arrow_against_the_stream_is_found() {
    let tree = SourceTree::of(&[
        (
            "crates/sql/Cargo.toml",
            "[dependencies]\npleiad-model.workspace = true\n[dev-dependencies]\npleiad-storage = { path = \"../storage\" }",
        ),
        ("crates/engine/Cargo.toml", "[dependencies]\npleiad-sql.workspace = true\nserde_json = \"1\""),
    ]);
    let found = "crates/sql/Cargo.toml: query imports storage; it may import only spatial, text, vector, model";
    finds(arrows::check(&tree), &[found]);
}

#[test]
fn a_crate_without_a_row_is_found() {
    let tree =
        SourceTree::of(&[("crates/common/Cargo.toml", "[dependencies]\n"), ("tests/interop/rust/Cargo.toml", "")]);
    finds(arrows::check(&tree), &["`common` has no row"]);
}

#[test]
fn dependencies_are_read_in_every_way_to_write_them() {
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
fn a_module_has_a_header_and_fits_a_sitting() {
    let long = format!("//! Long.\n{}", "\n".repeat(700));
    let tree = SourceTree::of(&[
        ("crates/model/src/etag.rs", "//! Etags.\n"),
        ("crates/model/src/bare.rs", "use std::fmt;\n"),
        ("crates/model/src/long.rs", &long),
        ("crates/model/src/long/tests.rs", &long[10..]),
        ("crates/model/benches/any.rs", "fn main() {}"),
    ]);
    finds(modules::check(&tree), &["bare.rs: opens without", "long.rs: 701 lines"]);
}

// ---- paths

#[test]
fn a_path_that_is_gone_is_found_with_a_guess() {
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
fn a_house_without_a_map_is_told_so() {
    finds(paths::check(&SourceTree::default()), &["ARCHITECTURE.md does not exist"]);
}

#[test]
fn paths_are_read_without_what_stands_around_them() {
    let page = "`crates/a/src/b.rs:12` `tests/x.py::test_y`, (`docs/z.md#part`) `./docs/w.md.` `fuzz/<name>/x`";
    assert_eq!(paths::named(page), ["crates/a/src/b.rs", "tests/x.py", "docs/z.md", "docs/w.md", "fuzz"]);
}

#[test]
fn distances() {
    for (a, b, want) in [("", "", 0), ("router.rs", "route.rs", 1), ("abc", "", 3), ("kitten", "sitting", 3)] {
        assert_eq!(paths::distance(a, b), want, "{a} {b}");
    }
}

// ---- requirements

#[test]
fn a_number_that_is_no_requirement_is_found() {
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
fn a_named_test_that_is_gone_is_found() {
    let page = "S1 `engine::item::tests::s1_shapes` `engine::item::tests::s1_gone` `tests/interop/python/t.py::test_a` \
                `tests/interop/python/t.py::test_b` `Kind::Moved`";
    let tree = SourceTree::of(&[
        ("docs/requirements.md", page),
        ("crates/engine/src/item/tests.rs", "#[tokio::test]\nasync fn s1_shapes() {}"),
        ("tests/interop/python/t.py", "def test_a(container): ..."),
    ]);
    finds(requirements::check(&tree), &["no test is called s1_gone", "no test is called test_b"]);
}

#[test]
fn numbers_are_words() {
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
fn settings_and_their_page_agree() {
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
fn pages_ask_and_are_run() {
    let tree = SourceTree::of(&[
        ("tests/golden/README.md", ""),
        ("tests/golden/a", "query\nSELECT 1\n----\n1\n"),
        ("tests/golden/sql/b", "item {}\n"),
        ("tests/golden/sql/c", "values\n1 + 1   2\n"),
    ]);
    finds(golden::check(&tree), &["tests/golden/sql/b has neither `----` nor `values`"]);
    finds(golden::dead(&tree, "/repo/tests/golden/a\nsql/b\nsql/c\n"), &[]);
    finds(golden::dead(&tree, "a\nsql/c\n"), &["tests/golden/sql/b was not run"]);
}

// ---- hosts

#[test]
fn registries_are_not_named() {
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
