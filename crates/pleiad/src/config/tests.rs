//! Precedence, rejected values and their messages, and the printed forms of the table.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::file::ConfigFile;
use super::keys::WELL_KNOWN_KEY;
use super::port::{PortSetting, plan};
use super::settings::Protocols;
use super::table::{FIELDS, Preset, Setting, TABLE};
use super::value::{ByteCount, Field, SettingValue};
use super::*;
use pleiad_model::Result;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
const OTHER_KEY: &str = "/////////////////////////////////////////////////////////////////////////////////////w==";

/// Settings from a command line and an environment, with HOME set.
fn resolve(line: &str, variables: &[(&str, &str)]) -> Result<Settings> {
    let words = ["pleiad"].into_iter().chain(line.split_whitespace()).map(Into::into);
    let Command::Run(mode, flags) = parse(words).expect("the command line should parse") else {
        panic!("not a command that starts the server: {line}")
    };
    let mut environment = Environment::from([("HOME", "/home/ada")]);
    environment.extend(variables);
    Settings::resolve(mode, &flags, &environment)
}

fn dev(line: &str) -> Settings {
    resolve(&format!("dev {line}"), &[]).expect(line)
}

fn main_port(settings: &Settings) -> u16 {
    settings.ports[0].number
}

#[track_caller]
fn assert_rejected(line: &str, variables: &[(&str, &str)], wanted: &[&str]) {
    let message = resolve(line, variables).expect_err("should have been rejected").to_string();
    for part in wanted {
        assert!(message.contains(part), "{message:?} should contain {part:?}");
    }
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pleiad.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let (_keep, path) = file("port = 1003");
    let config = format!("dev --config {}", path.display());
    let variable = [("PLEIAD_PORT", "1002")];
    assert_eq!(main_port(&resolve(&format!("{config} --port 1001"), &variable).unwrap()), 1001);
    assert_eq!(main_port(&resolve(&config, &variable).unwrap()), 1002);
    assert_eq!(main_port(&resolve(&config, &[]).unwrap()), 1003);
    assert_eq!(main_port(&dev("")), 8081);
}

/// Name, number and whether it is required.
fn further_ports(mode: RunMode, main: u16, given: Option<u16>) -> Vec<(&'static str, u16, bool)> {
    let echo = PortSetting { name: "echo", setting: "echo-port", emulator: 7000, given };
    let plans = plan(mode, main, &[echo]);
    assert_eq!((plans[0].name, plans[0].number, plans[0].required), (PortPlan::MAIN, main, true));
    plans[1..].iter().map(|plan| (plan.name, plan.number, plan.required)).collect()
}

#[test]
fn dev_opens_the_emulators_ports_and_serve_those_that_are_given() {
    assert_eq!(further_ports(RunMode::Dev, 8081, None), [("echo", 7000, false)]);
    assert_eq!(further_ports(RunMode::Serve, 8081, None), []);
    for mode in [RunMode::Dev, RunMode::Serve] {
        assert_eq!(further_ports(mode, 8081, Some(7001)), [("echo", 7001, true)]);
    }
}

#[test]
fn with_a_free_main_port_the_default_ports_are_free_ones_too() {
    assert_eq!(further_ports(RunMode::Dev, 0, None), [("echo", 0, false)]);
    assert_eq!(further_ports(RunMode::Dev, 0, Some(7001)), [("echo", 7001, true)]);
}

#[test]
fn a_public_endpoint_has_no_path() {
    let endpoint = |text: &str| dev(&format!("--public-endpoint {text}")).public_endpoint.unwrap();
    assert_eq!(endpoint("https://cosmos.example"), "https://cosmos.example/");
    assert_eq!(endpoint("http://[::1]:8081/"), "http://[::1]:8081/");
    for wrong in ["https://", "https://cosmos.example/db", "https://a@b", "https://a?b"] {
        assert_rejected(
            &format!("dev --public-endpoint {wrong}"),
            &[],
            &["public-endpoint", "https://cosmos.example:8081"],
        );
    }
    assert_rejected("dev --trusted-proxy proxy.example", &[], &["trusted-proxy", "10.0.0.0/8"]);
}

