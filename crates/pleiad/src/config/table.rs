//! The one definition of every setting.
//!
//! Promise: a setting's name is its flag (`--name`), its environment variable (`PLEIAD_NAME`) and its key in the
//! file (`name`); flags, `pleiad config` in all its forms, `docs/configuration.md` and the struct `ParsedSettings` are all
//! made from the list at the end of this file. A new setting is one entry there.
//!
//! Each value is read here by itself; what must hold between them is `config::settings`' job.

use std::num::NonZeroU64;
use std::path::PathBuf;

use pleiad_model::Result;

use super::keys::AccountKey;
use super::precedence::RawSettings;
use super::value::{
    ByteCount, Consistency, DurabilityWord, Field, HostName, LogFormat, LogLevel, Profile, Tls, Url, ValueArity,
};

/// Which of the program's two faces is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    Dev,
    Serve,
}

impl RunMode {
    pub fn as_str(self) -> &'static str {
        match self {
            RunMode::Dev => "dev",
            RunMode::Serve => "serve",
        }
    }
}

/// What holds when nobody says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Is(&'static str),
    /// Found out when the program starts; this says how.
    Found(&'static str),
    /// Nothing, and that is fine.
    Unset,
    /// Nothing, and the program says so and stops.
    Required,
    /// This face does not have the setting.
    Absent,
}

/// Where a setting may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Anywhere,
    /// A key on the command line is a key in every process listing.
    NotFlag,
    NotFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingGroup {
    Network,
    Security,
    Data,
    Partitions,
    Throughput,
    Limits,
    Program,
}

impl SettingGroup {
    pub const ALL: [SettingGroup; 7] = [
        SettingGroup::Network,
        SettingGroup::Security,
        SettingGroup::Data,
        SettingGroup::Partitions,
        SettingGroup::Throughput,
        SettingGroup::Limits,
        SettingGroup::Program,
    ];

    pub fn title(self) -> &'static str {
        match self {
            SettingGroup::Network => "Network",
            SettingGroup::Security => "Keys and certificates",
            SettingGroup::Data => "Data",
            SettingGroup::Partitions => "Partitions",
            SettingGroup::Throughput => "Throughput",
            SettingGroup::Limits => "Limits",
            SettingGroup::Program => "Start-up and log",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub group: SettingGroup,
    pub shape: ValueArity,
    pub choices: &'static [&'static str],
    /// What one of it is; empty for words and paths.
    pub unit: &'static str,
    pub via: Via,
    dev: Preset,
    serve: Preset,
    help: &'static str,
}

impl Setting {
    pub fn find(name: &str) -> Option<&'static Setting> {
        TABLE.iter().find(|setting| setting.name == name)
    }

    pub fn preset(&self, face: RunMode) -> Preset {
        match face {
            RunMode::Dev => self.dev,
            RunMode::Serve => self.serve,
        }
    }

    /// `partition-max-ru` → `PLEIAD_PARTITION_MAX_RU`
    pub fn variable(&self) -> String {
        format!("PLEIAD_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    pub fn help(&self) -> &'static str {
        self.help.trim_start()
    }

    pub fn is_flag(&self) -> bool {
        self.via != Via::NotFlag
    }

    pub fn is_in_file(&self) -> bool {
        self.via != Via::NotFile
    }

    /// Never shown: not in a message, not in a log.
    pub fn is_secret(&self) -> bool {
        self.via == Via::NotFlag
    }

    pub fn is_in(&self, face: RunMode) -> bool {
        self.preset(face) != Preset::Absent
    }
}

