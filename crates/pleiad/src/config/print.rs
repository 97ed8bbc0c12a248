//! Prints the settings table: the list of names, a sample file, the documentation.
//!
//! Guarantees: the sample is a valid file, and stays valid when the `#` before a setting is removed.
//! `docs/configuration.md` is the output of `markdown()`; a test compares them.

use std::fmt::Write;

use super::table::{Preset, RunMode, Setting, SettingGroup, TABLE};
use super::value::ValueArity;

pub fn list() -> String {
    TABLE.iter().map(|setting| format!("{}\n", setting.name)).collect()
}

pub fn sample() -> String {
    let mut text = SAMPLE_HEAD.to_owned();
    for group in SettingGroup::ALL {
        _ = write!(text, "\n# {}\n", group.title());
        for setting in settings_of(group).filter(|setting| setting.is_in_file()) {
            text.push_str(&sample_entry(setting));
        }
    }
    text + SAMPLE_TAIL
}

const SAMPLE_HEAD: &str = "\
# Settings of Pleiad: pleiad dev --config pleiad.toml
#
# Commented-out settings show the default. A flag (--port) takes precedence over an environment variable
# (PLEIAD_PORT), and a variable over this file. Relative paths are relative to this file.
";

const SAMPLE_TAIL: &str = r#"
# Databases, containers and initial items
#
# Created at start if they are missing; those that exist already are not changed.
#
# [[database]]
# id = "shop"
# throughput = 400                      # RU/s shared by its containers; or autoscale-max = 4000; or neither
#
# [[database.container]]
# id = "orders"
# partition-key = "/customer"           # or ["/tenant", "/customer"] for a hierarchical key
# throughput = 400                      # or autoscale-max = 4000
# indexing-policy = { excludedPaths = [{ path = "/note/?" }], includedPaths = [{ path = "/*" }] } # as in Cosmos DB
# seed = "orders.ndjson"                # one item per line; or a .json file with an array of items
#
# [[database.container]]
# id = "customers"
# partition-key = "/id"
# items = [{ id = "c1", name = "Ada" }]  # instead of a seed file
"#;

fn settings_of(group: SettingGroup) -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().filter(move |setting| setting.group == group)
}

fn sample_entry(setting: &Setting) -> String {
    let mut text = String::from("\n");
    for line in wrap(setting.help(), 110) {
        _ = writeln!(text, "# {line}");
    }
    if let Some(note) = sample_note(setting) {
        _ = writeln!(text, "# {note}");
    }
    _ = writeln!(text, "#{} = {}", setting.name, sample_value(setting));
    text
}

fn sample_note(setting: &Setting) -> Option<String> {
    let (dev, serve) = (setting.preset(RunMode::Dev), setting.preset(RunMode::Serve));
    match (dev, serve) {
        (Preset::Unset, Preset::Unset) => Some("Not set by default.".to_owned()),
        (dev, serve) if dev == serve => None,
        (dev, serve) => Some(format!("Default in dev: {}; in serve: {}.", preset_text(dev), preset_text(serve))),
    }
}

/// The default, or an example of the right type if there is none.
fn sample_value(setting: &Setting) -> String {
    match (setting.preset(RunMode::Dev), setting.arity) {
        (Preset::Is(word), ValueArity::Flag) => word.to_owned(),
        (Preset::Is(word), _) if word.bytes().all(|byte| byte.is_ascii_digit()) => word.to_owned(),
        (Preset::Is(word), _) => format!("\"{word}\""),
        (_, ValueArity::Path) => format!("\"path/to/{}\"", setting.name),
        (_, ValueArity::Many) => "[\"cosmos.test\"]".to_owned(),
        _ if setting.is_secret() => "\"…\"".to_owned(),
        _ => "3".to_owned(),
    }
}

fn preset_text(preset: Preset) -> String {
    match preset {
        Preset::Is(word) => format!("`{word}`"),
        Preset::Derived(how) => how.to_owned(),
        Preset::Unset => "not set".to_owned(),
        Preset::Required => "required".to_owned(),
        Preset::Absent => "no such setting".to_owned(),
    }
}

pub fn markdown() -> String {
    let mut text = MARKDOWN_HEAD.to_owned();
    for group in SettingGroup::ALL {
        _ = write!(text, "\n## {}\n\n{TABLE_HEAD}", group.title());
        for setting in settings_of(group) {
            _ = writeln!(text, "{}", row(setting));
        }
    }
    text + MARKDOWN_TAIL
}

const MARKDOWN_HEAD: &str = "\
# Configuration

<!-- Printed by `pleiad config --markdown`; change crates/pleiad/src/config/table.rs and print it again. -->

Every setting can be given as a flag (`--port 9000`), as an environment variable
(`PLEIAD_PORT=9000`) and as a key in the TOML file of `--config` (`port = 9000`). A flag takes
precedence over a variable, a variable over the file, and the file over the default.
`pleiad config` prints a sample file with all settings, `pleiad config --list` prints their names.

- Relative paths in the file are relative to the file. An unknown key in the file is an error.
- Account keys have no flag, because every process listing shows flags. Give them as variables, in
  the file, or with `--key-file`. They are never printed or logged; only `pleiad dev` shows its key,
  in its banner.
- Sizes are plain bytes or have a suffix: `KiB`, `MiB`, `GiB`, `TiB` (powers of 1,024) or `KB`,
  `MB`, `GB`, `TB` (powers of 1,000).
- In a variable, separate several values with commas.
";

const TABLE_HEAD: &str = "\
| setting | variable | default in `dev` | default in `serve` | unit | meaning |
|---|---|---|---|---|---|
";

const MARKDOWN_TAIL: &str = r#"
## Databases, containers and initial items

The file can also declare databases, containers and items that exist before the first request. Those
that exist already are not changed.

```toml
[[database]]
id = "shop"
throughput = 400                # RU/s shared by its containers; or autoscale-max; or neither

[[database.container]]
id = "orders"
partition-key = "/customer"     # or ["/tenant", "/customer"] for a hierarchical key
autoscale-max = 4000            # or throughput; or neither
indexing-policy = { includedPaths = [{ path = "/*" }], excludedPaths = [{ path = "/note/?" }] }
seed = "orders.ndjson"

[[database.container]]
id = "customers"
partition-key = "/id"
items = [{ id = "c1", name = "Ada" }]
```

`seed` names a file relative to this one: `.json` holds an array of items, `.ndjson` (or `.jsonl`)
holds one item per line and is read line by line. `items` holds the items inline. A container's
policies have their Cosmos DB names written with dashes (`unique-key-policy`,
`computed-properties`, …); their contents are written as in Cosmos DB.
"#;

fn row(setting: &Setting) -> String {
    let choices = setting.choices.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ");
    let unit = if choices.is_empty() { setting.unit.to_owned() } else { choices };
    format!(
        "| `{}` | `{}` | {} | {} | {unit} | {} |",
        setting.name,
        setting.variable(),
        preset_text(setting.preset(RunMode::Dev)),
        preset_text(setting.preset(RunMode::Serve)),
        setting.help(),
    )
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => _ = write!(line, " {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