#[test]
fn empty_variables_and_kubernetes_service_ports_are_ignored() {
    assert_eq!(main_port(&resolve("dev", &[("PLEIAD_PORT", "")]).unwrap()), 8081);
    assert_eq!(main_port(&resolve("dev", &[("PLEIAD_PORT", "tcp://10.0.0.7:9999")]).unwrap()), 8081);
}

#[test]
fn dev_has_the_emulators_defaults_and_requires_no_setting() {
    let settings = dev("");
    assert_eq!(settings.keys.primary.reveal(), WELL_KNOWN_KEY);
    assert_eq!(settings.protocols, Protocols::Both);
    assert_eq!(settings.public_name, "localhost");
    assert_eq!(settings.durability, DurabilitySetting::Written { sync_interval: Duration::from_millis(200) });
    assert_eq!(settings.partition_initial_ru, 6_000);
    if cfg!(target_os = "linux") {
        assert_eq!(settings.storage, Storage::Directory("/home/ada/.local/share/pleiad".into()));
    }
}

/// S54, S55 and S32: the limits that tests of the behaviour scale down.
#[test]
fn s54_s55_s32_partition_limits_have_the_documented_defaults() {
    let settings = dev("");
    assert_eq!(settings.partition_ru_max, 10_000);
    assert_eq!(settings.partition_bytes_max, 50 * 1024 * 1024 * 1024);
    assert_eq!(settings.key_bytes_max, 20 * 1024 * 1024 * 1024);
}

#[test]
fn s71_s81_s82_s83_a_profile_has_the_limits_of_its_year_and_settings_override_it() {
    let limits = |line: &str| {
        let settings = dev(line);
        (settings.container_ru_min, settings.container_ru_max, settings.key_bytes_max >> 30)
    };
    assert_eq!(limits("--profile 2016"), (10_100, 250_000, 10));
    assert_eq!(limits("--profile 2017"), (2_500, 1_000_000, 10));
    assert_eq!(limits("--profile 2018"), (400, 1_000_000, 10));
    assert_eq!(limits(""), (400, 1_000_000, 20));
    assert_eq!(limits("--profile 2016 --container-max-ru 300000 --key-max-bytes 1GiB"), (10_100, 300_000, 1));
}

#[test]
fn serve_enforces_throughput_by_default_and_dev_on_request() {
    assert!(!dev("").rate_limit && dev("--rate-limit").rate_limit);
    let serve = resolve("serve --data d", &[("PLEIAD_PRIMARY_KEY", KEY)]).unwrap();
    assert!(serve.rate_limit && !serve.serverless && !serve.burst_capacity);
}

#[test]
fn localhost_resolves_to_ipv4_and_ipv6() {
    let addresses = |line: &str| dev(line).addresses.iter().map(|address| address.to_string()).collect::<Vec<_>>();
    assert_eq!(addresses(""), ["127.0.0.1", "::1"]);
    assert_eq!(addresses("--host 0.0.0.0"), ["0.0.0.0", "::1"]);
    assert_eq!(addresses("--host [::1]"), ["::1"]);
    assert_eq!(addresses("--host 192.0.2.7"), ["192.0.2.7"]);
    assert_eq!(dev("--host 192.0.2.7").public_name, "192.0.2.7");
}

#[test]
fn ephemeral_stores_only_the_certificates_on_disk() {
    let settings = dev("--ephemeral --data /tmp/unused");
    assert_eq!(settings.storage, Storage::Memory);
    let directory = settings.certificate_dir.expect("HOME is set");
    assert!(directory.starts_with("/home/ada") && directory.ends_with("pleiad/certificates"), "{directory:?}");
    assert_rejected(
        "serve --data d",
        &[("PLEIAD_EPHEMERAL", "1")],
        &["PLEIAD_EPHEMERAL", "`pleiad serve` does not have"],
    );
}

