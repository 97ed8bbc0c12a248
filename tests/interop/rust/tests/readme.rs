//! The README's snippet is `examples/readme.rs`, which compiles here against the published SDK.

#[test]
fn the_readme_shows_the_example_that_compiles() {
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(include_str!("../examples/readme.rs")), "README.md and examples/readme.rs differ");
}
