//! Server life cycle: bind, open the account, create what the configuration declares, listen, announce, drain, close.
//!
//! Guarantees: when the ready line is written, clients can connect. Requests in progress when a stop signal arrives are
//! answered, within `shutdown-timeout-s`. Every acknowledged write is durable when the process ends.

mod declare; // creates declared databases, containers and items
mod ports; // binds the ports

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pleiad_engine::{
    AccountHost, Action, Engine, Governance, Parallelism, PartitionLimits as EngineLimits, ServerAuthority, SyncPolicy,
};
use pleiad_model::env::{Env, OffsetEnv, SystemEnv};
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, Memory, RocksOptions, RocksStore};
use pleiad_wire::account::bearer::Issuer;
use pleiad_wire::account::{AccountAccess, AccountKeyring, BearerAccess, TokenSigner};
use pleiad_wire::http::{Http, HttpLimits};
use pleiad_wire::metrics::Metrics;
use pleiad_wire::nosql::{Account, NosqlApi};
use pleiad_wire::router::Router;
use pleiad_wire::transport::{ConnectionLimits, Drain, Transport, tls_config_of};
use pleiad_wire::webhook::Webhook;

use crate::certificate::{self, Identity};
use crate::config::{DurabilitySetting, LogFormat, PortPlan, RunMode, Settings, Storage};
use crate::endpoint::Endpoints;
use crate::{alerts, banner, ready};
use ports::BoundPorts;

pub fn run(settings: Settings) -> Result<()> {
    start_log(&settings);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.worker_threads)
        .enable_all()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<()> {
    // Bind the ports first: if one is in use, the server stops before it touches the data.
    let mut ports = BoundPorts::bind(&settings.addresses, &settings.ports).await?;
    let main = ports.take(PortPlan::MAIN).ok_or_else(|| Error::internal("the main port was not planned"))?;
    let https = settings.protocols.has_https();
    let clock = (settings.mode == RunMode::Dev).then(Arc::<OffsetEnv>::default);
    let account_host = AccountHost::new(open(&settings, clock.clone()).await?);
    // After the data: a directory that is not ours gets no certificates either.
    let identity = https.then(|| certificate::identity(&settings, SystemEnv.now_ms())).transpose()?;
    let authority = identity.as_ref().and_then(|identity| identity.authority.clone());
    declare::apply(&account_host.engine(), &settings.declaration).await?;

    let router = Arc::new(router(&settings, account_host.clone(), clock, authority.as_deref()).await?);
    let tls = identity.map(|Identity { chain, key, .. }| tls_config_of(chain, key)).transpose()?;
    let drain = Drain::new();
    let mut transport = Transport::new(connection_limits(&settings), &drain);
    transport.add_port(main.sockets, tls.as_ref(), Http::new(router, http_limits(&settings)));
    tokio::spawn(transport.serve());
    recover_after_failures(account_host.clone());
    alerts::watch(account_host.clone(), settings.alert_webhook.as_deref().map(Webhook::new).transpose()?);
    let stop = stop_signal()?;
    let endpoints = Endpoints::new(&settings, main.number, Vec::new());
    banner::print(&settings, &endpoints, authority.as_deref());
    ready::announce(&endpoints, settings.ready_fd)?;

    stop.await;
    tracing::info!("stopping: waiting for requests in progress");
    drain.begin();
    account_host.stop_jobs();
    if !drain.wait(settings.shutdown_timeout).await {
        tracing::warn!("some requests did not finish in time");
    }
    account_host.close().await;
    Ok(())
}

/// With `clock` (dev only), tests can move the server's time.
async fn open(settings: &Settings, clock: Option<Arc<OffsetEnv>>) -> Result<Engine> {
    let store = match &settings.storage {
        Storage::Memory => AnyStore::Memory(Memory::default()),
        Storage::Directory(directory) => {
            let options = RocksOptions {
                block_cache_bytes: as_usize(settings.block_cache_bytes),
                // Point reads are skewed: most of them read few items.
                row_cache_bytes: as_usize(settings.block_cache_bytes / 4),
                accept_data_loss: settings.accept_data_loss,
                ..Default::default()
            };
            AnyStore::Embedded(RocksStore::open(directory, options)?)
        }
    };
    let policy = match settings.durability {
        DurabilitySetting::Synced => SyncPolicy::Synced,
        DurabilitySetting::Written { sync_interval } => SyncPolicy::SyncedWithin(sync_interval),
    };
    let limits = EngineLimits {
        partition_ru_max: as_u32(settings.partition_ru_max),
        partition_ru_initial: as_u32(settings.partition_initial_ru),
        partition_bytes_max: settings.partition_bytes_max,
        ranges_initial: settings.ranges_initial,
        key_bytes_max: settings.key_bytes_max,
        copy_bytes_per_s: settings.copy_bytes_per_s,
        parallelism: Parallelism::DEFAULT,
        cross_partition_page: settings.cross_partition_page.into(),
        governance: Governance {
            enforced: settings.rate_limit,
            serverless: settings.serverless,
            burst: settings.burst_capacity,
            container_ru_min: as_u32(settings.container_ru_min),
            container_ru_max: as_u32(settings.container_ru_max),
            ..Governance::default()
        },
    };
    let env: Arc<dyn Env> = match clock {
        Some(clock) => clock,
        None => Arc::new(SystemEnv),
    };
    let engine = Engine::open(store, policy, limits, env).await?;
    engine.start_background_work().await?;
    Ok(engine)
}