#[test]
fn serve_requires_a_data_directory_and_its_own_key() {
    assert_rejected("serve", &[("PLEIAD_PRIMARY_KEY", KEY)], &["--data DIR"]);
    assert_rejected("serve --data d", &[], &["needs a key", "pleiad config --new-key"]);
    assert_rejected("serve --data d", &[("PLEIAD_PRIMARY_KEY", WELL_KNOWN_KEY)], &["`primary-key`", "--new-key"]);
    let both = [("PLEIAD_PRIMARY_KEY", KEY), ("PLEIAD_SECONDARY_READ_ONLY_KEY", WELL_KNOWN_KEY)];
    assert_rejected("serve --data d", &both, &["`secondary-read-only-key`", "well-known"]);
    let settings = resolve("serve --data d", &[("PLEIAD_PRIMARY_KEY", KEY)]).unwrap();
    assert_eq!(settings.durability, DurabilitySetting::Synced);
    assert_eq!(settings.protocols, Protocols::Http);
    assert_eq!(settings.partition_initial_ru, 10_000);
}

#[test]
fn a_key_file_is_a_bare_key_or_toml_and_other_sources_take_precedence() {
    let (_keep, path) = file(&format!("{KEY}\n"));
    let line = format!("serve --data d --key-file {}", path.display());
    assert_eq!(resolve(&line, &[]).unwrap().keys.primary.reveal(), KEY);
    assert_eq!(resolve(&line, &[("PLEIAD_PRIMARY_KEY", OTHER_KEY)]).unwrap().keys.primary.reveal(), OTHER_KEY);

    let (_keep, path) = file(&format!("primary-key = \"{KEY}\"\nprimary-read-only-key = \"{OTHER_KEY}\"\n"));
    let keys = resolve(&format!("dev --key-file {}", path.display()), &[]).unwrap().keys;
    assert_eq!(keys.primary.reveal(), KEY);
    assert_eq!(keys.primary_read_only.map(|key| key.reveal().to_owned()).as_deref(), Some(OTHER_KEY));
    assert_eq!(keys.secondary, None);
}

#[test]
fn a_read_only_key_must_differ_from_the_read_write_keys() {
    let twice = [("PLEIAD_PRIMARY_KEY", KEY), ("PLEIAD_PRIMARY_READ_ONLY_KEY", KEY)];
    assert_rejected("dev", &twice, &["`primary-key` and `primary-read-only-key` are the same key"]);
}

#[test]
fn keys_never_appear_in_messages() {
    let short = "c2hvcnQ=";
    for (line, variable) in [("dev", short), ("serve --data d", WELL_KNOWN_KEY)] {
        let error = resolve(line, &[("PLEIAD_PRIMARY_KEY", variable)]).unwrap_err();
        assert!(!error.to_string().contains(variable), "{error}");
    }
    let (_keep, path) = file(&format!("primary-key = \"{KEY}"));
    for line in [format!("dev --config {}", path.display()), format!("dev --key-file {}", path.display())] {
        let error = resolve(&line, &[]).unwrap_err();
        assert!(!error.to_string().contains(&KEY[..20]), "{error}");
    }
    let settings = resolve("dev", &[("PLEIAD_PRIMARY_KEY", KEY)]).unwrap();
    assert!(!format!("{settings:?}").contains(&KEY[..20]));
    assert!(parse(["pleiad", "dev", "--primary-key", KEY].map(Into::into)).is_err(), "a key has no flag");
}

#[test]
fn new_keys_are_unique_and_accepted_by_serve() {
    let (one, two) = (new_key().unwrap(), new_key().unwrap());
    assert_ne!(one, two);
    let settings = resolve("serve --data d", &[("PLEIAD_PRIMARY_KEY", &one)]).unwrap();
    assert_eq!(settings.keys.primary.reveal(), one);
    assert_eq!(one.len(), WELL_KNOWN_KEY.len(), "as long as the service's own keys");
}

