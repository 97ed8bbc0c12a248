//! The checked settings: rules between settings, and values that are derived from several of them.
//!
//! Guarantees: a `Settings` needs no further checks. Files that it names may still be missing; the code that opens them
//! reports that.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pleiad_model::{Error, Result};
use pleiad_wire::account::bearer::jwks_cache::JwksLocation;
use pleiad_wire::nosql::trusted_proxies::TrustedProxies;

use super::address;
use super::file::ConfigFile;
use super::keys::ConfiguredKeys;
use super::port::{self, PortPlan};
use super::precedence::{Environment, FlagValues, RawSettings, config_path};
use super::table::{ParsedSettings, RunMode};
use super::value::{Consistency, CrossPartitionPage, DurabilityMode, LogFormat, LogLevel, Tls, Url};
use crate::seed::Declaration;

#[derive(Debug)]
pub struct Settings {
    pub mode: RunMode,

    /// The first must be bound, the others are bound where the machine has them.
    pub addresses: Vec<IpAddr>,
    /// The main port first.
    pub ports: Vec<PortPlan>,
    /// The host name in the endpoints that clients get.
    pub public_name: String,
    pub protocols: Protocols,
    /// With a slash at the end; `None` if clients get the address that they used.
    pub public_endpoint: Option<String>,
    pub trusted_proxies: TrustedProxies,

    pub keys: ConfiguredKeys,
    /// How bearer tokens are verified; `None` if they are not accepted.
    pub bearer: Option<BearerSettings>,
    pub own_certificate: Option<OwnCertificate>,
    /// The names of a generated certificate.
    pub certificate_names: Vec<String>,
    /// Directory of the generated certificates; `None` if the user has no data directory.
    pub certificate_dir: Option<PathBuf>,

    pub storage: Storage,
    pub durability: DurabilitySetting,
    /// Start without writes that are missing from the write-ahead log.
    pub accept_data_loss: bool,
    pub block_cache_bytes: u64,
    pub consistency: Consistency,
    pub change_feed_previous_images: bool,

    pub partition_ru_max: u64,
    pub partition_initial_ru: u64,
    pub ranges_initial: u32,
    pub partition_bytes_max: u64,
    pub copy_bytes_per_s: u64,
    pub key_bytes_max: u64,

    pub cross_partition_page: CrossPartitionPage,

    pub rate_limit: bool,
    pub serverless: bool,
    pub burst_capacity: bool,
    pub container_ru_min: u64,
    pub container_ru_max: u64,
    pub partition_key_metrics: bool,
    pub alert_webhook: Option<String>,

    pub header_bytes_max: usize,
    pub body_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub connections_max: usize,
    pub slow_client_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub worker_threads: usize,

    pub quiet: bool,
    pub ready_fd: Option<u32>,
    pub log_level: LogLevel,
    pub log_format: LogFormat,

    /// Databases, containers and items to create before the first request.
    pub declaration: Declaration,
}

/// The protocols that the port accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    Http,
    Https,
    Both,
}

impl Protocols {
    pub fn has_http(self) -> bool {
        self != Protocols::Https
    }