macro_rules! settings {
    ($($group:ident {
        $($(#[doc = $help:literal])+ $name:literal $field:ident: $type:ty, $unit:literal, $via:ident, dev $dev:expr, serve $serve:expr;)+
    })+) => {
        pub const TABLE: &[Setting] = &[$($(Setting {
            name: $name,
            group: SettingGroup::$group,
            shape: <$type as Field>::SHAPE,
            choices: <$type as Field>::CHOICES,
            unit: $unit,
            via: Via::$via,
            dev: $dev,
            serve: $serve,
            help: concat!($($help),+),
        },)+)+];

        /// Every setting's value, each right by itself.
        #[derive(Debug)]
        #[expect(dead_code, reason = "`config` was needed before the file could be read, so `source` asked for it")]
        pub struct ParsedSettings { $($(pub $field: $type,)+)+ }

        impl ParsedSettings {
            pub fn read(words: &RawSettings) -> Result<ParsedSettings> {
                Ok(ParsedSettings { $($($field: words.answer($name)?,)+)+ })
            }
        }

        #[cfg(test)]
        pub const FIELDS: &[(&str, &str)] = &[$($(($name, stringify!($field)),)+)+];
    };
}

use Preset::{Absent, Found, Is, Required, Unset};

settings! {
    Network {
        /// Address to listen on. `localhost` is 127.0.0.1 and, where the machine has it, ::1. `0.0.0.0` is every
        /// IPv4 address, and ::1.
        "host" host: HostName, "", Anywhere, dev Is("localhost"), serve Is("localhost");
        /// Port to listen on, for HTTP and HTTPS alike. 0 takes any free port and the ready line tells which.
        "port" port: u16, "", Anywhere, dev Is("8081"), serve Is("8081");
        /// A further name or address by which clients reach this server; it goes into the generated certificate.
        /// May be given several times.
        "host-name" host_name: Vec<HostName>, "", Anywhere, dev Unset, serve Unset;
        /// `off`: HTTP only. `on`: HTTPS only. `auto`: in dev, HTTP and HTTPS on the one port; in serve, HTTPS only
        /// when `tls-cert` is given and HTTP only when it is not.
        "tls" tls: Tls, "", Anywhere, dev Is("auto"), serve Is("auto");
    }
    Security {
        /// Your own certificate chain (PEM), the server's certificate first. Left out, a certificate is generated.
        "tls-cert" tls_cert: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// The private key (PEM) of `tls-cert`.
        "tls-key" tls_key: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// File with the account's keys: either nothing but the primary key, or TOML with `primary-key`,
        /// `secondary-key`, `primary-read-only-key` and `secondary-read-only-key`. Keys given elsewhere come first.
        "key-file" key_file: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// The account's key. `pleiad config --new-key` makes one.
        "primary-key" primary_key: Option<AccountKey>, "base64", NotFlag,
            dev Found("the emulators' well-known key"), serve Required;
        /// A second key with the same rights, so that keys can be changed without a stop.
        "secondary-key" secondary_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// A key that may only read.
        "primary-read-only-key" primary_read_only_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// A second key that may only read.
        "secondary-read-only-key" secondary_read_only_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// File with the public keys (JSON Web Key Set) that bearer tokens are signed with. Taken again when it changes.
        "token-keys" token_keys: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// URL that answers with those keys. Asked again every hour, and when a token names a key that is not among them.
        "token-keys-url" token_keys_url: Option<Url>, "URL", Anywhere, dev Unset, serve Unset;
        /// Who issues bearer tokens: what their claim `iss` says.
        "token-issuer" token_issuer: Option<String>, "", Anywhere, dev Unset, serve Unset;
        /// For whom bearer tokens are: what their claim `aud` says. May be given several times.
        "token-audience" token_audience: Vec<String>, "", Anywhere, dev Unset, serve Unset;
        /// File with role definitions and assignments (JSON): what the carriers of bearer tokens may do. Taken again when it changes;
        /// a file with anything wrong in it is not.
        "roles" roles: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
    }
    Data {
        /// Directory that holds the data and the generated certificates.
        "data" data: Option<PathBuf>, "", Anywhere, dev Found("the user's data directory"), serve Required;
        /// Keep everything in memory and forget it at the end; `data` is not used.
        "ephemeral" ephemeral: bool, "", Anywhere, dev Is("false"), serve Absent;
        /// When a write is acknowledged. `synced`: it is on disk. `written`: the operating system has it, and
        /// `sync-interval-ms` bounds what a power cut can take.
        "durability" durability: DurabilityWord, "", Anywhere, dev Is("written"), serve Is("synced");
        /// Longest time between two syncs when `durability` is `written`.
        "sync-interval-ms" sync_interval_ms: NonZeroU64, "ms", Anywhere, dev Is("200"), serve Is("200");
        /// Memory for blocks read from disk. A quarter of it is added for whole items that were read lately.
        "block-cache-mb" block_cache_mb: NonZeroU64, "MiB", Anywhere, dev Is("32"), serve Is("512");
        /// The account's default consistency level.
        "consistency" consistency: Consistency, "", Anywhere, dev Is("Session"), serve Is("Session");
    }
    Partitions {
        /// Most throughput that one physical partition gives. Raising a container beyond this times its partitions splits as
        /// many of them as it takes.
        "partition-max-ru" partition_max_ru: NonZeroU64, "RU/s", Anywhere, dev Is("10000"), serve Is("10000");
        /// A new container starts with one physical partition for each of these in its throughput. Never more than
        /// `partition-max-ru`.
        "partition-initial-ru" partition_initial_ru: NonZeroU64, "RU/s", Anywhere, dev Is("6000"), serve Is("10000");
        /// The fewest physical partitions that a new container starts with, for tests that want several.
        "initial-ranges" initial_ranges: Option<NonZeroU64>, "ranges", Anywhere, dev Is("1"), serve Absent;
        /// Data that one physical partition holds before it is split; reported as its quota. One that cannot be split is full
        /// then.
        "partition-max-bytes" partition_max_bytes: Option<ByteCount>, "bytes", Anywhere,
            dev Found("50GiB, or what `profile` says"), serve Found("50GiB, or what `profile` says");
        /// Most data under one partition key value; more is refused.
        "key-max-bytes" key_max_bytes: Option<ByteCount>, "bytes", Anywhere,
            dev Found("20GiB, or what `profile` says"), serve Found("20GiB, or what `profile` says");
        /// Data that a split or merge copies in a second, at most.
        "copy-max-bytes" copy_max_bytes: ByteCount, "bytes", Anywhere, dev Is("256MiB"), serve Is("256MiB");
        /// Whose limits hold: those that the service documented in that year, or today's.
        "profile" profile: Profile, "", Anywhere, dev Is("current"), serve Is("current");
    }
    Throughput {
        /// Hold containers to the throughput they reserved: what goes beyond is answered with 429. Without it, charges
        /// are only told.
        "rate-limit" rate_limit: bool, "", Anywhere, dev Is("false"), serve Is("true");
        /// Most throughput that one container or database can reserve.
        "container-max-ru" container_max_ru: Option<NonZeroU64>, "RU/s", Anywhere,
            dev Found("1000000, or what `profile` says"), serve Found("1000000, or what `profile` says");
        /// A serverless account: nothing is reserved, and each physical partition gives up to 5,000 RU/s.
        "serverless" serverless: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Save up to five idle minutes of each partition's throughput, and give it on top of the reserved, up to 3,000
        /// RU/s.
        "burst-capacity" burst_capacity: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Tell the busiest and largest partition keys in `/metrics`, which asks nobody for a key.
        "partition-key-metrics" partition_key_metrics: bool, "", Anywhere, dev Is("true"), serve Is("false");
        /// URL that is told of hot partitions and nearly full partition keys, with a POST of JSON.
        "alert-webhook" alert_webhook: Option<Url>, "URL", Anywhere, dev Unset, serve Unset;
    }
    Limits {
        /// Largest request head: request line and headers together.
        "header-max-bytes" header_max_bytes: ByteCount, "bytes", Anywhere, dev Is("64KiB"), serve Is("64KiB");
        /// Largest request body.
        "body-max-bytes" body_max_bytes: ByteCount, "bytes", Anywhere, dev Is("4MiB"), serve Is("4MiB");
        /// Most open connections; further ones wait to be accepted.
        "connections-max" connections_max: NonZeroU64, "connections", Anywhere, dev Is("1000"), serve Is("10000");
        /// How long a client may take to send a request's head, or to take any of an answer, before it is hung up on.
        "slow-client-timeout-s" slow_client_timeout_s: NonZeroU64, "s", Anywhere, dev Is("30"), serve Is("30");
        /// How long requests under way may take to finish at shutdown.
        "shutdown-timeout-s" shutdown_timeout_s: NonZeroU64, "s", Anywhere, dev Is("5"), serve Is("30");
        /// Threads that serve requests; 0 is one per core.
        "worker-threads" worker_threads: u32, "threads", Anywhere, dev Is("0"), serve Is("0");
    }
    Program {
        /// File with settings, databases, containers and first items (TOML). `pleiad config` prints a sample.
        "config" config: Option<PathBuf>, "", NotFile, dev Unset, serve Unset;
        /// Print no banner.
        "quiet" quiet: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Write the ready line to this open file descriptor and not to standard output.
        "ready-fd" ready_fd: Option<u32>, "", Anywhere, dev Unset, serve Unset;
        /// Least severity that is logged, on standard error.
        "log-level" log_level: LogLevel, "", Anywhere, dev Is("warn"), serve Is("info");
        /// Log lines for people or for machines.
        "log-format" log_format: LogFormat, "", Anywhere, dev Is("text"), serve Is("text");
    }
}