#[test]
fn an_error_names_the_origin_of_a_value_and_what_is_expected() {
    assert_rejected("dev --port 80x", &[], &["--port", "\"80x\"", "0 to 65535"]);
    assert_rejected("dev", &[("PLEIAD_LOG_FORMAT", "xml")], &["PLEIAD_LOG_FORMAT", "\"xml\"", "text, json"]);
    assert_rejected("dev --host http://x", &[], &["--host", "without scheme or port"]);
    assert_rejected("dev --partition-max-ru 0", &[], &["1 or more"]);
    let (_keep, path) = file("# one\nport = 8081\nbody-max-bytes = \"much\"\n");
    assert_rejected(&format!("dev --config {}", path.display()), &[], &["pleiad.toml:3: body-max-bytes", "\"much\""]);
    assert_rejected("dev --config /nowhere.toml", &[], &["/nowhere.toml"]);
    assert_rejected("dev --tls-cert c.pem", &[], &["`tls-cert`", "`tls-key`"]);
}

#[track_caller]
fn file_error(text: &str, wanted: &str) {
    let error = ConfigFile::parse(Path::new("p.toml"), text).expect_err(text);
    assert!(error.to_string().contains(wanted), "{error} should contain {wanted:?}");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    file_error("prot = 1", "p.toml:1: `prot` is not known here; did you mean `port`?");
    file_error(
        "port = 1\npartition_max_ru = 7",
        "p.toml:2: `partition_max_ru` is not known here; did you mean `partition-max-ru`?",
    );
    file_error("[[databases]]\nid = \"a\"", "did you mean `database`?");
    file_error(
        "[[database]]\nid = \"a\"\nthroughputs = 4",
        "p.toml:3: `throughputs` is not known here; did you mean `throughput`?",
    );
    file_error("config = \"x\"", "`config` is not known here");
}

#[test]
fn broken_toml_is_located() {
    file_error("port = 1\nhost = \n", "p.toml:2: ");
    file_error("port = [1]", "p.toml:1: `port` must be a string or a whole number");
}

#[test]
fn paths_in_the_file_are_relative_to_it() {
    let (directory, path) = file("data = \"here\"\nhost-name = [\"a.test\", \"b.test\"]");
    let settings = dev(&format!("--config {}", path.display()));
    assert_eq!(settings.storage, Storage::Directory(directory.path().join("here")));
    assert!(["a.test", "b.test"].iter().all(|name| settings.certificate_names.iter().any(|held| held == name)));
}

#[test]
fn lists_are_repeated_flags_or_separated_by_commas() {
    let names = |settings: Settings| settings.certificate_names;
    let flags = names(dev("--host-name a.test --host-name b.test"));
    let variable = names(resolve("dev", &[("PLEIAD_HOST_NAME", "a.test, b.test")]).unwrap());
    assert_eq!(flags, variable);
    assert!(flags.contains(&"a.test".to_owned()) && flags.contains(&"localhost".to_owned()));
}

#[test]
fn a_switch_can_be_turned_off_again() {
    assert!(dev("--quiet").quiet);
    assert!(!resolve("dev --quiet=false", &[("PLEIAD_QUIET", "1")]).unwrap().quiet);
}

#[test]
fn tls_selects_the_protocols() {
    assert_eq!(dev("--tls off").protocols, Protocols::Http);
    assert_eq!(dev("--tls on").protocols, Protocols::Https);
    let line = "serve --data d --tls-cert c.pem --tls-key k.pem";
    assert_eq!(resolve(line, &[("PLEIAD_PRIMARY_KEY", KEY)]).unwrap().protocols, Protocols::Https);
}

#[test]
fn partition_initial_ru_is_at_most_partition_max_ru() {
    assert_eq!(dev("--partition-max-ru 1000").partition_initial_ru, 1000);
}

