//! Listen addresses and host names.
//!
//! Guarantees: `localhost` is served on IPv4 and on IPv6, because some clients try only the first address that their
//! resolver returns. `server` binds the addresses and skips additional ones that the machine does not have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use pleiad_model::{Error, Result};

use super::value::HostName;

const LOCALHOST: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Resolves `host`. The first address must be bound, the others are bound where the machine has them.
pub fn resolve(HostName(host): &HostName) -> Result<Vec<IpAddr>> {
    match host.parse::<IpAddr>() {
        // A server on all IPv4 addresses must also be reachable as localhost, which may resolve to ::1. Binding `::`
        // would collide with 0.0.0.0 on dual-stack sockets; ::1 never does.
        Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) => Ok(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED), LOCALHOST[1]]),
        Ok(address) => Ok(vec![address]),
        Err(_) if host.eq_ignore_ascii_case("localhost") => Ok(LOCALHOST.to_vec()),
        Err(_) => look_up(host),
    }
}

fn look_up(host: &str) -> Result<Vec<IpAddr>> {
    let found = (host, 0)
        .to_socket_addrs()
        .map_err(|error| Error::invalid(format!("host: \"{host}\" is no address of this machine: {error}.")))?;
    let mut addresses = Vec::new();
    for address in found.map(|socket| socket.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// The host name in endpoints: `localhost` if it reaches this server, otherwise the configured host.
pub fn public_name(HostName(host): &HostName, addresses: &[IpAddr]) -> String {
    let local = addresses.iter().any(|address| address.is_loopback() || address.is_unspecified());
    match host.parse::<IpAddr>() {
        _ if local => "localhost".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(address)) => address.to_string(),
        Err(_) => host.to_owned(),
    }
}

/// The names of a generated certificate: those of this machine for local clients, for its containers and for its
/// network, and the names that the user added.
pub fn certificate_names(host: &HostName, added: &[HostName], machine: Option<String>) -> Vec<String> {
    let always = ["localhost", "127.0.0.1", "::1", "host.docker.internal"].map(str::to_owned);
    let configured = added.iter().chain([host]).map(|HostName(name)| name.to_ascii_lowercase());
    let mut names: Vec<String> = Vec::new();
    for name in always.into_iter().chain(machine).chain(configured) {
        let wildcard = name.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        if !wildcard && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