async fn router(
    settings: &Settings,
    account_host: Arc<AccountHost>,
    clock: Option<Arc<OffsetEnv>>,
    authority: Option<&std::path::Path>,
) -> Result<Router> {
    let keys = &settings.keys;
    let text = |key: &Option<crate::config::AccountKey>| key.as_ref().map(|key| key.reveal().to_owned());
    let [secondary, primary_ro, secondary_ro] =
        [text(&keys.secondary), text(&keys.primary_read_only), text(&keys.secondary_read_only)];
    let keys = AccountKeyring::new(
        keys.primary.reveal(),
        secondary.as_deref(),
        primary_ro.as_deref(),
        secondary_ro.as_deref(),
    )?;
    let account = Account {
        id: "pleiad".to_owned(),
        region: "Local".to_owned(),
        consistency: settings.consistency.into(),
        previous_images: settings.change_feed_previous_images,
        public_endpoint: settings.public_endpoint.clone(),
        trusted_proxies: settings.trusted_proxies.clone(),
    };
    let certificate = match authority {
        Some(path) => std::fs::read(path).ok().map(Bytes::from),
        None => None,
    };
    // Snapshots of the account have the same secret, so tokens stay valid after a restore.
    let engine = account_host.engine();
    let secret = engine.secret(&engine.authorize(&ServerAuthority, Action::Administer)?).await?;
    let tokens = Arc::new(TokenSigner::new(&secret));
    let access = Arc::new(AccountAccess {
        keys,
        tokens,
        bearer: bearer_access(settings).await?,
        emulator_tokens: settings.mode == RunMode::Dev,
    });
    let api = NosqlApi::new(account_host, account, access);
    let metrics = Arc::new(Metrics::new(settings.partition_key_metrics));
    let https_only = !settings.protocols.has_http();
    let router = Router::new(api, metrics, settings.body_bytes_max, clock);
    Ok(router.with_certificate(certificate).https_only(https_only))
}

/// How often the token keys and the roles file are checked for changes.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Authorization by bearer tokens; its keys and roles are refreshed while the server runs.
async fn bearer_access(settings: &Settings) -> Result<Arc<BearerAccess>> {
    let Some(bearer) = settings.bearer.clone() else { return Ok(Arc::default()) };
    let issuer = Issuer { name: bearer.issuer, audiences: bearer.audiences };
    let access = Arc::new(BearerAccess::open(issuer, &bearer.keys, bearer.roles).await?);
    let refreshed = access.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            refreshed.refresh().await;
        }
    });
    Ok(access)
}

/// How often a disk that has failed is tried again.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// After a failed write to the disk: accepts writes again when the disk does.
fn recover_after_failures(account_host: Arc<AccountHost>) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(RECOVERY_INTERVAL).await;
            if let Err(error) = account_host.recover().await {
                tracing::debug!(%error, "writes are still rejected");
            }
        }
    });
}

fn connection_limits(settings: &Settings) -> ConnectionLimits {
    ConnectionLimits {
        connections_max: settings.connections_max,
        message_bytes_max: settings.bodies_bytes_max,
        slow_client_timeout: settings.slow_client_timeout,
        ..ConnectionLimits::default()
    }
}

fn http_limits(settings: &Settings) -> HttpLimits {
    HttpLimits { header_bytes_max: settings.header_bytes_max, ..HttpLimits::default() }
}

/// Installs the signal handlers. This happens before the ready line is written, because its reader may send a signal
/// immediately.
#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error: std::io::Error| Error::unavailable(format!("cannot wait for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> Result<impl Future<Output = ()>> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "cannot wait for Ctrl-C: it will not shut the server down cleanly");
            std::future::pending::<()>().await;
        }
    })
}

/// Structured log on standard error; standard output has only the ready line.
fn start_log(settings: &Settings) {
    let level: tracing_subscriber::filter::LevelFilter =
        settings.log_level.as_str().parse().unwrap_or(tracing_subscriber::filter::LevelFilter::INFO);
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second start in one process, which only tests do, keeps the first logger.
    let _ = match settings.log_format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder.try_init(),
    };
}

fn as_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn as_u32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