#[test]
fn every_setting_is_named_as_its_field() {
    for (name, field) in FIELDS {
        assert_eq!(name.replace('-', "_"), *field);
    }
    assert_eq!(list().lines().collect::<Vec<_>>(), FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn every_default_is_accepted() {
    for setting in TABLE {
        let preset = setting.preset(RunMode::Dev);
        assert!(!matches!(preset, Preset::Required), "{}: dev requires no setting", setting.name);
    }
    dev("");
    assert!(resolve("serve --data d", &[("PLEIAD_PRIMARY_KEY", KEY)]).is_ok());
}

#[test]
fn the_sample_is_valid_as_printed_and_with_every_setting_uncommented() {
    let parse =
        |text: &str| ConfigFile::parse(Path::new("p.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(parse(&sample()).values.is_empty());
    let uncommented: Vec<String> = sample().lines().map(uncomment).collect();
    let file = parse(&uncommented.join("\n"));
    let in_file = TABLE.iter().filter(|setting| setting.is_in_file()).count();
    assert_eq!(file.values.len(), in_file);
}

/// `#name = value` becomes `name = value`; comments have a space after their `#`.
fn uncomment(line: &str) -> String {
    match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    }
}

#[test]
fn the_databases_in_the_sample_are_valid() {
    let sample = sample();
    let (_, declarations) = sample.split_once("# [[database]]").expect("the sample contains a declaration");
    let text: String = declarations.lines().map(|line| format!("{}\n", line.trim_start_matches(['#', ' ']))).collect();
    let text = format!("[[database]]{text}").replace("seed = ", "# seed = ");
    let file = ConfigFile::parse(Path::new("p.toml"), &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(file.declaration.databases[0].containers[0].id, "orders");
}

#[test]
fn the_documentation_is_what_the_program_prints() {
    let page = include_str!("../../../../docs/configuration.md");
    assert_eq!(page, markdown(), "run `pleiad config --markdown > docs/configuration.md`");
}

#[test]
fn help_shows_every_flag_of_a_run_mode() {
    for mode in [RunMode::Dev, RunMode::Serve] {
        let help = parse(["pleiad", mode.as_str(), "--help"].map(Into::into)).unwrap_err().to_string();
        for setting in TABLE.iter().filter(|setting| setting.is_flag()) {
            assert_eq!(
                help.contains(&format!("--{} ", setting.name)) || help.contains(&format!("--{}[", setting.name)),
                setting.is_in(mode),
                "{}",
                setting.name
            );
        }
        assert!(help.contains("PLEIAD_PORT") && help.contains("Examples:"));
    }
}

#[test]
fn sizes_read_with_and_without_suffix() {
    let read = |text| ByteCount::read(text).map(|ByteCount(bytes)| bytes.get());
    assert_eq!(read("65536"), Ok(65_536));
    assert_eq!(read("64KiB"), Ok(65_536));
    assert_eq!(read("50 GB"), Ok(50_000_000_000));
    for wrong in ["", "0", "-1", "1.5GB", "GB", "20000000TiB", "5 PB"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_size_in_bytes_reads_back(bytes in 1_u64..) {
        let bytes = NonZeroU64::new(bytes).unwrap();
        prop_assert_eq!(ByteCount::read(&bytes.to_string()), Ok(ByteCount(bytes)));
    }

    #[test]
    fn no_text_makes_a_setting_or_the_file_panic(text in "\\PC{0,80}") {
        _ = ByteCount::read(&text);
        _ = AccountKey::read(&text);
        _ = bool::parse(std::slice::from_ref(&text));
        _ = ConfigFile::parse(Path::new("p.toml"), &text);
        _ = ConfigFile::parse(Path::new("p.toml"), &format!("[[database]]\n{text}"));
    }
}

#[test]
fn variables_are_derived_from_setting_names() {
    let setting = Setting::find("partition-max-ru").unwrap();
    assert_eq!(setting.variable(), "PLEIAD_PARTITION_MAX_RU");
}
