//! Settings table: the single definition of every setting.
//!
//! Invariant: a setting's name is its flag (`--name`), its environment variable (`PLEIAD_NAME`) and its key in the file
//! (`name`). Flags, all forms of `pleiad config`, `docs/configuration.md` and the struct `ParsedSettings` are generated
//! from the list at the end of this file. A new setting is one entry there.
//!
//! Each value is parsed by itself here; `config::settings` checks the rules between settings.

use std::num::NonZeroU64;
use std::path::PathBuf;

use pleiad_model::Result;
use pleiad_wire::nosql::trusted_proxies::IpNetwork;

use super::keys::AccountKey;
use super::precedence::RawSettings;
use super::value::{
    ByteCount, Consistency, CrossPartitionPage, DurabilityMode, Field, HostName, LogFormat, LogLevel, Profile, Tls,
    Url, ValueArity,
};

/// The two modes of the server: `pleiad dev` and `pleiad serve`.
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

/// The default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Is(&'static str),
    /// Determined when the program starts; the text describes it.
    Derived(&'static str),
    /// No default; the setting is optional.
    Unset,
    /// No default; the program stops with an error if the setting is not given.
    Required,
    /// This mode does not have the setting.
    Absent,
}

/// Where a setting may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Anywhere,
    /// Secrets: every process listing shows the flags of a command line.
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
    pub arity: ValueArity,
    pub choices: &'static [&'static str],
    /// The unit of the value; empty for texts and paths.
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

    pub fn preset(&self, mode: RunMode) -> Preset {
        match mode {
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

    /// Secret values never appear in a message or a log line.
    pub fn is_secret(&self) -> bool {
        self.via == Via::NotFlag
    }

    pub fn is_in(&self, mode: RunMode) -> bool {
        self.preset(mode) != Preset::Absent
    }
}

macro_rules! settings {
    ($($group:ident {
        $($(#[doc = $help:literal])+ $name:literal $field:ident: $type:ty, $unit:literal, $via:ident, dev $dev:expr, serve $serve:expr;)+
    })+) => {
        pub const TABLE: &[Setting] = &[$($(Setting {
            name: $name,
            group: SettingGroup::$group,
            arity: <$type as Field>::ARITY,
            choices: <$type as Field>::CHOICES,
            unit: $unit,
            via: Via::$via,
            dev: $dev,
            serve: $serve,
            help: concat!($($help),+),
        },)+)+];

        /// The value of every setting, each parsed and in range.
        #[derive(Debug)]
        #[expect(dead_code, reason = "`config` is needed before the file can be read, so `precedence::config_path` reads it")]
        pub struct ParsedSettings { $($(pub $field: $type,)+)+ }

        impl ParsedSettings {
            pub fn read(words: &RawSettings) -> Result<ParsedSettings> {
                Ok(ParsedSettings { $($($field: words.parse($name)?,)+)+ })
            }
        }

        #[cfg(test)]
        pub const FIELDS: &[(&str, &str)] = &[$($(($name, stringify!($field)),)+)+];
    };
}

use Preset::{Absent, Derived, Is, Required, Unset};

settings! {
    Network {
        /// Address to listen on. `localhost` is 127.0.0.1 and, where the machine has it, ::1.
        /// `0.0.0.0` is every IPv4 address, and ::1.
        "host" host: HostName, "", Anywhere, dev Is("localhost"), serve Is("localhost");
        /// Port to listen on, for HTTP and HTTPS alike. 0 takes any free port; the ready line
        /// reports it.
        "port" port: u16, "", Anywhere, dev Is("8081"), serve Is("8081");
        /// An additional name or address by which clients reach this server; it is added to the
        /// generated certificate. May be given several times.
        "host-name" host_name: Vec<HostName>, "", Anywhere, dev Unset, serve Unset;
        /// The URL by which clients reach this server: the address in the account document, which
        /// SDKs connect to. If it is not set, every client gets the address that it used.
        "public-endpoint" public_endpoint: Option<Url>, "URL", Anywhere, dev Unset, serve Unset;
        /// Address of a proxy, or network such as 10.0.0.0/8, whose headers `x-forwarded-proto` and
        /// `x-forwarded-host` are used. Those of other peers are ignored. May be given several
        /// times.
        "trusted-proxy" trusted_proxy: Vec<IpNetwork>, "", Anywhere,
            dev Derived("this machine"), serve Derived("this machine");
        /// `off`: HTTP only. `on`: HTTPS only. `auto`: in dev, HTTP and HTTPS on the same port; in
        /// serve, HTTPS only when `tls-cert` is given and HTTP only when it is not.
        "tls" tls: Tls, "", Anywhere, dev Is("auto"), serve Is("auto");
    }
    Security {
        /// Your own certificate chain (PEM), the server's certificate first. If it is not set, a
        /// certificate is generated.
        "tls-cert" tls_cert: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// The private key (PEM) of `tls-cert`.
        "tls-key" tls_key: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// File with the account's keys: either the primary key alone, or TOML with `primary-key`,
        /// `secondary-key`, `primary-read-only-key` and `secondary-read-only-key`. Keys given
        /// elsewhere take precedence.
        "key-file" key_file: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// The account's key. `pleiad config --new-key` generates one.
        "primary-key" primary_key: Option<AccountKey>, "base64", NotFlag,
            dev Derived("the emulators' well-known key"), serve Required;
        /// A second key with the same rights, so that keys can be rotated without downtime.
        "secondary-key" secondary_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// A read-only key.
        "primary-read-only-key" primary_read_only_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// A second read-only key.
        "secondary-read-only-key" secondary_read_only_key: Option<AccountKey>, "base64", NotFlag, dev Unset, serve Unset;
        /// File with the public keys (JSON Web Key Set) that verify bearer tokens. Reloaded when it
        /// changes.
        "token-keys" token_keys: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
        /// URL of those keys. Fetched again every hour, and when a token names a key that is not in
        /// the set.
        "token-keys-url" token_keys_url: Option<Url>, "URL", Anywhere, dev Unset, serve Unset;
        /// The issuer of bearer tokens: the required value of their claim `iss`.
        "token-issuer" token_issuer: Option<String>, "", Anywhere, dev Unset, serve Unset;
        /// The audience of bearer tokens: an accepted value of their claim `aud`. May be given
        /// several times.
        "token-audience" token_audience: Vec<String>, "", Anywhere, dev Unset, serve Unset;
        /// File with role definitions and assignments (JSON): the rights of bearer tokens. Reloaded
        /// when it changes; a file with any error is rejected.
        "roles" roles: Option<PathBuf>, "", Anywhere, dev Unset, serve Unset;
    }
    Data {
        /// Directory that holds the data and the generated certificates.
        "data" data: Option<PathBuf>, "", Anywhere, dev Derived("the user's data directory"), serve Required;
        /// Store everything in memory and discard it at exit; `data` is not used.
        "ephemeral" ephemeral: bool, "", Anywhere, dev Is("false"), serve Absent;
        /// When a write is acknowledged. `synced`: it is on disk. `written`: the operating system
        /// has it, and `sync-interval-ms` bounds what a power failure can lose.
        "durability" durability: DurabilityMode, "", Anywhere, dev Is("written"), serve Is("synced");
        /// Maximum time between two syncs when `durability` is `written`.
        "sync-interval-ms" sync_interval_ms: NonZeroU64, "ms", Anywhere, dev Is("200"), serve Is("200");
        /// Start although synced writes are missing from the write-ahead log, without them. The log
        /// files are copied first. Give it once, after reading the error that mentions it.
        "accept-data-loss" accept_data_loss: bool, "", NotFile, dev Is("false"), serve Is("false");
        /// Memory for blocks read from disk. A quarter of it is added for the row cache, which
        /// holds recently read items.
        "block-cache-mb" block_cache_mb: NonZeroU64, "MiB", Anywhere, dev Is("32"), serve Is("512");
        /// The account's default consistency level.
        "consistency" consistency: Consistency, "", Anywhere, dev Is("Session"), serve Is("Session");
        /// In the change feed of all versions and deletes, return the deleted item with each delete
        /// by a client, as `previous`.
        "change-feed-previous-images" change_feed_previous_images: bool, "", Anywhere,
            dev Is("false"), serve Is("false");
    }
    Partitions {
        /// Maximum throughput of one physical partition. Raising a container beyond this times its
        /// number of partitions splits as many of them as necessary.
        "partition-max-ru" partition_max_ru: NonZeroU64, "RU/s", Anywhere, dev Is("10000"), serve Is("10000");
        /// A new container starts with one physical partition per this much throughput. At most
        /// `partition-max-ru`.
        "partition-initial-ru" partition_initial_ru: NonZeroU64, "RU/s", Anywhere, dev Is("6000"), serve Is("10000");
        /// Minimum number of physical partitions of a new container, for tests that need several.
        "initial-ranges" initial_ranges: Option<NonZeroU64>, "ranges", Anywhere, dev Is("1"), serve Absent;
        /// Maximum data of one physical partition before it is split; reported as its quota. A
        /// partition that cannot be split is full at this size.
        "partition-max-bytes" partition_max_bytes: Option<ByteCount>, "bytes", Anywhere,
            dev Derived("50GiB, or what `profile` says"), serve Derived("50GiB, or what `profile` says");
        /// Maximum data of one partition key value; writes beyond it are rejected.
        "key-max-bytes" key_max_bytes: Option<ByteCount>, "bytes", Anywhere,
            dev Derived("20GiB, or what `profile` says"), serve Derived("20GiB, or what `profile` says");
        /// Maximum data that a split or merge copies per second.
        "copy-max-bytes" copy_max_bytes: ByteCount, "bytes", Anywhere, dev Is("256MiB"), serve Is("256MiB");
        /// How much a page of a cross-partition query reads, if the client has nothing to merge.
        /// `partition`: one physical partition, as in the service, so that a page can be short or
        /// empty although others follow. `container`: as many partitions as it takes to fill the
        /// page.
        "cross-partition-page" cross_partition_page: CrossPartitionPage, "", Anywhere,
            dev Is("partition"), serve Is("partition");
        /// Limits profile: the limits that the service documented in that year, or today's.
        "profile" profile: Profile, "", Anywhere, dev Is("current"), serve Is("current");
    }
    Throughput {
        /// Enforce the provisioned throughput of containers: requests beyond it get 429. Without
        /// it, charges are only reported.
        "rate-limit" rate_limit: bool, "", Anywhere, dev Is("false"), serve Is("true");
        /// Maximum throughput that one container or database can provision.
        "container-max-ru" container_max_ru: Option<NonZeroU64>, "RU/s", Anywhere,
            dev Derived("1000000, or what `profile` says"), serve Derived("1000000, or what `profile` says");
        /// A serverless account: no throughput is provisioned, and each physical partition provides
        /// up to 5,000 RU/s.
        "serverless" serverless: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Burst capacity: accumulate up to five minutes of each partition's unused throughput and
        /// provide it in addition to the provisioned throughput, up to 3,000 RU/s in all.
        "burst-capacity" burst_capacity: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Report the busiest and largest partition keys in `/metrics`, which needs no
        /// authentication.
        "partition-key-metrics" partition_key_metrics: bool, "", Anywhere, dev Is("true"), serve Is("false");
        /// URL that receives alerts about hot partitions and nearly full partition keys, as a POST
        /// of JSON.
        "alert-webhook" alert_webhook: Option<Url>, "URL", Anywhere, dev Unset, serve Unset;
    }
    Limits {
        /// Maximum size of a request's head: request line and headers together.
        "header-max-bytes" header_max_bytes: ByteCount, "bytes", Anywhere, dev Is("64KiB"), serve Is("64KiB");
        /// Maximum size of a request's body.
        "body-max-bytes" body_max_bytes: ByteCount, "bytes", Anywhere, dev Is("4MiB"), serve Is("4MiB");
        /// Maximum size of the bodies of all requests in progress together; further requests wait.
        "bodies-max-bytes" bodies_max_bytes: ByteCount, "bytes", Anywhere, dev Is("256MiB"), serve Is("256MiB");
        /// Maximum number of open connections; further ones wait to be accepted.
        "connections-max" connections_max: NonZeroU64, "connections", Anywhere, dev Is("1000"), serve Is("10000");
        /// Time for a client to send a request's head, or to read any part of a response, before
        /// the server closes the connection.
        "slow-client-timeout-s" slow_client_timeout_s: NonZeroU64, "s", Anywhere, dev Is("30"), serve Is("30");
        /// Time for requests in progress to finish at shutdown.
        "shutdown-timeout-s" shutdown_timeout_s: NonZeroU64, "s", Anywhere, dev Is("5"), serve Is("30");
        /// Threads that serve requests; 0 is one per core.
        "worker-threads" worker_threads: u32, "threads", Anywhere, dev Is("0"), serve Is("0");
    }
    Program {
        /// File with settings, databases, containers and initial items (TOML). `pleiad config`
        /// prints a sample.
        "config" config: Option<PathBuf>, "", NotFile, dev Unset, serve Unset;
        /// Print no banner.
        "quiet" quiet: bool, "", Anywhere, dev Is("false"), serve Is("false");
        /// Write the ready line to this open file descriptor instead of standard output.
        "ready-fd" ready_fd: Option<u32>, "", Anywhere, dev Unset, serve Unset;
        /// Minimum severity of log lines, which go to standard error.
        "log-level" log_level: LogLevel, "", Anywhere, dev Is("warn"), serve Is("info");
        /// Format of log lines: `text` for people, `json` for machines.
        "log-format" log_format: LogFormat, "", Anywhere, dev Is("text"), serve Is("text");
    }
}