    pub fn has_https(self) -> bool {
        self != Protocols::Http
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    Memory,
    Directory(PathBuf),
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilitySetting {
    /// When it is on disk.
    Synced,
    /// When the operating system has it; a sync follows at least this often.
    Written { sync_interval: Duration },
}

/// Bearer tokens: signing keys, issuer, audiences, and the file with the roles that they grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerSettings {
    pub keys: JwksLocation,
    pub issuer: String,
    pub audiences: Vec<String>,
    pub roles: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

impl Settings {
    pub fn resolve(mode: RunMode, flags: &FlagValues, environment: &Environment) -> Result<Settings> {
        let file = config_path(flags, environment).map(|path| ConfigFile::read(&path)).transpose()?;
        let raw = RawSettings::gather(mode, flags, environment, file.as_ref())?;
        let declaration = file.map(|file| file.declaration).unwrap_or_default();
        derive_settings(mode, ParsedSettings::read(&raw)?, environment, declaration)
    }
}

fn derive_settings(
    mode: RunMode,
    parsed: ParsedSettings,
    environment: &Environment,
    declaration: Declaration,
) -> Result<Settings> {
    let addresses = address::resolve(&parsed.host)?;
    let user_dir = user_directory(environment);
    let own_certificate = own_certificate(parsed.tls_cert, parsed.tls_key)?;
    let storage = storage(mode, parsed.ephemeral, parsed.data, user_dir.clone())?;
    let limits = parsed.profile.limits();
    let given =
        [parsed.primary_key, parsed.secondary_key, parsed.primary_read_only_key, parsed.secondary_read_only_key];
    Ok(Settings {
        mode,
        ports: port::plan(mode, parsed.port, &[]),
        public_name: address::public_name(&parsed.host, &addresses),
        addresses,
        protocols: protocols(mode, parsed.tls, own_certificate.is_some()),
        public_endpoint: parsed.public_endpoint.map(public_endpoint).transpose()?,
        trusted_proxies: TrustedProxies::new(parsed.trusted_proxy),
        keys: ConfiguredKeys::resolve(mode, given, parsed.key_file.as_deref())?,
        bearer: bearer_settings(
            parsed.token_keys,
            parsed.token_keys_url,
            parsed.token_issuer,
            parsed.token_audience,
            parsed.roles,
        )?,
        own_certificate,
        certificate_names: address::certificate_names(&parsed.host, &parsed.host_name, machine_name(environment)),
        certificate_dir: certificate_dir(&storage, user_dir),
        storage,
        durability: durability(parsed.durability, parsed.sync_interval_ms),
        accept_data_loss: parsed.accept_data_loss,
        block_cache_bytes: parsed.block_cache_mb.get().saturating_mul(1 << 20),
        consistency: parsed.consistency,
        change_feed_previous_images: parsed.change_feed_previous_images,
        partition_ru_max: parsed.partition_max_ru.get(),
        partition_initial_ru: parsed.partition_initial_ru.min(parsed.partition_max_ru).get(),
        copy_bytes_per_s: parsed.copy_max_bytes.0.get(),
        ranges_initial: ranges_initial(parsed.initial_ranges)?,
        partition_bytes_max: parsed.partition_max_bytes.map_or(limits.partition_bytes_max, |bytes| bytes.0.get()),
        key_bytes_max: parsed.key_max_bytes.map_or(limits.key_bytes_max, |bytes| bytes.0.get()),
        cross_partition_page: parsed.cross_partition_page,
        rate_limit: parsed.rate_limit,
        serverless: parsed.serverless,
        burst_capacity: parsed.burst_capacity,
        container_ru_min: limits.container_ru_min,
        container_ru_max: parsed.container_max_ru.map_or(limits.container_ru_max, NonZeroU64::get),
        partition_key_metrics: parsed.partition_key_metrics,
        alert_webhook: parsed.alert_webhook.map(|url| url.0),
        header_bytes_max: to_usize(parsed.header_max_bytes.0),
        body_bytes_max: to_usize(parsed.body_max_bytes.0),
        bodies_bytes_max: to_usize(parsed.bodies_max_bytes.0),
        connections_max: to_usize(parsed.connections_max),
        slow_client_timeout: Duration::from_secs(parsed.slow_client_timeout_s.get()),
        shutdown_timeout: Duration::from_secs(parsed.shutdown_timeout_s.get()),
        worker_threads: worker_threads(parsed.worker_threads),
        quiet: parsed.quiet,
        ready_fd: parsed.ready_fd,
        log_level: parsed.log_level,
        log_format: parsed.log_format,
        declaration,
    })
}

fn bearer_settings(
    file: Option<PathBuf>,
    url: Option<Url>,
    issuer: Option<String>,
    audiences: Vec<String>,
    roles: Option<PathBuf>,
) -> Result<Option<BearerSettings>> {
    let keys = match (file, url) {
        (Some(_), Some(_)) => return Err(Error::invalid("give either `token-keys` or `token-keys-url`, not both.")),
        (Some(path), None) => Some(JwksLocation::File(path)),
        (None, Some(url)) => Some(JwksLocation::Url(url.0)),
        (None, None) => None,
    };
    match (keys, issuer) {
        (Some(keys), Some(issuer)) if !audiences.is_empty() => {
            Ok(Some(BearerSettings { keys, issuer, audiences, roles }))
        }
        (Some(_), _) => {
            Err(Error::invalid("token keys need `token-issuer` and `token-audience`: whose tokens, for whom."))
        }
        (None, None) if audiences.is_empty() && roles.is_none() => Ok(None),
        (None, _) => Err(Error::invalid(
            "`roles`, `token-issuer` and `token-audience` are for bearer tokens, which need `token-keys` or `token-keys-url`.",
        )),
    }
}

/// SDKs append paths to it, so it has none of its own.
fn public_endpoint(Url(url): Url) -> Result<String> {
    let base = url.strip_suffix('/').unwrap_or(&url);
    let authority = base.split_once("://").map_or("", |(_, authority)| authority);
    let is_bare = !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']);
    is_bare.then(|| format!("{base}/")).ok_or_else(|| {
        Error::invalid("`public-endpoint` is a scheme, a host and a port, such as https://cosmos.example:8081.")
    })
}

fn own_certificate(chain: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<OwnCertificate>> {
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(OwnCertificate { chain, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Error::invalid("`tls-cert` is given without `tls-key`; a certificate needs both.")),
        (None, Some(_)) => Err(Error::invalid("`tls-key` is given without `tls-cert`; a certificate needs both.")),
    }
}

/// With `tls = auto`, `serve` without a certificate accepts HTTP only: it runs behind a proxy that terminates TLS, or
/// on a trusted network. `dev` accepts both, so that every client can connect.
fn protocols(mode: RunMode, tls: Tls, own_certificate: bool) -> Protocols {
    match (tls, mode) {
        (Tls::Off, _) => Protocols::Http,
        (Tls::On, _) => Protocols::Https,
        (Tls::Auto, RunMode::Dev) => Protocols::Both,
        (Tls::Auto, RunMode::Serve) if own_certificate => Protocols::Https,
        (Tls::Auto, RunMode::Serve) => Protocols::Http,
    }
}

fn storage(mode: RunMode, ephemeral: bool, data: Option<PathBuf>, user_dir: Option<PathBuf>) -> Result<Storage> {
    match (data, mode) {
        _ if ephemeral => Ok(Storage::Memory),
        (Some(directory), _) => Ok(Storage::Directory(directory)),
        (None, RunMode::Serve) => {
            Err(Error::invalid("`pleiad serve` must be told where its data lives: --data DIR or PLEIAD_DATA."))
        }
        (None, RunMode::Dev) => user_dir
            .map(Storage::Directory)
            .ok_or_else(|| Error::invalid("this user has no home directory; give --data DIR or --ephemeral.")),
    }
}

/// With `--ephemeral`, generated certificates are in the user's data directory: clients that trust them need not be
/// set up again for every run.
fn certificate_dir(storage: &Storage, user_dir: Option<PathBuf>) -> Option<PathBuf> {
    let base = match storage {
        Storage::Directory(directory) => Some(directory.clone()),
        Storage::Memory => user_dir,
    };
    base.map(|directory| directory.join("certificates"))
}

fn durability(setting: DurabilityMode, sync_interval_ms: NonZeroU64) -> DurabilitySetting {
    match setting {
        DurabilityMode::Synced => DurabilitySetting::Synced,
        DurabilityMode::Written => {
            DurabilitySetting::Written { sync_interval: Duration::from_millis(sync_interval_ms.get()) }
        }
    }
}

fn worker_threads(configured: u32) -> usize {
    match usize::try_from(configured) {
        Ok(0) | Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
        Ok(threads) => threads,
    }
}

/// As many partitions as the maximum throughput can create.
const RANGES_INITIAL_MAX: u32 = 1000;

fn ranges_initial(configured: Option<NonZeroU64>) -> Result<u32> {
    match configured.map_or(Ok(1), |ranges| u32::try_from(ranges.get())) {
        Ok(ranges) if ranges <= RANGES_INITIAL_MAX => Ok(ranges),
        _ => Err(Error::invalid(format!("`initial-ranges` is at most {RANGES_INITIAL_MAX}."))),
    }
}

fn to_usize(count: NonZeroU64) -> usize {
    usize::try_from(count.get()).unwrap_or(usize::MAX)
}

/// The user's data directory, by the conventions of the operating system.
fn user_directory(environment: &Environment) -> Option<PathBuf> {
    let home = |rest: &str| environment.get("HOME").map(|home| Path::new(home).join(rest));
    let base = if cfg!(windows) {
        environment.get("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        // The XDG specification says to ignore relative paths.
        let xdg = environment.get("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        xdg.or_else(|| home(".local/share"))
    };
    base.map(|base| base.join("pleiad"))
}

fn machine_name(environment: &Environment) -> Option<String> {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel
        .or_else(|| ["COMPUTERNAME", "HOSTNAME"].iter().find_map(|v| environment.get(v).map(String::from)))?;
    let name = name.trim().to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}
